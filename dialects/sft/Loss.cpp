#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

/// Rows of `of`, one f32 each.
static RankedTensorType rowScalars(Value of) {
  return RankedTensorType::get({tensorType(of).getDimSize(0)}, Float32Type::get(of.getContext()));
}

/// The first column that a rank holds when factor v is cut; null otherwise.
static Value columnOffset(Operation *op, const FactorAxes &axes, Value logits) {
  auto it = axes.find("v");
  if (it == axes.end())
    return {};
  OpBuilder builder(op);
  return AxisOffsetOp::create(builder, op->getLoc(), RankedTensorType::get({1}, builder.getI32Type()), it->second,
                              builder.getI64IntegerAttr(tensorType(logits).getDimSize(1)));
}

/// Whether the element's column is `index` - `offset` (offset may be null).
static Value isColumn(ImplicitLocOpBuilder &b, Value index, Value offset) {
  Value local = offset ? arith::SubIOp::create(b, index, offset).getResult() : index;
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, ColumnIndexOp::create(b, b.getI32Type()), local);
}

/// `value`, or 0 where the target is -1.
static Value zeroIfIgnored(ImplicitLocOpBuilder &b, Value target, Value value) {
  Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  Value ignored = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, target, zero);
  return arith::SelectOp::create(b, ignored, rowConstant(b, 0.0), value);
}

//===----------------------------------------------------------------------===//
// CrossEntropyOp
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                               OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(rowScalars(operands[0]));
  return success();
}

std::string CrossEntropyOp::getFactorString() { return "t v!, t -> t"; }

SmallVector<Value> CrossEntropyOp::decompose(OpBuilder &builder) {
  Value maximum = RowMaxOp::create(builder, getLoc(), getLogits());
  Value sum = ExpSumOp::create(builder, getLoc(), getLogits(), maximum);
  Value picked = PickOp::create(builder, getLoc(), getLogits(), getTargets(), Value());
  return {TokenLossOp::create(builder, getLoc(), maximum, sum, picked, getTargets())};
}

void CrossEntropyOp::buildGradient(OpBuilder &builder, ArrayRef<Value> gradients, SmallVectorImpl<Value> &result) {
  // Built from the same row statistics as `decompose`; CSE leaves one of each.
  Value maximum = RowMaxOp::create(builder, getLoc(), getLogits());
  Value sum = ExpSumOp::create(builder, getLoc(), getLogits(), maximum);
  Value gradient = CrossEntropyGradOp::create(builder, getLoc(), gradients[0], getLogits(), maximum, sum, getTargets(), Value());
  result.assign({gradient, Value()});
}

//===----------------------------------------------------------------------===//
// RowMaxOp
//===----------------------------------------------------------------------===//

LogicalResult RowMaxOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                         OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(rowScalars(operands[0]));
  return success();
}

std::string RowMaxOp::getFactorString() { return "t v -> t"; }

ReductionKind RowMaxOp::getPartialKind() { return ReductionKind::Max; }

RowSpec RowMaxOp::getRowSpec() {
  return {{{getInput(), AccessAttr::get(getContext(), AccessKind::Row)}},
          {AccessAttr::get(getContext(), AccessKind::Scalar)},
          [](ImplicitLocOpBuilder &b, ValueRange in) {
            return SmallVector<Value>{RowReduceOp::create(b, ReductionKind::Max, in[0])};
          }};
}

//===----------------------------------------------------------------------===//
// ExpSumOp
//===----------------------------------------------------------------------===//

LogicalResult ExpSumOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                         OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(rowScalars(operands[0]));
  return success();
}

std::string ExpSumOp::getFactorString() { return "t v, t -> t"; }

RowSpec ExpSumOp::getRowSpec() {
  AccessAttr scalar = AccessAttr::get(getContext(), AccessKind::Scalar);
  return {{{getInput(), AccessAttr::get(getContext(), AccessKind::Row)}, {getMaximum(), scalar}},
          {scalar},
          [](ImplicitLocOpBuilder &b, ValueRange in) {
            Value exponential = math::ExpOp::create(b, arith::SubFOp::create(b, in[0], in[1]));
            return SmallVector<Value>{RowReduceOp::create(b, ReductionKind::Sum, exponential)};
          }};
}

