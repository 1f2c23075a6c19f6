#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

static LogicalResult verifySameTypes(Operation *op, Value lhs, Value rhs) {
  if (lhs.getType() == rhs.getType()) // C1
    return success();
  return op->emitOpError() << "operands have different types: " << lhs.getType() << " and " << rhs.getType();
}

/// 1 / (1 + exp(-x)).
static Value sigmoid(ImplicitLocOpBuilder &b, Value x) {
  Value one = rowConstant(b, 1.0);
  Value exponential = math::ExpOp::create(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, one, arith::AddFOp::create(b, one, exponential));
}

//===----------------------------------------------------------------------===//
// AddOp
//===----------------------------------------------------------------------===//

LogicalResult AddOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr, OpaqueProperties,
                                      RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(operands[0].getType());
  return success();
}

LogicalResult AddOp::verify() { return verifySameTypes(*this, getLhs(), getRhs()); }

std::string AddOp::getFactorString() { return "t h, t h -> t h"; }

void AddOp::buildGradient(OpBuilder &, ArrayRef<Value> gradients, SmallVectorImpl<Value> &result) {
  result.assign({gradients[0], gradients[0]});
}

RowSpec AddOp::getRowSpec() {
  AccessAttr row = AccessAttr::get(getContext(), AccessKind::Row);
  return {{{getLhs(), row}, {getRhs(), row}}, {row}, [](ImplicitLocOpBuilder &b, ValueRange in) {
            return SmallVector<Value>{arith::AddFOp::create(b, in[0], in[1])};
          }};
}

//===----------------------------------------------------------------------===//
// SiluGateOp
//===----------------------------------------------------------------------===//

LogicalResult SiluGateOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                           OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(operands[0].getType());
  return success();
}

LogicalResult SiluGateOp::verify() { return verifySameTypes(*this, getGate(), getUp()); }

std::string SiluGateOp::getFactorString() { return "t f, t f -> t f"; }

void SiluGateOp::buildGradient(OpBuilder &builder, ArrayRef<Value> gradients, SmallVectorImpl<Value> &result) {
  auto op = SiluGateGradOp::create(builder, getLoc(), gradients[0], getGate(), getUp());
  result.assign({op.getGateGradient(), op.getUpGradient()});
}

RowSpec SiluGateOp::getRowSpec() {
  AccessAttr row = AccessAttr::get(getContext(), AccessKind::Row);
  return {{{getGate(), row}, {getUp(), row}}, {row}, [](ImplicitLocOpBuilder &b, ValueRange in) {
            Value silu = arith::MulFOp::create(b, in[0], sigmoid(b, in[0]));
            return SmallVector<Value>{arith::MulFOp::create(b, silu, in[1])};
          }};
}

//===----------------------------------------------------------------------===//
// SiluGateGradOp
//===----------------------------------------------------------------------===//

LogicalResult SiluGateGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                               OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.assign({operands[1].getType(), operands[2].getType()});
  return success();
}

std::string SiluGateGradOp::getFactorString() { return "t f, t f, t f -> t f, t f"; }

RowSpec SiluGateGradOp::getRowSpec() {
  AccessAttr row = AccessAttr::get(getContext(), AccessKind::Row);
  return {{{getGradient(), row}, {getGate(), row}, {getUp(), row}}, {row, row}, [](ImplicitLocOpBuilder &b, ValueRange in) {
            Value dy = in[0], gate = in[1], up = in[2];
            Value s = sigmoid(b, gate);
            Value one = rowConstant(b, 1.0);
            Value slope = arith::MulFOp::create(b, gate, arith::SubFOp::create(b, one, s));
            slope = arith::MulFOp::create(b, s, arith::AddFOp::create(b, one, slope));
            Value gateGradient = arith::MulFOp::create(b, arith::MulFOp::create(b, dy, up), slope);
            Value upGradient = arith::MulFOp::create(b, dy, arith::MulFOp::create(b, gate, s));
            return SmallVector<Value>{gateGradient, upGradient};
          }};
}
