// Kernels that move, fill or add whole buffers.

#include "runtime/backends/reference/Reference.h"

#include <cstring>

using namespace sft;
using namespace sft::reference;

namespace {

void checkPair(const KernelCall &call) {
  checkDTypes(call);
  requireSameElements(call, 0, 1);
}

void checkCopy(const KernelCall &call) {
  checkPair(call);
  requireDType(call, 1, {call.operands[0].dtype});
}

void checkAccumulate(const KernelCall &call) {
  checkPair(call);
  integerParameter(call, "accumulate");
}

void checkPermute(const KernelCall &call) {
  checkDTypes(call);
  PermuteLaunch launch(call);
}

void runCopy(const KernelCall &call, WorkerPool &) {
  std::memmove(call.operands[1].data, call.operands[0].data, call.operands[1].bytes());
}

void runFill(const KernelCall &call, WorkerPool &) {
  const TensorRef &x = call.operands[0];
  double value = call.floats.at("value");
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (x.dtype == DType::I32)
      x.as<int32_t>()[i] = int32_t(value);
    else
      store(x, i, value);
  }
}

void runAccumulate(const KernelCall &call, WorkerPool &) {
  const TensorRef &x = call.operands[0], &y = call.operands[1];
  bool add = integerParameter(call, "accumulate");
  for (int64_t i = 0; i < y.elements(); ++i)
    store(y, i, load(x, i) + (add ? load(y, i) : 0));
}

void runSumOfSquares(const KernelCall &call, WorkerPool &) {
  const TensorRef &x = call.operands[0];
  double sum = 0;
  for (int64_t i = 0; i < x.elements(); ++i)
    sum += load(x, i) * load(x, i);
  store(call.operands[1], 0, sum);
}

void runPermute(const KernelCall &call, WorkerPool &) {
  PermuteLaunch p(call);
  for (int64_t slot = 0; slot < p.slots; ++slot) {
    int64_t from, to;
    p.move(slot, from, to);
    std::memcpy(p.y.as<char>() + size_t(to) * p.slotBytes,
                p.x.as<char>() + size_t(from) * p.slotBytes, p.slotBytes);
  }
}

} // namespace

void reference::registerMemory(KernelRegistry &registry) {
  registry.add(functionKernel("copy", checkCopy, runCopy));
  registry.add(functionKernel("fill", checkDTypes, runFill));
  registry.add(functionKernel("accumulate", checkAccumulate, runAccumulate));
  registry.add(functionKernel("sum_of_squares", checkDTypes, runSumOfSquares));
  registry.add(functionKernel("permute_slots", checkPermute, runPermute));
}
