#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

RankedTensorType sftc::withDimension(RankedTensorType type, unsigned dimension, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dimension] = size;
  return RankedTensorType::get(shape, type.getElementType());
}

Value sftc::rowConstant(ImplicitLocOpBuilder &builder, double value) {
  return arith::ConstantOp::create(builder, builder.getF32FloatAttr(value));
}

//===----------------------------------------------------------------------===//
// Parameters and state
//===----------------------------------------------------------------------===//

LogicalResult ParameterOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (int64_t(getRoles().size()) != type.getRank()) // C1
    return emitOpError() << "has " << getRoles().size() << " roles for " << type.getRank() << " dimensions";
  if (!type.hasStaticShape() || type.getNumElements() == 0) // C2
    return emitOpError() << "has type " << type << "; a parameter's shape is static and not empty";
  return success();
}

LogicalResult StateOp::verify() {
  static constexpr StringLiteral kinds[] = {"parameter", "gradient", "exp_avg", "exp_avg_sq", "scalar"};
  if (!llvm::is_contained(kinds, getKind())) // C1
    return emitOpError() << "has kind \"" << getKind() << "\"; kinds are parameter, gradient, exp_avg, exp_avg_sq and scalar";
  return success();
}

/// The shapes agree, or the symbol's type is the whole of a value that is already cut.
static LogicalResult verifyType(Operation *op, Type value, Operation *symbol, Type declared) {
  auto valueType = cast<RankedTensorType>(value), declaredType = cast<RankedTensorType>(declared);
  bool agree = valueType.getRank() == declaredType.getRank() && valueType.getElementType() == declaredType.getElementType();
  for (int64_t i = 0; agree && i < valueType.getRank(); ++i)
    agree = valueType.getDimSize(i) > 0 && declaredType.getDimSize(i) % valueType.getDimSize(i) == 0;
  if (agree) // C2
    return success();
  InFlightDiagnostic diagnostic = op->emitOpError() << "has type " << value << " but the symbol has type " << declared;
  diagnostic.attachNote(symbol->getLoc()) << "declared here";
  return diagnostic;
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  Operation *symbol = tables.lookupNearestSymbolFrom(*this, getSymbolAttr());
  if (auto parameter = dyn_cast_or_null<ParameterOp>(symbol))
    return verifyType(*this, getResult().getType(), symbol, parameter.getType());
  if (auto state = dyn_cast_or_null<StateOp>(symbol))
    return verifyType(*this, getResult().getType(), symbol, state.getType());
  return emitOpError() << "reads " << getSymbolAttr() << ", which is no sft.parameter or sft.state"; // C1
}

LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  Operation *symbol = tables.lookupNearestSymbolFrom(*this, getSymbolAttr());
  auto state = dyn_cast_or_null<StateOp>(symbol);
  if (!state) // C1
    return emitOpError() << "writes " << getSymbolAttr() << ", which is no sft.state";
  return verifyType(*this, getValue().getType(), symbol, state.getType());
}

LogicalResult AccumulateGradientOp::verifySymbolUses(SymbolTableCollection &tables) {
  Operation *symbol = tables.lookupNearestSymbolFrom(*this, getSymbolAttr());
  auto parameter = dyn_cast_or_null<ParameterOp>(symbol);
  if (!parameter) // C1
    return emitOpError() << "adds to the gradient of " << getSymbolAttr() << ", which is no sft.parameter";
  return verifyType(*this, getValue().getType(), symbol, parameter.getType());
}

std::string AccumulateGradientOp::getFactorString() { return tensorType(getValue()).getRank() == 1 ? "a ->" : "a b ->"; }

bool AccumulateGradientOp::acceptsPartial() { return true; }

LogicalResult AxisOffsetOp::verify() {
  if (int64_t(getScale()) < 1) // C1
    return emitOpError() << "scale is " << int64_t(getScale()) << "; it is at least 1";
  return success();
}

//===----------------------------------------------------------------------===//
// FusedOp
//===----------------------------------------------------------------------===//

int64_t FusedOp::getRows() {
  auto rowsOf = [](AccessAttr access, Value value) -> int64_t {
    switch (access.getKind()) {
    case AccessKind::Row:
    case AccessKind::Scalar:
    case AccessKind::Periodic:
    case AccessKind::Partner: {
      // Also asked before shapes are verified.
      RankedTensorType type = tensorType(value);
      return type.getRank() == 0 ? -1 : type.getDimSize(0);
    }
    default:
      return -1;
    }
  };
  for (auto [i, result] : llvm::enumerate(getResults()))
    if (int64_t rows = rowsOf(getOutputAccess(i), result); rows >= 0)
      return rows;
  for (auto [i, input] : llvm::enumerate(getInputs()))
    if (int64_t rows = rowsOf(getInputAccess(i), input); rows >= 0)
      return rows;
  return 1;
}

