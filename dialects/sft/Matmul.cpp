#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

//===----------------------------------------------------------------------===//
// MatmulOp
//===----------------------------------------------------------------------===//

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr attributes,
                                         OpaqueProperties properties, RegionRange regions, SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  RankedTensorType a = tensorType(op.getA()), b = tensorType(op.getB());
  int64_t m = a.getDimSize(op.getTransposeA() ? 1 : 0), n = b.getDimSize(op.getTransposeB() ? 0 : 1);
  results.push_back(RankedTensorType::get({m, n}, a.getElementType()));
  return success();
}

LogicalResult MatmulOp::verify() {
  int64_t ka = tensorType(getA()).getDimSize(getTransposeA() ? 0 : 1), kb = tensorType(getB()).getDimSize(getTransposeB() ? 1 : 0);
  if (ka != kb && !ShapedType::isDynamic(ka) && !ShapedType::isDynamic(kb)) // C1
    return emitOpError() << "contracts " << ka << " elements of a with " << kb << " of b";
  if (getBias() && tensorType(getBias()).getDimSize(0) != tensorType(getResult()).getDimSize(1)) // C2
    return emitOpError() << "bias has " << tensorType(getBias()).getDimSize(0) << " elements but the result has "
                         << tensorType(getResult()).getDimSize(1) << " columns";
  return success();
}

std::string MatmulOp::getFactorString() {
  // With a bias the contraction stays whole: every rank would add the bias otherwise.
  std::string k = getBias() ? "k!" : "k";
  std::string a = getTransposeA() ? k + " m" : "m " + k, b = getTransposeB() ? "n " + k : k + " n";
  return a + ", " + b + (getBias() ? ", n" : "") + " -> m n";
}

void MatmulOp::buildGradient(OpBuilder &builder, ArrayRef<Value> gradients, SmallVectorImpl<Value> &result) {
  Value dc = gradients[0], a = getA(), b = getB();
  bool ta = getTransposeA(), tb = getTransposeB();
  auto product = [&](Value x, bool tx, Value y, bool ty) -> Value {
    return MatmulOp::create(builder, getLoc(), x, y, Value(), tx, ty).getResult();
  };
  // c = op(a) op(b): op(a)' = c' op(b)^T and op(b)' = op(a)^T c'; both transposed where op transposes.
  result.push_back(ta ? product(b, tb, dc, true) : product(dc, false, b, !tb));
  result.push_back(tb ? product(dc, true, a, ta) : product(a, !ta, dc, false));
  if (getBias())
    result.push_back(ColumnSumOp::create(builder, getLoc(), dc).getResult());
}

KernelSpec MatmulOp::getKernelSpec() {
  OpBuilder builder(getContext());
  KernelSpec spec{"matmul", {}, {}};
  spec.operands = {KernelOperand::input(getA()), KernelOperand::input(getB()), KernelOperand::input(getBias()),
                   KernelOperand::output(getResult())};
  spec.parameters = {builder.getNamedAttr("transpose_a", builder.getI64IntegerAttr(getTransposeA())),
                     builder.getNamedAttr("transpose_b", builder.getI64IntegerAttr(getTransposeB()))};
  return spec;
}

//===----------------------------------------------------------------------===//
// ColumnSumOp
//===----------------------------------------------------------------------===//

LogicalResult ColumnSumOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  RankedTensorType input = tensorType(operands[0]);
  results.push_back(RankedTensorType::get({input.getDimSize(1)}, input.getElementType()));
  return success();
}

std::string ColumnSumOp::getFactorString() { return "t o -> o"; }

RowSpec ColumnSumOp::getRowSpec() {
  return {{{getInput(), AccessAttr::get(getContext(), AccessKind::Row)}},
          {AccessAttr::get(getContext(), AccessKind::ColumnSum)},
          [](ImplicitLocOpBuilder &, ValueRange in) { return SmallVector<Value>{in[0]}; }};
}
