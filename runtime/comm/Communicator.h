//===- Communicator.h - collectives of one rank in one group -------------------===//
#ifndef RUNTIME_COMM_COMMUNICATOR_H
#define RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/base/DType.h"

#include <cstddef>
#include <cstdint>

namespace sft {

enum class ReduceOperator : uint8_t { Sum, Max };

/// One rank's handle on a group of ranks. Every rank of the group makes the same calls in the same order; each call returns
/// when this rank's output is complete and its input may be reused. Reductions add in rank order, so all ranks and all runs get
/// the same bits. A call throws sft::Error(PeerFailed) when another rank has failed.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// output[r * bytes .. ) = rank r's input. In place when input == output + rank() * bytes.
  virtual void allGather(const void *input, void *output, size_t bytes) = 0;
  /// output = the reduction of every rank's input[rank() * count .. ); count elements. In place when output == input +
  /// rank() * count elements.
  virtual void reduceScatter(const void *input, void *output, int64_t count, DType dtype, ReduceOperator op) = 0;
  /// output = the reduction of every rank's input; may be in place.
  virtual void allReduce(const void *input, void *output, int64_t count, DType dtype, ReduceOperator op) = 0;
  /// output[r * bytes .. ) = rank r's input[rank() * bytes .. ). Not in place.
  virtual void allToAll(const void *input, void *output, size_t bytes) = 0;
  virtual void barrier() = 0;
};

} // namespace sft

#endif // RUNTIME_COMM_COMMUNICATOR_H
