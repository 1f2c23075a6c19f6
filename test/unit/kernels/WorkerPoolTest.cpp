#include "runtime/kernels/WorkerPool.h"

#include "runtime/base/Error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

using namespace sft;

namespace {

class EveryPoolSize : public testing::TestWithParam<int> {
protected:
  WorkerPool pool{GetParam()};
  std::atomic<int64_t> calls{0};

  /// Runs so many tasks and checks that each ran once, on a worker that had nothing else to do.
  void expectEachOnce(int64_t tasks) {
    std::vector<std::atomic<int>> runs(size_t(std::max<int64_t>(tasks, 1)));
    std::vector<std::atomic<int>> busy(size_t(pool.threads()));
    std::atomic<bool> alone{true}, known{true};
    pool.forEach(tasks, [&](int64_t task, int worker) {
      if (task < 0 || task >= tasks || worker < 0 || worker >= pool.threads()) {
        known = false;
        return;
      }
      if (busy[size_t(worker)]++ != 0)
        alone = false;
      ++runs[size_t(task)];
      --busy[size_t(worker)];
    });
    EXPECT_TRUE(known) << "a task or a worker that there is not";
    EXPECT_TRUE(alone) << "two tasks at once on one worker";
    for (int64_t task = 0; task < tasks; ++task)
      ASSERT_EQ(runs[size_t(task)], 1) << "task " << task << " of " << tasks;
  }
};

INSTANTIATE_TEST_SUITE_P(WorkerPool, EveryPoolSize, testing::Values(1, 2, 3, 8));

TEST_P(EveryPoolSize, EveryTaskRunsOnce) {
  EXPECT_EQ(pool.threads(), GetParam());
  for (int64_t tasks : {0, 1, 2, 3, 7, 8, 9, 1000})
    expectEachOnce(tasks);
}

TEST_P(EveryPoolSize, CallsFollowEachOther) {
  std::vector<int64_t> sums(8);
  for (int64_t round = 0; round < 2000; ++round)
    // What one call wrote is there in the next one, and the bodies differ.
    if (round % 2)
      pool.forEach(8, [&](int64_t task, int) { sums[size_t(task)] += 3; });
    else
      pool.forEach(round % 9, [&](int64_t task, int) { sums[size_t((task + 1) % 8)] -= 1; });
  int64_t taken = 0;
  for (int64_t round = 0; round < 2000; round += 2)
    taken += round % 9;
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t(0)), 1000 * 8 * 3 - taken);
}

TEST_P(EveryPoolSize, AnExceptionComesOutAndThePoolGoesOn) {
  for (int64_t bad : {0, 5, 99}) {
    std::atomic<int> inside{0};
    calls = 0;
    try {
      pool.forEach(100, [&](int64_t task, int) {
        ++inside;
        ++calls;
        if (task == bad) {
          --inside;
          fail("task ", task, " is bad");
        }
        --inside;
      });
      ADD_FAILURE() << "the exception of task " << bad << " is lost";
    } catch (const Error &error) {
      EXPECT_EQ(error.what(), concat("task ", bad, " is bad"));
    }
    EXPECT_EQ(inside, 0) << "a task still runs";
    EXPECT_GE(calls, bad + 1);
    EXPECT_LE(calls, 100);
    expectEachOnce(100);
  }
  // All tasks throw: one exception comes out, of whatever type.
  EXPECT_THROW(pool.forEach(100, [](int64_t, int) { throw 7; }), int);
  EXPECT_THROW(pool.forEach(1, [](int64_t, int) { throw std::bad_alloc(); }), std::bad_alloc);
  expectEachOnce(3);
}

TEST(WorkerPool, OneThreadIsTheCaller) {
  WorkerPool pool(1);
  std::vector<int64_t> order;
  std::set<std::thread::id> threads;
  pool.forEach(100, [&](int64_t task, int worker) {
    order.push_back(task);
    threads.insert(std::this_thread::get_id());
    EXPECT_EQ(worker, 0);
  });
  std::vector<int64_t> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(WorkerPool, AllThreadsWorkAtOnce) {
  WorkerPool pool(4);
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  pool.forEach(4, [&](int64_t, int) {
    ++arrived;
    while (arrived < 4 && met) {
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end)
        met = false;
    }
  });
  EXPECT_TRUE(met) << "four tasks never ran side by side";
}

TEST(WorkerPool, PoolsComeAndGo) {
  for (int round = 0; round < 50; ++round) {
    WorkerPool used(3), unused(3);
    std::atomic<int> calls{0};
    used.forEach(5, [&](int64_t, int) { ++calls; });
    EXPECT_EQ(calls, 5);
  }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

/// Leaves the process room for a few more stacks of threads, then asks for many.
[[noreturn]] void startMoreThreadsThanFit() {
  alarm(20); // a hang must end the test
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlim_t limit = rlim_t(pages * sysconf(_SC_PAGESIZE)) + (rlim_t(64) << 20);
  struct rlimit room = {limit, limit};
  if (setrlimit(RLIMIT_AS, &room) != 0)
    _exit(3);
  try {
    WorkerPool pool(1000);
  } catch (const Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    // The process is as good as before.
    std::atomic<int> calls{0};
    WorkerPool(2).forEach(10, [&](int64_t, int) { ++calls; });
    _exit(calls == 10 ? 0 : 4);
  }
  _exit(5);
}

TEST(WorkerPool, AThreadThatCannotStartIsAnError) {
  if (sanitized)
    GTEST_SKIP() << "a sanitizer ends the process when memory runs out";
  EXPECT_EXIT(startMoreThreadsThanFit(), testing::ExitedWithCode(0),
              "^cannot start a thread \\(--threads\\): 1000 for a rank, [0-9]+ are running: .*; "
              "take fewer\n$");
}

} // namespace