//===----------------------------------------------------------------------===//
// PickOp
//===----------------------------------------------------------------------===//

LogicalResult PickOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                       OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(rowScalars(operands[0]));
  return success();
}

std::string PickOp::getFactorString() { return getColumnOffset() ? "t v, t, x! -> t" : "t v, t -> t"; }

void PickOp::localize(const FactorAxes &axes) {
  if (Value offset = columnOffset(*this, axes, getInput()))
    getColumnOffsetMutable().assign(offset);
}

RowSpec PickOp::getRowSpec() {
  MLIRContext *context = getContext();
  RowSpec spec;
  spec.inputs = {{getInput(), AccessAttr::get(context, AccessKind::Row)}, {getIndices(), AccessAttr::get(context, AccessKind::Scalar)}};
  if (getColumnOffset())
    spec.inputs.push_back({getColumnOffset(), AccessAttr::get(context, AccessKind::Uniform)});
  spec.results = {AccessAttr::get(context, AccessKind::Scalar)};
  spec.body = [](ImplicitLocOpBuilder &b, ValueRange in) {
    Value here = isColumn(b, in[1], in.size() > 2 ? in[2] : Value());
    Value picked = arith::SelectOp::create(b, here, in[0], rowConstant(b, 0.0));
    return SmallVector<Value>{RowReduceOp::create(b, ReductionKind::Sum, picked)};
  };
  return spec;
}

//===----------------------------------------------------------------------===//
// TokenLossOp
//===----------------------------------------------------------------------===//

LogicalResult TokenLossOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(operands[0].getType());
  return success();
}

std::string TokenLossOp::getFactorString() { return "t, t, t, t -> t"; }

RowSpec TokenLossOp::getRowSpec() {
  AccessAttr scalar = AccessAttr::get(getContext(), AccessKind::Scalar);
  return {{{getMaximum(), scalar}, {getSum(), scalar}, {getPicked(), scalar}, {getTargets(), scalar}},
          {scalar},
          [](ImplicitLocOpBuilder &b, ValueRange in) {
            // maximum - picked first: both are near the logits' size, the logarithm is small.
            Value gap = arith::SubFOp::create(b, in[0], in[2]);
            Value loss = arith::AddFOp::create(b, gap, math::LogOp::create(b, in[1]));
            return SmallVector<Value>{zeroIfIgnored(b, in[3], loss)};
          }};
}

//===----------------------------------------------------------------------===//
// CrossEntropyGradOp
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                                   OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(operands[1].getType());
  return success();
}

std::string CrossEntropyGradOp::getFactorString() {
  return getColumnOffset() ? "t, t v, t, t, t, x! -> t v" : "t, t v, t, t, t -> t v";
}

void CrossEntropyGradOp::localize(const FactorAxes &axes) {
  if (Value offset = columnOffset(*this, axes, getLogits()))
    getColumnOffsetMutable().assign(offset);
}

RowSpec CrossEntropyGradOp::getRowSpec() {
  MLIRContext *context = getContext();
  AccessAttr scalar = AccessAttr::get(context, AccessKind::Scalar), row = AccessAttr::get(context, AccessKind::Row);
  RowSpec spec;
  spec.inputs = {{getGradient(), scalar}, {getLogits(), row}, {getMaximum(), scalar}, {getSum(), scalar}, {getTargets(), scalar}};
  if (getColumnOffset())
    spec.inputs.push_back({getColumnOffset(), AccessAttr::get(context, AccessKind::Uniform)});
  spec.results = {row};
  spec.body = [](ImplicitLocOpBuilder &b, ValueRange in) {
    Value exponential = math::ExpOp::create(b, arith::SubFOp::create(b, in[1], in[2]));
    Value probability = arith::DivFOp::create(b, exponential, in[3]);
    Value here = isColumn(b, in[4], in.size() > 5 ? in[5] : Value());
    Value hot = arith::SelectOp::create(b, here, rowConstant(b, 1.0), rowConstant(b, 0.0));
    Value gradient = arith::MulFOp::create(b, in[0], arith::SubFOp::create(b, probability, hot));
    return SmallVector<Value>{zeroIfIgnored(b, in[4], gradient)};
  };
  return spec;
}
