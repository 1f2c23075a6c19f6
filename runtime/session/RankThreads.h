//===- RankThreads.h - one thread a rank -----------------------------------------===//
#ifndef RUNTIME_SESSION_RANKTHREADS_H
#define RUNTIME_SESSION_RANKTHREADS_H

#include "runtime/comm/ThreadCommunicator.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sft {

/// Runs the same body on a thread of every rank of a world. A rank keeps its thread, and with it
/// the thread-local state of the libraries behind its kernels, for as long as this object lives.
class RankThreads {
public:
  explicit RankThreads(ThreadWorld &world);
  ~RankThreads();
  RankThreads(const RankThreads &) = delete;
  RankThreads &operator=(const RankThreads &) = delete;

  /// Calls body(rank) on every rank's thread and returns when all are done. What a rank throws is
  /// reported to the world, so that the others stop, and then thrown here: the first failure, with
  /// its rank. After a failure every call throws that failure.
  void run(const std::function<void(int rank)> &body);

private:
  void work(int rank);
  void stop();
  void runBody(int rank);

  ThreadWorld &world_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  const std::function<void(int)> *body_ = nullptr;
  uint64_t generation_ = 0;
  int running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

} // namespace sft

#endif // RUNTIME_SESSION_RANKTHREADS_H
