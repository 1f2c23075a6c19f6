#include "runtime/session/RankThreads.h"

#include "runtime/base/Error.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace sft;

namespace {

TEST(RankThreads, EveryRankRunsOnItsOwnThreadEachTime) {
  ThreadWorld world(Mesh({{"cp", 3}}));
  RankThreads threads(world);
  std::vector<std::thread::id> first(3), second(3);
  threads.run([&](int rank) { first[size_t(rank)] = std::this_thread::get_id(); });
  threads.run([&](int rank) { second[size_t(rank)] = std::this_thread::get_id(); });
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[1], first[2]);
}

// pytorch/pytorch #97066 and pytorch/torchtitan #3863: exceptions of one rank must reach the main
// program and stop the others.
TEST(RankThreads, AFailingRankStopsTheOthersAndItsMessageComesOut) {
  ThreadWorld world(Mesh({{"cp", 3}}));
  RankThreads threads(world);
  auto begin = std::chrono::steady_clock::now();
  auto message = [&](const std::function<void(int)> &body) -> std::string {
    try {
      threads.run(body);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([&](int rank) {
              if (rank == 1)
                fail("cannot read (step 3)");
              world.create(rank, {"cp"})->barrier();
            }),
            "rank 1: cannot read (step 3)");
  EXPECT_EQ(message([](int) {}), "rank 1: cannot read (step 3)") << "the session is over";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(RankThreads, ForeignExceptionsAreReportedToo) {
  ThreadWorld world(Mesh({{"cp", 1}}));
  RankThreads threads(world);
  try {
    threads.run([](int) { throw std::bad_alloc(); });
    FAIL() << "a failure must come out";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("out of host memory"), std::string::npos);
  }
}

} // namespace
