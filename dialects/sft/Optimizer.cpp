#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

static AccessAttr uniform(MLIRContext *context, int64_t element) {
  return AccessAttr::get(context, AccessKind::Uniform, 0, element, -1, -1);
}

/// Places in the table step_scalars (see Optimizer.td).
namespace scalar {
enum { LearningRate = 0, Beta1 = 1, Beta2 = 2, Eps = 3, WeightDecay = 4, Correction1 = 5, Correction2 = 6, Clip = 7,
       OneMinusBeta1 = 9, OneMinusBeta2 = 10 };
} // namespace scalar

static LogicalResult verifyOneType(Operation *op, ValueRange values) {
  for (Value value : values)
    if (value.getType() != values.front().getType()) // C1
      return op->emitOpError() << "group tensors have different types: " << values.front().getType() << " and " << value.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// SumOfSquaresOp
//===----------------------------------------------------------------------===//

LogicalResult SumOfSquaresOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, ValueRange, DictionaryAttr,
                                               OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(RankedTensorType::get({1}, Float32Type::get(context)));
  return success();
}

KernelSpec SumOfSquaresOp::getKernelSpec() {
  KernelSpec spec{"sum_of_squares", {}, {}};
  spec.operands = {KernelOperand::input(getInput()), KernelOperand::output(getResult())};
  return spec;
}

//===----------------------------------------------------------------------===//
// ClipScaleOp
//===----------------------------------------------------------------------===//

LogicalResult ClipScaleOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, ValueRange, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  auto one = RankedTensorType::get({1}, Float32Type::get(context));
  results.assign({one, one});
  return success();
}

LogicalResult ClipScaleOp::verify() {
  if (getSquares().empty()) // C1
    return emitOpError() << "needs at least one sum of squares";
  return success();
}

RowSpec ClipScaleOp::getRowSpec() {
  MLIRContext *context = getContext();
  RowSpec spec;
  spec.inputs.push_back({getScalars(), uniform(context, scalar::Clip)});
  for (Value squares : getSquares())
    spec.inputs.push_back({squares, AccessAttr::get(context, AccessKind::Scalar)});
  spec.results.assign(2, AccessAttr::get(context, AccessKind::Scalar));
  spec.body = [](ImplicitLocOpBuilder &b, ValueRange in) {
    Value sum = in[1];
    for (Value squares : in.drop_front(2))
      sum = arith::AddFOp::create(b, sum, squares);
    Value norm = math::SqrtOp::create(b, sum);
    Value scale = arith::DivFOp::create(b, in[0], arith::AddFOp::create(b, norm, rowConstant(b, 1e-6)));
    return SmallVector<Value>{norm, arith::MinimumFOp::create(b, rowConstant(b, 1.0), scale)};
  };
  return spec;
}

//===----------------------------------------------------------------------===//
// AdamWOp
//===----------------------------------------------------------------------===//

LogicalResult AdamWOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                        OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.assign(3, operands[0].getType());
  return success();
}

LogicalResult AdamWOp::verify() { return verifyOneType(*this, {getParameter(), getGradient(), getExpAvg(), getExpAvgSq()}); }

RowSpec AdamWOp::getRowSpec() {
  MLIRContext *context = getContext();
  AccessAttr row = AccessAttr::get(context, AccessKind::Row);
  RowSpec spec;
  for (Value value : {getParameter(), getGradient(), getExpAvg(), getExpAvgSq()})
    spec.inputs.push_back({value, row});
  spec.inputs.push_back({getScale(), uniform(context, 0)});
  for (int64_t element : {scalar::LearningRate, scalar::Beta1, scalar::Beta2, scalar::Eps, scalar::WeightDecay, scalar::Correction1,
                          scalar::Correction2, scalar::OneMinusBeta1, scalar::OneMinusBeta2})
    spec.inputs.push_back({getScalars(), uniform(context, element)});
  spec.results.assign(3, row);
  bool decay = getDecay();
  spec.body = [decay](ImplicitLocOpBuilder &b, ValueRange in) {
    auto mul = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, x, y); };
    auto add = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, x, y); };
    auto sub = [&](Value x, Value y) -> Value { return arith::SubFOp::create(b, x, y); };
    auto div = [&](Value x, Value y) -> Value { return arith::DivFOp::create(b, x, y); };
    Value p = in[0], m = in[2], v = in[3];
    Value learningRate = in[5], beta1 = in[6], beta2 = in[7], eps = in[8], weightDecay = in[9], correction1 = in[10],
          correction2 = in[11], oneMinusBeta1 = in[12], oneMinusBeta2 = in[13];
    Value g = mul(in[1], in[4]);
    if (decay)
      p = mul(p, sub(rowConstant(b, 1.0), mul(learningRate, weightDecay)));
    m = add(mul(beta1, m), mul(oneMinusBeta1, g));
    v = add(mul(beta2, v), mul(oneMinusBeta2, mul(g, g)));
    Value root = math::SqrtOp::create(b, v), rootCorrection = math::SqrtOp::create(b, correction2);
    Value denominator = add(div(root, rootCorrection), eps);
    Value step = div(learningRate, correction1);
    p = sub(p, mul(step, div(m, denominator)));
    return SmallVector<Value>{p, m, v};
  };
  return spec;
}

//===----------------------------------------------------------------------===//
// SgdOp
//===----------------------------------------------------------------------===//

LogicalResult SgdOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr, OpaqueProperties,
                                      RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(operands[0].getType());
  return success();
}

LogicalResult SgdOp::verify() { return verifyOneType(*this, {getParameter(), getGradient()}); }

RowSpec SgdOp::getRowSpec() {
  MLIRContext *context = getContext();
  AccessAttr row = AccessAttr::get(context, AccessKind::Row);
  return {{{getParameter(), row},
           {getGradient(), row},
           {getScale(), uniform(context, 0)},
           {getScalars(), uniform(context, scalar::LearningRate)}},
          {row},
          [](ImplicitLocOpBuilder &b, ValueRange in) {
            Value step = arith::MulFOp::create(b, in[3], arith::MulFOp::create(b, in[1], in[2]));
            return SmallVector<Value>{arith::SubFOp::create(b, in[0], step)};
          }};
}
