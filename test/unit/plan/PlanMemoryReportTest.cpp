#include "runtime/plan/PlanMemoryReport.h"

#include "runtime/base/Error.h"
#include "runtime/plan/PlanFile.h"
#include "test/unit/plan/PlanFixture.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace sft;

namespace {

/// A plan with one transient arena and the kernel `copy`.
class CopyPlan : public PlanBuilder {
public:
  CopyPlan() {
    PlanBuilder tinyBuilder = tinyPlan();
    plan = std::move(tinyBuilder.plan);
    plan.programs.clear();
    copy_ = kernel("copy");
  }
  uint32_t bytes(const std::string &name, int64_t size, uint64_t offset) {
    return buffer(name, fb::DType::F32, {size / 4}, 4, offset);
  }
  void fill(Block &block, uint32_t y) { launch(block, tiny::Fill, {y}); }
  void copy(Block &block, uint32_t x, uint32_t y) { launch(block, copy_, {x, y}); }
  ProgramPeak peak(size_t program = 0) {
    EXPECT_EQ(verifyPlan(plan), std::vector<std::string>());
    return reportMemory(plan).programs[program];
  }

private:
  uint32_t copy_;
};

std::vector<std::string> names(const ProgramPeak &peak) {
  std::vector<std::string> list;
  for (const LiveBuffer &buffer : peak.live)
    list.push_back(buffer.name);
  return list;
}

} // namespace

TEST(PlanMemoryReport, CountsArenasByLifetime) {
  MemoryReport report = reportMemory(tinyPlan().plan);
  EXPECT_EQ(report.ranks, 2);
  EXPECT_EQ(report.total, 64u * 4 + 384);
  EXPECT_EQ(report.persistent, 64u * 4);
  EXPECT_EQ(report.activations, 384u);
  EXPECT_EQ(report.workspace, 0u);
  EXPECT_EQ(report.arenas[4], std::pair(std::string("activations"), uint64_t(384)));
  EXPECT_THROW(reportMemory(tinyPlan().plan, 2), Error);
  EXPECT_THROW(reportMemory(tinyPlan().plan, -1), Error);
}

TEST(PlanMemoryReport, FindsTheInstructionThatNeedsMost) {
  MemoryReport report = reportMemory(tinyPlan().plan);
  ASSERT_EQ(report.programs.size(), 2u);
  const ProgramPeak &peak = *report.peak();
  EXPECT_EQ(peak.program, "train");
  EXPECT_EQ(peak.instruction, "2"); // x, y, loss, column sums and their workspace
  EXPECT_EQ(peak.kernel, "row_kernel");
  EXPECT_EQ(peak.bytes, 48u + 80 + 16 + 20 + 40);
  EXPECT_EQ(peak.lower_bound, 64u + 128 + 64 + 64 + 64);
  EXPECT_EQ(names(peak), (std::vector<std::string>{"y", "x", "workspace", "sums", "loss"}));
  EXPECT_EQ(report.programs[1].instruction, "0.0");
  EXPECT_EQ(report.programs[1].bytes, 16u);
}

TEST(PlanMemoryReport, LiveFromFirstWriteToLastUse) {
  CopyPlan plan;
  uint32_t a = plan.bytes("a", 64, 0), b = plan.bytes("b", 128, 64), c = plan.bytes("c", 64, 0);
  auto &block = plan.program("evaluate").instructions;
  plan.fill(block, a);
  plan.fill(block, b); // a, b
  plan.fill(block, a); // the old a ended before
  plan.fill(block, c); // in a's place
  ProgramPeak peak = plan.peak();
  EXPECT_EQ(peak.bytes, 128u);
  EXPECT_EQ(peak.instruction, "1");
  EXPECT_EQ(names(peak), (std::vector<std::string>{"b"}));
}

TEST(PlanMemoryReport, InPlaceResultsAndViewsCountOnce) {
  CopyPlan plan;
  uint32_t whole = plan.bytes("whole", 128, 0), low = plan.bytes("low", 64, 0),
           high = plan.bytes("high", 64, 64), sum = plan.bytes("sum", 64, 64);
  auto &program = plan.program("evaluate");
  plan.fill(program.instructions, whole);
  plan.copy(program.instructions, low, sum); // sum takes the place of high
  plan.copy(program.instructions, high, low);
  program.results = {low};
  ProgramPeak peak = plan.peak();
  EXPECT_EQ(peak.bytes, 128u);
  EXPECT_EQ(std::accumulate(peak.live.begin(), peak.live.end(), uint64_t(0),
                            [](uint64_t sum, const LiveBuffer &b) { return sum + b.bytes; }),
            peak.bytes);
}

