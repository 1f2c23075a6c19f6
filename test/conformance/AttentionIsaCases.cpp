// The CPU backend picks one build of AttentionTasks.cpp by the machine; here every build that this
// machine can run must agree.

#include "runtime/backends/cpu/AttentionTasks.h"
#include "test/conformance/Conformance.h"

#include <cmath>

using namespace sft;
using namespace sft::test;

namespace {

constexpr int64_t kRows = 150, kHeads = 6, kKvHeads = 3, kHeadDim = 24;

/// o, lse, delta, dq, dk and dv of one causal range and, merged into them, of one rectangle over
/// the same rows.
std::vector<std::vector<float>> runTasks(const cpu::AttentionFunctions &functions) {
  int64_t D = kHeads * kHeadDim, E = kKvHeads * kHeadDim;
  std::vector<float> q = normal(kRows * D, 41), k = normal(kRows * E, 42),
                     v = normal(kRows * E, 43), dout = normal(kRows * D, 44);
  std::vector<std::vector<float>> results = {
      std::vector<float>(size_t(kRows * D)),      std::vector<float>(size_t(kRows * kHeads)),
      std::vector<float>(size_t(kRows * kHeads)), std::vector<float>(size_t(kRows * D)),
      std::vector<float>(size_t(kRows * E)),      std::vector<float>(size_t(kRows * E))};
  std::vector<float> scratch(size_t(cpu::attentionScratchFloats(kHeadDim)));
  cpu::AttentionOperands operands{};
  operands.q = q.data();
  operands.k = k.data();
  operands.v = v.data();
  operands.dout = dout.data();
  operands.o = results[0].data();
  operands.lse = results[1].data();
  operands.delta = results[2].data();
  operands.dq = results[3].data();
  operands.dk = results[4].data();
  operands.dv = results[5].data();
  operands.qColumns = D;
  operands.kvColumns = E;
  operands.heads = kHeads;
  operands.group = kHeads / kKvHeads;
  operands.headDim = kHeadDim;
  operands.scale = 1 / std::sqrt(float(kHeadDim));
  for (bool gradient : {false, true}) {
    if (gradient)
      functions.delta(operands, 0, kRows);
    for (bool causal : {true, false})
      for (int64_t block = 0; block * cpu::kAttentionBlock < kRows; ++block)
        for (int64_t head = 0; head < kHeads; ++head) {
          operands.causal = causal;
          cpu::AttentionTask task{0, kRows, 0, kRows, head, block};
          (gradient ? functions.gradQueries : functions.forward)(operands, task, scratch.data());
          if (gradient && head < kKvHeads)
            functions.gradKeys(operands, task, scratch.data());
        }
  }
  return results;
}

TEST(AttentionBuilds, Agree) {
  std::vector<std::vector<float>> baseline = runTasks(cpu::attentionBaseline);
  auto agree = [&](const cpu::AttentionFunctions &functions) {
    std::vector<std::vector<float>> actual = runTasks(functions);
    for (size_t i = 0; i < actual.size(); ++i)
      expectNear(std::vector<double>(actual[i].begin(), actual[i].end()),
                 std::vector<double>(baseline[i].begin(), baseline[i].end()), 2e-6,
                 "result " + std::to_string(i));
  };
  if (__builtin_cpu_supports("x86-64-v3"))
    agree(cpu::attentionAvx2);
  if (__builtin_cpu_supports("x86-64-v4"))
    agree(cpu::attentionAvx512);
}

} // namespace
