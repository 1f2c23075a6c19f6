//===- RowKernel.h - what a target needs to know of an sft.fused ---------------===//
//
// A region is straight-line arithmetic on the scalars of one element. A target turns it into loops:
// over the rows, and inside a row one loop over the columns for every stage. The stages follow from
// `sft.row_reduce`: a reduction's result is known only after a loop over all columns, so whatever
// depends on it comes later.
//
//===--------------------------------------------------------------------------===//
#ifndef PASSES_CODEGEN_ROWKERNEL_H
#define PASSES_CODEGEN_ROWKERNEL_H

#include "dialects/sft/SftOps.h"
#include "runtime/plan/plan_generated.h"

#include <string>

namespace sftc {

/// How often a value of a region changes.
enum class RowLevel { Uniform, Row, Element };

/// One operand of the generated function: the inputs of the op, then its results.
struct RowKernelOperand {
  AccessAttr access;
  mlir::Type type;   ///< of an element in memory
  int64_t width;     ///< elements from one row of the operand to the next
  int64_t tableRows; ///< Gathered: rows of the table, otherwise 0
  bool output;

  AccessKind kind() const { return access.getKind(); }
};

/// The view of one verified sft.fused. It does not depend on the number of rows.
class RowKernel {
public:
  explicit RowKernel(FusedOp op);

  FusedOp getOp() const { return op; }
  mlir::Block &getBody() const { return *body; }
  int64_t getWidth() const { return width; }
  llvm::ArrayRef<RowKernelOperand> getOperands() const { return operands; }
  unsigned getNumInputs() const { return body->getNumArguments(); }
  /// The value that is written to an output operand.
  mlir::Value getStored(unsigned operand) const;

  RowLevel getLevel(mlir::Value value) const { return values.lookup(value).level; }
  /// Number of loops over the columns that end before the value can be computed.
  unsigned getStage(mlir::Value value) const { return values.lookup(value).stage; }
  /// Number of loops over the columns. All outputs with one element a column are written in the
  /// last: when it runs, every other loop has read its operands, which the outputs may share memory
  /// with.
  unsigned getNumStages() const { return stages; }
  /// Reductions made by the loop of a stage.
  llvm::SmallVector<RowReduceOp> getReductions(unsigned stage) const;
  /// Values that the loop of a stage computes for each element, in program order; arguments are not
  /// among them.
  llvm::SmallVector<mlir::Operation *> getElementOps(unsigned stage) const;

  /// Equal for kernels whose generated code would be equal.
  std::string getStructuralKey() const;

private:
  struct ValueInfo {
    RowLevel level = RowLevel::Uniform;
    unsigned stage = 0;
  };

  FusedOp op;
  mlir::Block *body;
  int64_t width;
  unsigned stages = 0;
  llvm::SmallVector<RowKernelOperand> operands;
  llvm::DenseMap<mlir::Value, ValueInfo> values;
  llvm::SmallVector<llvm::SmallVector<RowReduceOp>> reductions; ///< by stage
};

/// The region in the form that a plan carries for the interpreter; an error when it holds an
/// operation that the form lacks.
mlir::FailureOr<sft::fb::RowBodyT> toRowBody(FusedOp op);

} // namespace sftc

#endif // PASSES_CODEGEN_ROWKERNEL_H
