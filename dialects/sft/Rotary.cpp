#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

//===----------------------------------------------------------------------===//
// RotaryTableOp
//===----------------------------------------------------------------------===//

LogicalResult RotaryTableOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                              DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
                                              SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  // Checked here and not in a verifier, since the shape of the tables is made of them.
  int64_t rows = op.getRows(), headDim = op.getHeadDim();
  if (headDim <= 0 || headDim % 2 != 0) // C1
    return emitOptionalError(location, "head_dim ", headDim, " is not even and positive; rotary embedding turns pairs");
  if (rows <= 0) // C2
    return emitOptionalError(location, "rows is ", rows, "; a table has at least one");
  auto table = RankedTensorType::get({rows, headDim}, Float32Type::get(context));
  results.assign({table, table});
  return success();
}

std::string RotaryTableOp::getFactorString() { return "-> p! d!, p! d!"; }

//===----------------------------------------------------------------------===//
// RotaryOp
//===----------------------------------------------------------------------===//

LogicalResult RotaryOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                         OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(operands[0].getType());
  return success();
}

LogicalResult RotaryOp::verify() {
  if (getHeadDim() <= 0 || tensorType(getInput()).getDimSize(1) % getHeadDim() != 0) // C1
    return emitOpError() << "a row of " << tensorType(getInput()).getDimSize(1) << " elements is no whole number of heads of "
                         << getHeadDim();
  return success();
}

std::string RotaryOp::getFactorString() { return "t (h d), t, p! d!, p! d! -> t (h d)"; }

int64_t RotaryOp::getLeadingFactorSize(unsigned, unsigned dimension, int64_t size) {
  return dimension == 0 ? size : size / getHeadDim();
}

void RotaryOp::buildGradient(OpBuilder &builder, ArrayRef<Value> gradients, SmallVectorImpl<Value> &result) {
  // A rotation's gradient is the rotation back.
  Value gradient = RotaryOp::create(builder, getLoc(), gradients[0], getPositions(), getCosine(), getSine(), !getInverse());
  result.assign({gradient, Value(), Value(), Value()});
}

RowSpec RotaryOp::getRowSpec() {
  MLIRContext *context = getContext();
  int64_t d = getHeadDim();
  bool inverse = getInverse();
  auto gathered = AccessAttr::get(context, AccessKind::Gathered, d, 0, /*index=*/2, -1);
  return {{{getInput(), AccessAttr::get(context, AccessKind::Row)},
           {getInput(), AccessAttr::get(context, AccessKind::Partner, d, 0, -1, -1)},
           {getPositions(), AccessAttr::get(context, AccessKind::Scalar)},
           {getCosine(), gathered},
           {getSine(), gathered}},
          {AccessAttr::get(context, AccessKind::Row)},
          [inverse](ImplicitLocOpBuilder &b, ValueRange in) {
            Value straight = arith::MulFOp::create(b, in[0], in[3]), turned = arith::MulFOp::create(b, in[1], in[4]);
            Value result = inverse ? arith::SubFOp::create(b, straight, turned).getResult()
                                   : arith::AddFOp::create(b, straight, turned).getResult();
            return SmallVector<Value>{result};
          }};
}
