#include "runtime/backends/reference/Reference.h"

using namespace sft;

void reference::checkDTypes(const KernelCall &call) {
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.operands[i].present())
      requireDType(call, i, {DType::F32, DType::BF16, DType::I32});
}

void sft::registerReferenceKernels(KernelRegistry &registry) {
  reference::registerMatmul(registry);
  reference::registerAttention(registry);
  reference::registerEmbedding(registry);
  reference::registerRows(registry);
  reference::registerMemory(registry);
}
