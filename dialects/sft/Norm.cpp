#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

//===----------------------------------------------------------------------===//
// RmsNormOp
//===----------------------------------------------------------------------===//

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                          OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  RankedTensorType input = tensorType(operands[0]);
  results.assign({input, RankedTensorType::get({input.getDimSize(0)}, Float32Type::get(context))});
  return success();
}

LogicalResult RmsNormOp::verify() {
  if (tensorType(getWeight()).getDimSize(0) != tensorType(getInput()).getDimSize(1)) // C1
    return emitOpError() << "weight has " << tensorType(getWeight()).getDimSize(0) << " elements but a row has "
                         << tensorType(getInput()).getDimSize(1);
  if (!(getEpsilon().convertToDouble() > 0)) // C2
    return emitOpError() << "epsilon " << getEpsilonAttr() << " is not positive";
  return success();
}

std::string RmsNormOp::getFactorString() { return "t h!, h! -> t h!, t"; }

void RmsNormOp::buildGradient(OpBuilder &builder, ArrayRef<Value> gradients, SmallVectorImpl<Value> &result) {
  auto op = RmsNormGradOp::create(builder, getLoc(), gradients[0], getInput(), getWeight(), getRstd());
  result.assign({op.getInputGradient(), op.getWeightGradient()});
}

RowSpec RmsNormOp::getRowSpec() {
  MLIRContext *context = getContext();
  double columns = tensorType(getInput()).getDimSize(1), epsilon = getEpsilon().convertToDouble();
  AccessAttr row = AccessAttr::get(context, AccessKind::Row);
  return {{{getInput(), row}, {getWeight(), AccessAttr::get(context, AccessKind::Column)}},
          {row, AccessAttr::get(context, AccessKind::Scalar)},
          [=](ImplicitLocOpBuilder &b, ValueRange in) {
            Value square = arith::MulFOp::create(b, in[0], in[0]);
            Value sum = RowReduceOp::create(b, ReductionKind::Sum, square);
            Value mean = arith::DivFOp::create(b, sum, rowConstant(b, columns));
            Value rstd = math::RsqrtOp::create(b, arith::AddFOp::create(b, mean, rowConstant(b, epsilon)));
            Value scaled = arith::MulFOp::create(b, in[0], rstd);
            return SmallVector<Value>{arith::MulFOp::create(b, scaled, in[1]), rstd};
          }};
}

//===----------------------------------------------------------------------===//
// RmsNormGradOp
//===----------------------------------------------------------------------===//

LogicalResult RmsNormGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                              OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.assign({operands[1].getType(), operands[2].getType()});
  return success();
}

std::string RmsNormGradOp::getFactorString() { return "t h!, t h!, h!, t -> t h!, h!"; }

RowSpec RmsNormGradOp::getRowSpec() {
  MLIRContext *context = getContext();
  double columns = tensorType(getInput()).getDimSize(1);
  AccessAttr row = AccessAttr::get(context, AccessKind::Row);
  return {{{getGradient(), row},
           {getInput(), row},
           {getWeight(), AccessAttr::get(context, AccessKind::Column)},
           {getRstd(), AccessAttr::get(context, AccessKind::Scalar)}},
          {row, AccessAttr::get(context, AccessKind::ColumnSum)},
          [=](ImplicitLocOpBuilder &b, ValueRange in) {
            Value dy = in[0], x = in[1], w = in[2], rstd = in[3];
            Value g = arith::MulFOp::create(b, dy, w);
            Value normalized = arith::MulFOp::create(b, x, rstd);
            Value dot = RowReduceOp::create(b, ReductionKind::Sum, arith::MulFOp::create(b, g, normalized));
            Value mean = arith::DivFOp::create(b, dot, rowConstant(b, columns));
            Value inner = arith::SubFOp::create(b, g, arith::MulFOp::create(b, normalized, mean));
            return SmallVector<Value>{arith::MulFOp::create(b, rstd, inner), arith::MulFOp::create(b, dy, normalized)};
          }};
}
