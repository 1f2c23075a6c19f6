//===- Cpu.h - the fast CPU kernels, inside -----------------------------------===//
//
// Every kernel cuts its work into pieces whose size does not depend on the number of threads, and
// deals them to the pool.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_BACKENDS_CPU_CPU_H
#define RUNTIME_BACKENDS_CPU_CPU_H

#include "runtime/kernels/FunctionKernel.h"
#include "runtime/kernels/LaunchShapes.h"
#include "runtime/kernels/WorkerPool.h"

#include <algorithm>

namespace sft::cpu {

/// Calls body(begin, end) for every block of `size` of [0, total).
template <typename Body>
void forEachBlock(WorkerPool &pool, int64_t total, int64_t size, Body &&body) {
  pool.forEach((total + size - 1) / size, [&](int64_t block, int) {
    body(block * size, std::min(total, (block + 1) * size));
  });
}

void registerMatmul(KernelRegistry &registry);
void registerAttention(KernelRegistry &registry);
void registerEmbedding(KernelRegistry &registry);
void registerRows(KernelRegistry &registry);
void registerMemory(KernelRegistry &registry);

} // namespace sft::cpu

#endif // RUNTIME_BACKENDS_CPU_CPU_H
