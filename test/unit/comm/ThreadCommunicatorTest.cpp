#include "runtime/comm/ThreadCommunicator.h"

#include "runtime/base/Error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

using namespace sft;

namespace {

constexpr int64_t kCounts[] = {0, 1, 2, 7, 1000, 4099};

/// Runs a body on every rank; returns what each threw, empty for nothing.
std::vector<std::string> onRanks(ThreadWorld &world, const std::function<void(int)> &body) {
  std::vector<std::string> errors(size_t(world.mesh().ranks()));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world.mesh().ranks(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const Error &error) {
        errors[size_t(rank)] = error.what();
        world.abort(rank, error.what());
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  return errors;
}

void expectNoErrors(const std::vector<std::string> &errors) {
  for (const std::string &error : errors)
    EXPECT_EQ(error, "");
}

/// A value that tells rank and element apart and whose sums need rounding.
float value(int rank, int64_t i) {
  return std::sin(float(rank * 7919 + i) * 0.37f) * float(1 + rank);
}

float sumInRankOrder(int ranks, int64_t i) {
  float sum = value(0, i);
  for (int rank = 1; rank < ranks; ++rank)
    sum += value(rank, i);
  return sum;
}

std::vector<float> values(int rank, int64_t count) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(value(rank, i));
  return result;
}

class EveryWorldSize : public testing::TestWithParam<int> {
protected:
  int ranks() const { return GetParam(); }
  ThreadWorld world{Mesh({{"cp", GetParam()}})};
};
INSTANTIATE_TEST_SUITE_P(Ranks, EveryWorldSize, testing::Values(1, 2, 3, 4, 5, 8));

TEST_P(EveryWorldSize, AllGather) {
  expectNoErrors(onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    for (int64_t count : kCounts)
      for (bool inPlace : {false, true}) {
        std::vector<float> input = values(rank, count), output(size_t(count * ranks()), NAN);
        float *own = output.data() + rank * count;
        if (inPlace)
          std::copy(input.begin(), input.end(), own);
        comm->allGather(inPlace ? own : input.data(), output.data(), size_t(count) * 4);
        for (int peer = 0; peer < ranks(); ++peer)
          for (int64_t i = 0; i < count; ++i)
            ASSERT_EQ(output[size_t(peer * count + i)], value(peer, i));
      }
  }));
}

TEST_P(EveryWorldSize, ReduceScatterAddsInRankOrder) {
  expectNoErrors(onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    for (int64_t count : kCounts)
      for (bool inPlace : {false, true}) {
        std::vector<float> input = values(rank, count * ranks()), output(size_t(count), NAN);
        float *out = inPlace ? input.data() + rank * count : output.data();
        comm->reduceScatter(input.data(), out, count, DType::F32, ReduceOperator::Sum);
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], sumInRankOrder(ranks(), rank * count + i));
        comm->barrier();
      }
  }));
}

TEST_P(EveryWorldSize, AllReduceGivesEveryRankTheSameBits) {
  expectNoErrors(onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    for (int64_t count : kCounts)
      for (bool inPlace : {false, true}) {
        std::vector<float> input = values(rank, count), output(size_t(count), NAN);
        float *out = inPlace ? input.data() : output.data();
        comm->allReduce(input.data(), out, count, DType::F32, ReduceOperator::Sum);
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], sumInRankOrder(ranks(), i));
      }
  }));
}

TEST_P(EveryWorldSize, MaximumKeepsNaNAndInfinity) {
  expectNoErrors(onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> data = {float(rank), float(-rank - 1), -infinity,
                               rank == ranks() - 1 ? NAN : 1.0f};
    comm->allReduce(data.data(), data.data(), 4, DType::F32, ReduceOperator::Max);
    EXPECT_EQ(data[0], float(ranks() - 1));
    EXPECT_EQ(data[1], -1.0f);
    EXPECT_EQ(data[2], -infinity);
    EXPECT_TRUE(std::isnan(data[3]));
  }));
}

