#include "runtime/session/RankThreads.h"

#include "runtime/base/Error.h"

#include <system_error>

namespace sft {

RankThreads::RankThreads(ThreadWorld &world) : world_(world) {
  int ranks = world.mesh().ranks();
  try {
    for (int rank = 0; rank < ranks; ++rank)
      threads_.emplace_back([this, rank] { work(rank); });
  } catch (const std::system_error &error) {
    size_t started = threads_.size();
    stop();
    fail("cannot start a thread for every rank (plan's mesh): ", ranks, " ranks, ", started,
         " threads are running: ", error.code().message(), "; compile for a smaller --mesh");
  }
}

RankThreads::~RankThreads() { stop(); }

void RankThreads::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread &thread : threads_)
    thread.join();
}

void RankThreads::run(const std::function<void(int rank)> &body) {
  if (!world_.failed()) {
    std::unique_lock<std::mutex> lock(mutex_);
    body_ = &body;
    running_ = int(threads_.size());
    ++generation_;
    start_.notify_all();
    done_.wait(lock, [&] { return running_ == 0; });
  }
  if (world_.failed())
    throw Error(ErrorKind::BadInput, world_.failure());
}

void RankThreads::work(int rank) {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    start_.wait(lock, [&] { return stop_ || generation_ != seen; });
    if (stop_)
      return;
    seen = generation_;
    lock.unlock();
    runBody(rank);
    lock.lock();
    if (--running_ == 0)
      done_.notify_one();
  }
}

void RankThreads::runBody(int rank) {
  try {
    (*body_)(rank);
  } catch (const std::bad_alloc &) {
    world_.abort(rank, "out of host memory; free memory or compile for fewer --tokens");
  } catch (const std::exception &error) {
    world_.abort(rank, error.what());
  }
}

} // namespace sft
