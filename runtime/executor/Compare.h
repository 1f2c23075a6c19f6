//===- Compare.h - a backend's kernel against the reference ----------------------===//
//
// The step of a launch under --compare: the operands that the launch may overwrite are copied, the
// backend's kernel runs, the reference runs on the copies, and the outputs are compared. The run
// goes on with the backend's numbers.
//
// Two f32 or bf16 outputs agree when |a - b| <= relative * (largest finite |reference| of that
// output) + floor; NaN agrees with NaN, an infinity with the same infinity. Integers must be equal.
// Per kernel:
//
//   copy, fill, permute_slots       relative 0: they move values
//   square_grad, rectangle_grad     relative 2e-5, floor 1e-6 * largest |dout|: rows of one or two
//   tokens have gradients of q
//                                   and k that cancel to rounding noise of dout's size
//   all others                      relative 1e-5
// For bf16 outputs 2^-8 is added to `relative`: one rounding.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_EXECUTOR_COMPARE_H
#define RUNTIME_EXECUTOR_COMPARE_H

#include "runtime/executor/Executor.h"

namespace sft {

/// A launch and which of its operands it writes.
struct Launch {
  KernelCall call;
  std::vector<uint8_t> writes;       ///< by operand
  std::vector<std::string> operands; ///< "NAME = BUFFER", by operand, for messages
  std::string place;                 ///< "instruction I of PROGRAM, LOCATION"
};

/// Bytes of storage that comparing this launch needs.
size_t compareBytes(const Launch &launch);

/// `storage` has compareBytes(launch) bytes and may be shared by launches, as they run one after
/// another.
std::unique_ptr<BoundStep> bindCompare(const Launch &launch, const KernelEntry &backend,
                                       const KernelEntry &reference, void *storage,
                                       WorkerPool &pool);

} // namespace sft

#endif // RUNTIME_EXECUTOR_COMPARE_H