TEST_P(EveryWorldSize, Bf16IsAddedInFp32AndRoundedOnce) {
  expectNoErrors(onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    // 1 + 8 * 2^-8: each addend alone is lost in bf16, all together are not.
    uint16_t data = floatToBf16(rank == 0 ? 1.0f : 0x1p-8f);
    comm->allReduce(&data, &data, 1, DType::BF16, ReduceOperator::Sum);
    EXPECT_EQ(data, floatToBf16(1.0f + float(ranks() - 1) * 0x1p-8f));
  }));
}

TEST_P(EveryWorldSize, OtherTypesAreReduced) {
  expectNoErrors(onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    int32_t i32 = rank + 1;
    comm->allReduce(&i32, &i32, 1, DType::I32, ReduceOperator::Sum);
    EXPECT_EQ(i32, ranks() * (ranks() + 1) / 2);
    int64_t i64 = int64_t(rank) << 40;
    comm->allReduce(&i64, &i64, 1, DType::I64, ReduceOperator::Max);
    EXPECT_EQ(i64, int64_t(ranks() - 1) << 40);
    double f64 = 1e-300 * (rank + 1);
    comm->allReduce(&f64, &f64, 1, DType::F64, ReduceOperator::Max);
    EXPECT_EQ(f64, 1e-300 * ranks());
  }));
}

TEST_P(EveryWorldSize, AllToAll) {
  expectNoErrors(onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    for (int64_t count : kCounts) {
      std::vector<float> input = values(rank, count * ranks()),
                         output(size_t(count * ranks()), NAN);
      comm->allToAll(input.data(), output.data(), size_t(count) * 4);
      for (int peer = 0; peer < ranks(); ++peer)
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(output[size_t(peer * count + i)], value(peer, rank * count + i));
    }
  }));
}

TEST_P(EveryWorldSize, BarrierLetsNobodyPassEarly) {
  std::atomic<int> entered{0};
  expectNoErrors(onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    for (int round = 1; round <= 50; ++round) {
      ++entered;
      comm->barrier();
      EXPECT_GE(entered.load(), round * ranks());
      comm->barrier();
    }
  }));
}

TEST(ThreadCommunicator, GroupsOfAMeshDoNotMix) {
  ThreadWorld world(Mesh({{"tp", 2}, {"cp", 2}, {"dp", 2}}));
  expectNoErrors(onRanks(world, [&](int rank) {
    for (const std::vector<std::string> &axes :
         {std::vector<std::string>{"tp"}, {"cp"}, {"dp"}, {"dp", "tp"}, {"tp", "cp", "dp"}, {}}) {
      auto comm = world.create(rank, axes);
      EXPECT_EQ(comm->rank(), world.mesh().index(rank, axes));
      std::vector<int> gathered(size_t(comm->size()), -1);
      comm->allGather(&rank, gathered.data(), sizeof(int));
      EXPECT_EQ(gathered, world.mesh().group(rank, axes));
    }
  }));
}

// pytorch/pytorch #97066, pytorch/torchtitan #3863: after a failed collective some ranks go on or
// stay.
TEST(ThreadCommunicator, OneFailingRankStopsAllWithItsMessage) {
  ThreadWorld world(Mesh({{"cp", 4}}));
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> errors = onRanks(world, [&](int rank) {
    auto comm = world.create(rank, {"cp"});
    float data = 1;
    comm->allReduce(&data, &data, 1, DType::F32, ReduceOperator::Sum);
    if (rank == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50)); // the others wait by now
      fail("disk full (step 7)");
    }
    comm->allReduce(&data, &data, 1, DType::F32, ReduceOperator::Sum);
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  for (int rank : {0, 1, 3})
    EXPECT_EQ(errors[size_t(rank)], "rank 2: disk full (step 7)");
  EXPECT_EQ(world.failure(), "rank 2: disk full (step 7)");
}