TEST(PlanMemoryReport, ViewsKeepOnlyTheirOwnBytesAlive) {
  CopyPlan plan;
  uint32_t whole = plan.bytes("whole", 128, 0), low = plan.bytes("low", 64, 0),
           other = plan.bytes("other", 128, 128);
  auto &block = plan.program("evaluate").instructions;
  plan.fill(block, whole);
  plan.fill(block, other);
  plan.copy(block, low,
            plan.bytes("end", 64, 64)); // only half of `whole` was needed while `other` was written
  ProgramPeak peak = plan.peak();
  EXPECT_EQ(peak.instruction, "1");
  EXPECT_EQ(peak.bytes, 64u + 128);
}

TEST(PlanMemoryReport, ResultsLiveToTheEnd) {
  CopyPlan plan;
  uint32_t a = plan.bytes("a", 64, 0), b = plan.bytes("b", 128, 64);
  auto &program = plan.program("evaluate");
  plan.fill(program.instructions, a);
  plan.fill(program.instructions, b);
  program.results = {a};
  EXPECT_EQ(plan.peak().bytes, 64u + 128);
}

TEST(PlanMemoryReport, WhatARoundTakesFromTheRoundBeforeLivesThroughTheLoop) {
  CopyPlan plan;
  uint32_t carried = plan.bytes("carried", 64, 0), inner = plan.bytes("inner", 64, 64),
           late = plan.bytes("late", 128, 128);
  auto &program = plan.program("evaluate");
  plan.fill(program.instructions, carried);
  auto &body = PlanBuilder::repeat(program.instructions, 0).body;
  plan.copy(body, carried, inner);
  plan.fill(body, late); // `inner` is no longer needed, but the next round reads `carried`
  ProgramPeak peak = plan.peak();
  EXPECT_EQ(peak.instruction, "1.1");
  EXPECT_EQ(names(peak), (std::vector<std::string>{"late", "carried"}));
  EXPECT_EQ(peak.bytes, 64u + 128);
}

TEST(PlanMemoryReport, WhatALoopOverwritesLivesThroughZeroRounds) {
  CopyPlan plan;
  uint32_t result = plan.bytes("result", 64, 0), other = plan.bytes("other", 128, 64);
  auto &program = plan.program("evaluate");
  plan.fill(program.instructions, result);
  plan.fill(program.instructions, other);
  plan.fill(PlanBuilder::repeat(program.instructions, 0).body, result);
  program.results = {result};
  ProgramPeak peak = plan.peak();
  EXPECT_EQ(peak.instruction, "1");
  EXPECT_EQ(peak.bytes, 64u + 128);
}

TEST(PlanMemoryReport, OnlyTheInstructionsOfAnInstanceCount) {
  CopyPlan plan;
  uint32_t a = plan.bytes("a", 128, 0), b = plan.bytes("b", 128, 128), c = plan.bytes("c", 64, 256);
  auto &program = plan.program("train", {"first"});
  auto &block = program.instructions;
  plan.fill(block, a);
  block.back()->when = fb::When::First;
  plan.copy(block, a, b);
  block.back()->when = fb::When::First;
  plan.fill(block, c);
  // `a` is written in the instance that reads it, so it does not live from the beginning.
  ProgramPeak peak = plan.peak();
  EXPECT_EQ(peak.instruction, "1");
  EXPECT_EQ(peak.bytes, 256u);
}

TEST(PlanMemoryReport, WhatAnUpdateReadsLivesToTheEndOfTrain) {
  CopyPlan plan;
  uint32_t gradient = plan.bytes("gradient", 128, 0), other = plan.bytes("other", 64, 128);
  auto &train = plan.program("train").instructions;
  plan.fill(train, gradient);
  plan.fill(train, other);
  auto &evaluate = plan.program("evaluate").instructions;
  plan.fill(evaluate, other);
  plan.copy(plan.program("update").instructions, gradient, plan.bytes("end", 128, 256));
  EXPECT_EQ(plan.peak(0).bytes, 128u + 64);
  EXPECT_EQ(plan.peak(0).instruction, "1");
  EXPECT_EQ(plan.peak(1).bytes, 64u);
  EXPECT_EQ(plan.peak(2).bytes, 256u);
}

TEST(PlanMemoryReport, SlicesLieWhereTheRankHasThem) {
  fb::PlanT plan = tinyPlan().plan;
  EXPECT_EQ(bufferOffset(plan, *plan.buffers[tiny::GradientSlice], 0), 0u);
  EXPECT_EQ(bufferOffset(plan, *plan.buffers[tiny::GradientSlice], 1), 32u);
  plan.mesh[0]->size = 3; // tp is faster than cp
  EXPECT_EQ(bufferOffset(plan, *plan.buffers[tiny::GradientSlice], 2), 0u);
  EXPECT_EQ(bufferOffset(plan, *plan.buffers[tiny::GradientSlice], 3), 32u);
  plan.buffers[tiny::GradientSlice]->slice_axes = {
      "cp", "tp"}; // mesh order, whatever the order of the list
  EXPECT_EQ(bufferOffset(plan, *plan.buffers[tiny::GradientSlice], 4), 4u * 32);
}
