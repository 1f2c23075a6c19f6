//===- Collectives.h - collective instructions of a plan -------------------------===//
#ifndef RUNTIME_EXECUTOR_COLLECTIVES_H
#define RUNTIME_EXECUTOR_COLLECTIVES_H

#include "runtime/comm/Communicator.h"
#include "runtime/executor/Executor.h"

namespace sft {

/// A collective over `group`. In a group of one rank it is a copy, or nothing in place.
std::unique_ptr<BoundStep> bindCollective(const fb::InstructionT &instruction,
                                          const TensorRef &input, const TensorRef &output,
                                          Communicator &group);

} // namespace sft

#endif // RUNTIME_EXECUTOR_COLLECTIVES_H
