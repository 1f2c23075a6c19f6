//===- SftInterfaces.h - what passes may ask an op ------------------------------===//
#ifndef DIALECTS_SFT_SFTINTERFACES_H
#define DIALECTS_SFT_SFTINTERFACES_H

#include "dialects/sft/FactorRule.h"
#include "dialects/sft/SftAttrs.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"

#include <functional>
#include <map>
#include <string>

namespace sftc {

/// Mesh axes that cut each factor of an op; factors that are not cut are absent.
using FactorAxes = std::map<std::string, mlir::ArrayAttr>;

/// What SequenceMultiple is asked about: the mesh and how the token axis is cut over it.
struct SequenceContext {
  int64_t token_ranks = 1; ///< ranks over which one pack is cut
  bool zigzag = false;
};

/// One reason for padding: the rows of a pack must divide by `multiple`.
struct SequenceNeed {
  int64_t multiple = 1;
  std::string why;
};

/// A row kernel: inputs with their access, results with theirs, and the arithmetic. `body` gets one scalar per input and
/// returns one per result.
struct RowSpec {
  llvm::SmallVector<std::pair<mlir::Value, AccessAttr>> inputs;
  llvm::SmallVector<AccessAttr> results;
  std::function<llvm::SmallVector<mlir::Value>(mlir::ImplicitLocOpBuilder &, mlir::ValueRange)> body;
};

/// One operand of a library kernel, in the order of its signature.
struct KernelOperand {
  enum Kind { Input, Output, TableInput, Absent } kind;
  mlir::Value value;   ///< Input: an operand; Output: a result
  std::string table;   ///< TableInput: kind of the batch table
  int64_t inout = -1;  ///< Output: number of the operand whose contents it starts from, or -1

  static KernelOperand input(mlir::Value value) { return value ? KernelOperand{Input, value, "", -1} : absent(); }
  static KernelOperand output(mlir::Value value, int64_t inout = -1) { return {Output, value, "", inout}; }
  static KernelOperand tableInput(std::string kind) { return {TableInput, {}, std::move(kind), -1}; }
  static KernelOperand absent() { return {Absent, {}, "", -1}; }
};

/// A launch of a kernel in Kernels.def.
struct KernelSpec {
  std::string kernel;
  llvm::SmallVector<KernelOperand> operands;
  llvm::SmallVector<mlir::NamedAttribute> parameters;
};

} // namespace sftc

#include "dialects/sft/SftInterfaces.h.inc"

#endif // DIALECTS_SFT_SFTINTERFACES_H