/// What is wrong with the shape of an operand or result, or nothing.
static std::string shapeProblem(AccessAttr access, RankedTensorType type, int64_t rows, int64_t width) {
  auto is = [&](ArrayRef<int64_t> shape) { return type.getShape() == shape; };
  auto wrong = [&](const Twine &expected) {
    std::string text;
    llvm::raw_string_ostream(text) << "has type " << type << "; " << expected;
    return text;
  };
  switch (access.getKind()) {
  case AccessKind::Row:
    return is({rows, width}) ? "" : wrong("row access needs " + Twine(rows) + "x" + Twine(width));
  case AccessKind::Partner:
    if (access.getPeriod() <= 0 || access.getPeriod() % 2 || width % access.getPeriod())
      return wrong("the period " + Twine(access.getPeriod()) + " must be even and divide " + Twine(width));
    return is({rows, width}) ? "" : wrong("partner access needs " + Twine(rows) + "x" + Twine(width));
  case AccessKind::Periodic:
    if (access.getPeriod() <= 0 || width % access.getPeriod())
      return wrong("the period " + Twine(access.getPeriod()) + " must divide " + Twine(width));
    return is({rows, access.getPeriod()}) ? "" : wrong("periodic access needs " + Twine(rows) + "x" + Twine(access.getPeriod()));
  case AccessKind::Gathered:
    if (access.getPeriod() <= 0 || width % access.getPeriod())
      return wrong("the period " + Twine(access.getPeriod()) + " must divide " + Twine(width));
    return type.getRank() == 2 && type.getDimSize(1) == access.getPeriod()
               ? ""
               : wrong("gathered access needs rows of " + Twine(access.getPeriod()));
  case AccessKind::Column:
  case AccessKind::ColumnSum:
    return is({width}) ? "" : wrong("column access needs " + Twine(width));
  case AccessKind::Scalar:
    return is({rows}) ? "" : wrong("scalar access needs " + Twine(rows));
  case AccessKind::Uniform:
    return type.getRank() == 1 && access.getElement() >= 0 && access.getElement() < type.getDimSize(0)
               ? ""
               : wrong("uniform access needs an element inside a vector");
  }
  return "";
}

LogicalResult FusedOp::verify() {
  Block &block = getBody().front();
  if (getOperandAccess().size() != getInputs().size() || getResultAccess().size() != getNumResults()) // C1
    return emitOpError() << "has " << getInputs().size() << " operands and " << getNumResults() << " results but "
                         << getOperandAccess().size() << " and " << getResultAccess().size() << " accesses";
  for (ArrayAttr accesses : {getOperandAccess(), getResultAccess()})
    for (Attribute access : accesses)
      if (!isa<AccessAttr>(access)) // C1
        return emitOpError() << access << " is no #sft.access";
  if (block.getNumArguments() != getInputs().size()) // C2
    return emitOpError() << "body takes " << block.getNumArguments() << " scalars for " << getInputs().size() << " operands";
  int64_t rows = getRows(), width = getWidth();
  if (width < 1)
    return emitOpError() << "width is " << width << "; a row has at least one column";
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    bool integer = tensorType(input).getElementType().isInteger(32);
    Type scalar = block.getArgument(i).getType();
    if (integer ? !scalar.isInteger(32) : !scalar.isF32()) // C2
      return emitOpError() << "body argument " << i << " has type " << scalar << " for an operand of type " << input.getType();
    AccessAttr access = getInputAccess(i);
    if (access.getKind() == AccessKind::ColumnSum) // C4
      return emitOpError() << "operand " << i << " has access column_sum, which is for results";
    if (std::string problem = shapeProblem(access, tensorType(input), rows, width); !problem.empty()) // C3
      return emitOpError() << "operand " << i << " " << problem;
    if (access.getKind() == AccessKind::Gathered) {
      int64_t index = access.getIndex(), offset = access.getOffset(), operands = getInputs().size();
      if (index < 0 || index >= operands || getInputAccess(index).getKind() != AccessKind::Scalar ||
          !tensorType(getInputs()[index]).getElementType().isInteger(32)) // C3
        return emitOpError() << "operand " << i << " is gathered by operand " << index << ", which is no i32 scalar";
      if (offset != -1 && (offset < 0 || offset >= operands || getInputAccess(offset).getKind() != AccessKind::Uniform ||
                           !tensorType(getInputs()[offset]).getElementType().isInteger(32))) // C3
        return emitOpError() << "operand " << i << " is offset by operand " << offset << ", which is no i32 uniform";
    }
  }
  // This runs before the trait that requires the terminator.
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError() << "body ends in " << block.back().getName() << "; it must end in sft.yield";
  if (yield.getValues().size() != getNumResults()) // C1
    return emitOpError() << "yields " << yield.getValues().size() << " values for " << getNumResults() << " results";
  // A value depends on the column when it comes from an operand that does, unless a reduction lies between.
  llvm::DenseSet<Value> elementLevel;
  for (auto [i, argument] : llvm::enumerate(block.getArguments())) {
    AccessKind kind = getInputAccess(i).getKind();
    if (kind != AccessKind::Scalar && kind != AccessKind::Uniform)
      elementLevel.insert(argument);
  }
  for (Operation &op : block.without_terminator()) {
    if (!isa<RowReduceOp, ColumnIndexOp>(op) && !isa<arith::ArithDialect, math::MathDialect>(op.getDialect())) // C5
      return emitOpError() << "body holds " << op.getName() << "; only arith, math, sft.row_reduce and sft.column_index may stand there";
    bool element = isa<ColumnIndexOp>(op) || llvm::any_of(op.getOperands(), [&](Value v) { return elementLevel.contains(v); });
    if (element && !isa<RowReduceOp>(op))
      elementLevel.insert(op.getResults().begin(), op.getResults().end());
  }
  for (auto [i, result] : llvm::enumerate(getResults())) {
    AccessAttr access = getOutputAccess(i);
    AccessKind kind = access.getKind();
    if (kind != AccessKind::Row && kind != AccessKind::Scalar && kind != AccessKind::ColumnSum) // C4
      return emitOpError() << "result " << i << " has access " << access << "; results are row, scalar or column_sum";
    if (kind == AccessKind::Scalar && elementLevel.contains(yield.getValues()[i])) // C4
      return emitOpError() << "result " << i << " is a scalar of each row but depends on the column";
    if (std::string problem = shapeProblem(access, tensorType(result), rows, width); !problem.empty()) // C3
      return emitOpError() << "result " << i << " " << problem;
  }
  return success();
}
