#include "dialects/sft/SftOps.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace sftc;

/// Checks the axes and returns the size of the group.
static FailureOr<int64_t> groupSize(Operation *op, ArrayAttr axes) {
  if (axes.empty())
    return op->emitOpError() << "names no mesh axis; a collective needs at least one";
  auto module = op->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<MeshAttr>(kMeshAttr) : MeshAttr();
  if (!mesh)
    return op->emitOpError() << "stands in a module without `" << kMeshAttr << "`";
  llvm::StringSet<> seen;
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    if (!mesh.hasAxis(axis.getValue()))
      return op->emitOpError() << "names axis " << axis << ", which the mesh " << mesh << " does not have";
    if (!seen.insert(axis.getValue()).second)
      return op->emitOpError() << "names axis " << axis << " twice";
  }
  return mesh.getSize(axes);
}

/// Checks that `large` equals `small` but for `dimension`, which is `factor` times as big.
static LogicalResult verifyScaled(Operation *op, Value large, Value small, int64_t dimension, int64_t factor) {
  RankedTensorType big = tensorType(large), little = tensorType(small);
  if (dimension < 0 || dimension >= big.getRank() || big.getRank() != little.getRank())
    return op->emitOpError() << "dimension " << dimension << " is not one of " << big;
  if (withDimension(little, dimension, little.getDimSize(dimension) * factor) != big)
    return op->emitOpError() << big << " is not " << factor << " times " << little << " along dimension " << dimension;
  return success();
}

LogicalResult AllGatherOp::verify() {
  FailureOr<int64_t> size = groupSize(*this, getAxes()); // C1
  return failed(size) ? failure() : verifyScaled(*this, getResult(), getInput(), getDimension(), *size); // C2
}

LogicalResult ReduceScatterOp::verify() {
  FailureOr<int64_t> size = groupSize(*this, getAxes()); // C1
  return failed(size) ? failure() : verifyScaled(*this, getInput(), getResult(), getDimension(), *size); // C2
}

LogicalResult SliceOp::verify() {
  FailureOr<int64_t> size = groupSize(*this, getAxes()); // C1
  return failed(size) ? failure() : verifyScaled(*this, getInput(), getResult(), getDimension(), *size); // C2
}

LogicalResult AllReduceOp::verify() {
  if (failed(groupSize(*this, getAxes()))) // C1
    return failure();
  if (getInput().getType() != getResult().getType()) // C2
    return emitOpError() << "turns " << getInput().getType() << " into " << getResult().getType() << "; the types must agree";
  return success();
}

LogicalResult AllToAllOp::verify() {
  FailureOr<int64_t> size = groupSize(*this, getAxes()); // C1
  if (failed(size))
    return failure();
  RankedTensorType input = tensorType(getInput());
  int64_t split = getSplit(), concat = getConcat();
  if (split < 0 || concat < 0 || split >= input.getRank() || concat >= input.getRank() || split == concat ||
      input.getDimSize(split) % *size != 0) // C2
    return emitOpError() << "cannot cut dimension " << split << " and put dimension " << concat << " of " << input
                         << " together over " << *size << " ranks";
  RankedTensorType expected = withDimension(input, split, input.getDimSize(split) / *size);
  expected = withDimension(expected, concat, input.getDimSize(concat) * *size);
  if (expected != getResult().getType()) // C2
    return emitOpError() << "gives " << expected << ", not " << getResult().getType();
  return success();
}

LogicalResult ReorderOp::verify() {
  FailureOr<int64_t> size = groupSize(*this, getAxes()); // C1
  if (failed(size))
    return failure();
  if (getInput().getType() != getResult().getType()) // C2
    return emitOpError() << "turns " << getInput().getType() << " into " << getResult().getType() << "; the types must agree";
  RankedTensorType input = tensorType(getInput());
  int64_t rows = input.getRank() == 0 ? 1 : input.getDimSize(0);
  if (rows % (2 * *size) != 0) // C3
    return emitOpError() << "has " << rows << " rows, which do not divide into " << 2 * *size << " slots";
  return success();
}
