// Kernels that move, fill or add whole buffers, in blocks of a fixed number of elements.

#include "runtime/backends/cpu/Cpu.h"

#include "runtime/plan/KernelSignature.h"

#include <cstring>

using namespace sft;
using namespace sft::cpu;

namespace {

constexpr int64_t kByteBlock = 1 << 20;

void checkCopy(const KernelCall &call) {
  requireSameElements(call, 0, 1);
  requireDType(call, 1, {call.operands[0].dtype});
}

void runCopy(const KernelCall &call, WorkerPool &pool) {
  const char *x = call.operands[0].as<char>();
  char *y = call.operands[1].as<char>();
  forEachBlock(
      pool, int64_t(call.operands[1].bytes()), kByteBlock,
      [&](int64_t begin, int64_t end) { std::memcpy(y + begin, x + begin, size_t(end - begin)); });
}

void checkFill(const KernelCall &call) {
  requireDType(call, 0, {DType::F32, DType::BF16, DType::I32});
}

template <typename Element> void fillWith(const TensorRef &x, Element value, WorkerPool &pool) {
  forEachBlock(pool, x.elements(), kSumBlock, [&](int64_t begin, int64_t end) {
    std::fill(x.as<Element>() + begin, x.as<Element>() + end, value);
  });
}

void runFill(const KernelCall &call, WorkerPool &pool) {
  const TensorRef &x = call.operands[0];
  double value = call.floats.at("value");
  if (x.dtype == DType::F32)
    fillWith(x, float(value), pool);
  else if (x.dtype == DType::I32)
    fillWith(x, int32_t(value), pool);
  else
    fillWith(x, floatToBf16(float(value)), pool);
}

void checkAccumulate(const KernelCall &call) {
  requireSameElements(call, 0, 1);
  requireDType(call, 0, {DType::F32});
  requireDType(call, 1, {DType::F32});
  integerParameter(call, "accumulate");
}

void runAccumulate(const KernelCall &call, WorkerPool &pool) {
  const float *x = call.operands[0].as<float>();
  float *y = call.operands[1].as<float>();
  bool add = integerParameter(call, "accumulate");
  forEachBlock(pool, call.operands[1].elements(), kSumBlock, [&](int64_t begin, int64_t end) {
    if (!add)
      return void(std::memcpy(y + begin, x + begin, size_t(end - begin) * sizeof(float)));
    for (int64_t i = begin; i < end; ++i)
      y[i] += x[i];
  });
}

void checkSumOfSquares(const KernelCall &call) {
  requireDType(call, 0, {DType::F32});
  requireDType(call, 1, {DType::F32});
  requireWorkspace(call, size_t((call.operands[0].elements() + kSumBlock - 1) / kSumBlock) *
                             sizeof(double));
}

void runSumOfSquares(const KernelCall &call, WorkerPool &pool) {
  constexpr int64_t kSums = 16; // independent sums, for the vector unit
  const TensorRef &x = call.operands[0];
  double *partials = static_cast<double *>(call.workspace);
  forEachBlock(pool, x.elements(), kSumBlock, [&](int64_t begin, int64_t end) {
    const float *data = x.as<float>();
    double sums[kSums] = {};
    int64_t i = begin;
    for (; i + kSums <= end; i += kSums)
      for (int64_t lane = 0; lane < kSums; ++lane)
        sums[lane] += double(data[i + lane]) * double(data[i + lane]);
    for (; i < end; ++i)
      sums[0] += double(data[i]) * double(data[i]);
    double total = 0;
    for (double sum : sums)
      total += sum;
    partials[begin / kSumBlock] = total;
  });
  double total = 0;
  for (int64_t block = 0; block * kSumBlock < x.elements(); ++block)
    total += partials[block];
  *call.operands[1].as<float>() = float(total);
}

void checkPermute(const KernelCall &call) { PermuteLaunch launch(call); }

void runPermute(const KernelCall &call, WorkerPool &pool) {
  PermuteLaunch p(call);
  pool.forEach(p.slots, [&](int64_t slot, int) {
    int64_t from, to;
    p.move(slot, from, to);
    std::memcpy(p.y.as<char>() + size_t(to) * p.slotBytes,
                p.x.as<char>() + size_t(from) * p.slotBytes, p.slotBytes);
  });
}

} // namespace

void cpu::registerMemory(KernelRegistry &registry) {
  registry.add(functionKernel("copy", checkCopy, runCopy));
  registry.add(functionKernel("fill", checkFill, runFill));
  registry.add(functionKernel("accumulate", checkAccumulate, runAccumulate));
  registry.add(functionKernel("sum_of_squares", checkSumOfSquares, runSumOfSquares));
  registry.add(functionKernel("permute_slots", checkPermute, runPermute));
}
