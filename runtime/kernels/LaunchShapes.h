//===- LaunchShapes.h - operands of a launch by name, checked -----------------===//
//
// A KernelCall holds its operands in the order of Kernels.def. These structs give them names and
// sizes, and are the one place where the relations between the sizes of a launch are checked; every
// backend reads its calls through them. All functions throw sft::Error with the kernel, the place
// and the sizes when a relation does not hold.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_KERNELS_LAUNCHSHAPES_H
#define RUNTIME_KERNELS_LAUNCHSHAPES_H

#include "runtime/kernels/Kernel.h"

namespace sft {

/// An integer parameter of the call.
int64_t integerParameter(const KernelCall &call, const std::string &name);
/// Throws unless operand `index` has one of the dtypes.
void requireDType(const KernelCall &call, size_t index, std::initializer_list<DType> dtypes);
/// Throws unless the call's workspace has at least this many bytes.
void requireWorkspace(const KernelCall &call, size_t bytes);

/// c[rows, columns] (+)= op(a)[rows, inner] op(b)[inner, columns] + bias[columns].
struct MatmulLaunch {
  explicit MatmulLaunch(const KernelCall &call);

  TensorRef a, b, bias, c;
  int64_t rows, columns, inner;
  bool transposeA, transposeB, accumulate;
};

/// q rows [qRow, qRow + qRows) attend to kv rows [kvRow, kvRow + kvRows).
struct AttentionRange {
  int64_t qRow, qRows, kvRow, kvRows;
};

/// square, rectangle and their gradients. Query head h is columns [h * headDim, (h + 1) * headDim)
/// of q and reads kv head h / (heads / kvHeads).
struct AttentionLaunch {
  explicit AttentionLaunch(const KernelCall &call);

  /// Entry `index` of the range table; false at the end of the list. Throws when it leaves the
  /// operands.
  bool range(int64_t index, AttentionRange &out) const;

  bool causal; ///< square: row i of a range sees the range's kv rows 0..i
  bool gradient;
  TensorRef q, k, v, o, lse, ranges;
  TensorRef dout, dq, dk, dv; ///< gradient only
  int64_t qRows, kvRows, heads, kvHeads, headDim, rangeCapacity;
  float scale;
};

/// embedding_grad.
struct EmbeddingLaunch {
  explicit EmbeddingLaunch(const KernelCall &call);

  /// Segment `index`: dw row `row` gets the dy rows order[begin..end). False at the end of the
  /// list; `row` is negative for a token that this rank does not hold.
  bool segment(int64_t index, int64_t &row, int64_t &begin, int64_t &end) const;

  TensorRef dy, order, segments, rowOffset, dw;
  int64_t rows, width, vocabulary, segmentCapacity;
  bool accumulate;
};

/// permute_slots.
struct PermuteLaunch {
  explicit PermuteLaunch(const KernelCall &call);

  /// Slot `index` of x goes to / slot `index` of y comes from; throws when the table leaves the
  /// operands.
  void move(int64_t index, int64_t &from, int64_t &to) const;

  TensorRef x, permutation, y;
  int64_t slots;
  size_t slotBytes;
  bool inverse;
};

/// row_kernel.
struct RowLaunch {
  explicit RowLaunch(const KernelCall &call);

  bool isColumnSum(size_t operand) const { return operand < 64 && (columnSums >> operand & 1); }

  int64_t rows, blockRows, blocks;
  uint64_t columnSums;
};

/// Throws unless operands `first` and `second` have the same number of elements.
void requireSameElements(const KernelCall &call, size_t first, size_t second);

} // namespace sft

#endif // RUNTIME_KERNELS_LAUNCHSHAPES_H
