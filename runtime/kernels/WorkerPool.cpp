#include "runtime/kernels/WorkerPool.h"

#include "runtime/base/Error.h"

#include <system_error>

namespace sft {

WorkerPool::WorkerPool(int threads) {
  try {
    for (int worker = 1; worker < threads; ++worker)
      workers_.emplace_back([this, worker] { work(worker); });
  } catch (const std::system_error &error) {
    size_t started = workers_.size();
    stop();
    fail("cannot start a thread (--threads): ", threads, " for a rank, ", started + 1,
         " are running: ", error.code().message(), "; take fewer");
  }
}

WorkerPool::~WorkerPool() { stop(); }

void WorkerPool::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread &thread : workers_)
    thread.join();
}

void WorkerPool::drain(int worker) {
  for (;;) {
    int64_t task;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (next_ >= tasks_)
        return;
      task = next_++;
    }
    try {
      function_(context_, task, worker);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!error_)
        error_ = std::current_exception();
      next_ = tasks_;
    }
  }
}

void WorkerPool::work(int worker) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return stop_ || generation_ != seen; });
      if (stop_)
        return;
      seen = generation_;
    }
    drain(worker);
    std::lock_guard<std::mutex> lock(mutex_);
    if (--running_ == 0)
      done_.notify_one();
  }
}

void WorkerPool::run(int64_t tasks, TaskFunction function, void *context) {
  if (workers_.empty() || tasks <= 1) {
    for (int64_t task = 0; task < tasks; ++task)
      function(context, task, 0);
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    function_ = function;
    context_ = context;
    tasks_ = tasks;
    next_ = 0;
    error_ = nullptr;
    running_ = int(workers_.size());
    ++generation_;
  }
  start_.notify_all();
  drain(0);
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [&] { return running_ == 0; });
  if (error_)
    std::rethrow_exception(error_);
}

} // namespace sft
