//===- Reference.h - the plain kernels, inside -------------------------------===//
//
// Loops that follow the definitions in Kernels.def, written to be read and believed. Sums are made
// in fp64.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_BACKENDS_REFERENCE_REFERENCE_H
#define RUNTIME_BACKENDS_REFERENCE_REFERENCE_H

#include "runtime/kernels/FunctionKernel.h"
#include "runtime/kernels/LaunchShapes.h"
#include "runtime/kernels/WorkerPool.h"

namespace sft::reference {

/// Element `index` of an f32 or bf16 tensor.
inline double load(const TensorRef &tensor, int64_t index) {
  return tensor.dtype == DType::BF16 ? bf16ToFloat(tensor.as<uint16_t>()[index])
                                     : tensor.as<float>()[index];
}

/// Rounds to the tensor's type.
inline void store(const TensorRef &tensor, int64_t index, double value) {
  if (tensor.dtype == DType::BF16)
    tensor.as<uint16_t>()[index] = floatToBf16(float(value));
  else
    tensor.as<float>()[index] = float(value);
}

/// Throws unless every operand that is present is f32, bf16 or i32.
void checkDTypes(const KernelCall &call);

void registerMatmul(KernelRegistry &registry);
void registerAttention(KernelRegistry &registry);
void registerEmbedding(KernelRegistry &registry);
void registerRows(KernelRegistry &registry);
void registerMemory(KernelRegistry &registry);

} // namespace sft::reference

#endif // RUNTIME_BACKENDS_REFERENCE_REFERENCE_H
