//===- FactorState.h - the axes of the factors of an op ------------------------------------------===//
#ifndef PASSES_PARALLEL_FACTORSTATE_H
#define PASSES_PARALLEL_FACTORSTATE_H

#include "dialects/sft/FactorRule.h"
#include "dialects/sft/SftOps.h"

namespace sftc {

/// Axes that cut each dimension of a value.
using DimensionAxes = llvm::SmallVector<mlir::ArrayAttr>;

/// The axes of every factor of an op, joined from what is known of its operands and results. A factor takes the first axes it
/// meets; axes already taken by another factor of the op are left out.
class FactorState {
public:
  FactorState(ShardingRule op, const FactorRule &rule) : op_(op), rule_(rule) {}

  /// Learns from a value (`index` counts operands, then results).
  void join(unsigned index, llvm::ArrayRef<mlir::ArrayAttr> axes);
  /// Axes of the dimensions of a value in this op.
  DimensionAxes dimensions(unsigned index, mlir::MLIRContext *context) const;
  const FactorAxes &axes() const { return axes_; }
  /// Checks that every cut factor divides, and says which does not.
  mlir::LogicalResult verifyDivisible(MeshAttr mesh);

private:
  ShardingRule op_;
  const FactorRule &rule_;
  FactorAxes axes_;
};

/// Axes of every dimension from a list of roles and the module's role table; axes of size 1 are left out.
DimensionAxes axesOfRoles(mlir::ModuleOp module, mlir::ArrayAttr roles);

} // namespace sftc

#endif // PASSES_PARALLEL_FACTORSTATE_H
