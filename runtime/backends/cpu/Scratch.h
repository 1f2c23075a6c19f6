//===- Scratch.h - working memory of a thread ---------------------------------===//
#ifndef RUNTIME_BACKENDS_CPU_SCRATCH_H
#define RUNTIME_BACKENDS_CPU_SCRATCH_H

#include <cstddef>

namespace sft::cpu {

/// Announces, when a kernel is bound, how much scratch a piece of its work needs. A piece has a
/// fixed size, so this does not grow with the problem.
void reserveScratch(size_t bytes);

/// The calling thread's scratch, aligned to 64 bytes and as large as the largest reservation so
/// far. It is allocated at a thread's first use after a larger reservation and shared by all
/// kernels.
void *threadScratch();

} // namespace sft::cpu

#endif // RUNTIME_BACKENDS_CPU_SCRATCH_H
