#include "runtime/data/Data.h"
#include "test/unit/TestFiles.h"

namespace sft {
namespace {

TEST(LearningRate, WarmUpThenConstant) {
  ScheduleOptions options{.kind = "constant", .lr = 2, .min_lr = 0.5, .warmup = 4, .total = 10};
  EXPECT_DOUBLE_EQ(learningRate(options, 1), 0.5);
  EXPECT_DOUBLE_EQ(learningRate(options, 3), 1.5);
  for (int64_t step : {4, 5, 10, 11})
    EXPECT_DOUBLE_EQ(learningRate(options, step), 2);
}

TEST(LearningRate, LinearAndCosineReachTheMinimumAtTheLastStep) {
  ScheduleOptions options{.kind = "linear", .lr = 2, .min_lr = 1, .warmup = 2, .total = 10};
  EXPECT_DOUBLE_EQ(learningRate(options, 1), 1);
  EXPECT_DOUBLE_EQ(learningRate(options, 2), 2);
  EXPECT_DOUBLE_EQ(learningRate(options, 4), 1.75);
  EXPECT_DOUBLE_EQ(learningRate(options, 10), 1);
  EXPECT_DOUBLE_EQ(learningRate(options, 12), 1);
  options.kind = "cosine";
  EXPECT_DOUBLE_EQ(learningRate(options, 2), 2);
  EXPECT_DOUBLE_EQ(learningRate(options, 6), 1.5);
  EXPECT_NEAR(learningRate(options, 4), 1 + (1 + 0.70710678118654752) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(learningRate(options, 10), 1);
}

TEST(LearningRate, ShortRunsStillTrain) {
  for (const char *kind : {"constant", "linear", "cosine"}) {
    EXPECT_DOUBLE_EQ(learningRate({.kind = kind, .lr = 3, .warmup = 0, .total = 1}, 1), 3) << kind;
    EXPECT_DOUBLE_EQ(learningRate({.kind = kind, .lr = 3, .warmup = 0, .total = 5}, 1), 3) << kind;
    EXPECT_DOUBLE_EQ(learningRate({.kind = kind, .lr = 3, .warmup = 5, .total = 5}, 5), 3) << kind;
  }
}

TEST(LearningRate, UnknownKindIsAnError) {
  test::expectError([] { learningRate({.kind = "cosin", .total = 10}, 1); },
                    {"cosin;", "constant, linear or cosine"});
}

} // namespace
} // namespace sft
