//===- WorkerPool.h - the threads of one rank ---------------------------------===//
#ifndef RUNTIME_KERNELS_WORKERPOOL_H
#define RUNTIME_KERNELS_WORKERPOOL_H

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace sft {

/// Runs numbered tasks on a fixed set of threads. Waiting threads sleep. The tasks are the same whatever the number of
/// threads, so results do not depend on it.
class WorkerPool {
public:
  /// `threads` counts the calling thread: a pool of 1 starts none.
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  int threads() const { return int(workers_.size()) + 1; }

  /// Calls body(task, worker) for every task in [0, tasks), in any order, worker in [0, threads()); returns when all are done.
  /// Rethrows the first exception. Allocates nothing.
  template <typename Body> void forEach(int64_t tasks, Body &&body) {
    using Function = std::remove_reference_t<Body>;
    run(tasks, [](void *context, int64_t task, int worker) { (*static_cast<Function *>(context))(task, worker); },
        const_cast<void *>(static_cast<const void *>(&body)));
  }

private:
  using TaskFunction = void (*)(void *context, int64_t task, int worker);
  void run(int64_t tasks, TaskFunction function, void *context);
  void work(int worker);
  void stop();
  void drain(int worker);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  uint64_t generation_ = 0;
  bool stop_ = false;
  int running_ = 0;
  TaskFunction function_ = nullptr;
  void *context_ = nullptr;
  int64_t tasks_ = 0, next_ = 0; ///< guarded by mutex_
  std::exception_ptr error_;
};

} // namespace sft

#endif // RUNTIME_KERNELS_WORKERPOOL_H