TEST(ThreadCommunicator, CallsAfterAFailureFailAtOnce) {
  ThreadWorld world(Mesh({{"cp", 2}}));
  world.abort(1, "first");
  world.abort(0, "second");
  EXPECT_EQ(world.failure(), "rank 1: first");
  auto comm = world.create(0, {"cp"});
  try {
    comm->barrier();
    FAIL() << "a call after a failure must throw";
  } catch (const Error &error) {
    EXPECT_EQ(error.kind(), ErrorKind::PeerFailed);
    EXPECT_STREQ(error.what(), "rank 1: first");
  }
}

void expectMismatch(const std::function<void(Communicator &, int)> &call,
                    const std::string &expected) {
  ThreadWorld world(Mesh({{"cp", 3}}));
  onRanks(world, [&](int rank) { call(*world.create(rank, {"cp"}), rank); });
  EXPECT_NE(world.failure().find(expected), std::string::npos) << world.failure();
}

// openxla/stablehlo #498 and #508 are of this kind: collectives that do not meet their partners are
// accepted.
TEST(ThreadCommunicator, MismatchedCallsAreReported) {
  std::vector<float> in(64), out(256);
  expectMismatch([&](Communicator &comm,
                     int rank) { comm.allGather(in.data(), out.data(), rank == 1 ? 8 : 4); },
                 "rank 0 calls all_gather of 4 bytes, rank 1 calls all_gather of 8 bytes");
  expectMismatch(
      [&](Communicator &comm, int rank) {
        if (rank == 2)
          comm.barrier();
        else
          comm.allReduce(in.data(), out.data(), 3, DType::F32, ReduceOperator::Sum);
      },
      "rank 0 calls all_reduce sum of 3 x f32, rank 2 calls barrier");
  expectMismatch(
      [&](Communicator &comm, int rank) {
        comm.reduceScatter(in.data(), out.data(), 2, DType::F32,
                           rank == 0 ? ReduceOperator::Max : ReduceOperator::Sum);
      },
      "rank 0 calls reduce_scatter max of 2 x f32, rank 1 calls reduce_scatter sum of 2 x f32");
  expectMismatch(
      [&](Communicator &comm, int rank) {
        comm.allReduce(in.data(), out.data(), 2, rank == 1 ? DType::I32 : DType::F32,
                       ReduceOperator::Sum);
      },
      "rank 1 calls all_reduce sum of 2 x i32");
}

TEST(ThreadCommunicator, APeerThatNeverComesRunsIntoTheTimeout) {
  ThreadWorld world(Mesh({{"cp", 3}}), 0.1);
  onRanks(world, [&](int rank) {
    if (rank != 1)
      world.create(rank, {"cp"})->barrier();
  });
  EXPECT_NE(world.failure().find("rank 1 did not come within 0.1 s"), std::string::npos)
      << world.failure();
}

// The nanoseconds of such a time do not fit 64 bits: the wait ended before it began.
TEST(ThreadCommunicator, ATimeoutOfCenturiesIsForEver) {
  for (double timeout : {1e9, 1e10, 1e30, 1e300, std::numeric_limits<double>::infinity()}) {
    ThreadWorld world(Mesh({{"cp", 2}}), timeout);
    expectNoErrors(onRanks(world, [&](int rank) {
      auto comm = world.create(rank, {"cp"});
      for (int late : {0, 1}) {
        if (rank == late)
          std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the other waits by now
        comm->barrier();
      }
    }));
  }
}

TEST(ThreadCommunicator, AnUnknownTypeIsRefused) {
  ThreadWorld world(Mesh({{"cp", 1}}));
  uint16_t half = 0;
  EXPECT_THROW(world.create(0, {"cp"})->allReduce(&half, &half, 1, DType::F16, ReduceOperator::Sum),
               Error);
}

} // namespace
