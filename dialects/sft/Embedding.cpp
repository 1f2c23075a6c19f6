#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

/// The first vocabulary row of a rank that holds `rows` of them, when factor v is cut; null otherwise.
static Value vocabularyOffset(Operation *op, const FactorAxes &axes, int64_t rows) {
  auto it = axes.find("v");
  if (it == axes.end())
    return {};
  OpBuilder builder(op);
  return AxisOffsetOp::create(builder, op->getLoc(), RankedTensorType::get({1}, builder.getI32Type()), it->second,
                              builder.getI64IntegerAttr(rows));
}

//===----------------------------------------------------------------------===//
// EmbeddingOp
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  RankedTensorType table = tensorType(operands[1]);
  results.push_back(RankedTensorType::get({tensorType(operands[0]).getDimSize(0), table.getDimSize(1)}, table.getElementType()));
  return success();
}

std::string EmbeddingOp::getFactorString() { return getRowOffset() ? "t, v h, x! -> t h" : "t, v h -> t h"; }

void EmbeddingOp::localize(const FactorAxes &axes) {
  if (Value offset = vocabularyOffset(*this, axes, tensorType(getTable()).getDimSize(0)))
    getRowOffsetMutable().assign(offset);
}

void EmbeddingOp::buildGradient(OpBuilder &builder, ArrayRef<Value> gradients, SmallVectorImpl<Value> &result) {
  Value table = EmbeddingGradOp::create(builder, getLoc(), gradients[0], getTokens(), getRowOffset(),
                                        uint64_t(tensorType(getTable()).getDimSize(0)));
  result.assign({Value(), table});
  if (getRowOffset())
    result.push_back(Value());
}

RowSpec EmbeddingOp::getRowSpec() {
  MLIRContext *context = getContext();
  RowSpec spec;
  spec.inputs.push_back({getTokens(), AccessAttr::get(context, AccessKind::Scalar)});
  int64_t offset = getRowOffset() ? 2 : -1;
  spec.inputs.push_back(
      {getTable(), AccessAttr::get(context, AccessKind::Gathered, tensorType(getTable()).getDimSize(1), 0, /*index=*/0, offset)});
  if (getRowOffset())
    spec.inputs.push_back({getRowOffset(), AccessAttr::get(context, AccessKind::Uniform)});
  spec.results.push_back(AccessAttr::get(context, AccessKind::Row));
  spec.body = [](ImplicitLocOpBuilder &, ValueRange in) { return SmallVector<Value>{in[1]}; };
  return spec;
}

//===----------------------------------------------------------------------===//
// EmbeddingGradOp
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, ValueRange operands,
                                                DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
                                                SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  results.push_back(
      RankedTensorType::get({int64_t(op.getRows()), tensorType(operands[0]).getDimSize(1)}, Float32Type::get(context)));
  return success();
}

std::string EmbeddingGradOp::getFactorString() { return getRowOffset() ? "t h, t, x! -> v h" : "t h, t -> v h"; }

void EmbeddingGradOp::localize(const FactorAxes &axes) {
  int64_t rows = tensorType(getResult()).getDimSize(0);
  if (Value offset = vocabularyOffset(*this, axes, rows)) {
    getRowOffsetMutable().assign(offset);
    setRows(rows);
  }
}

KernelSpec EmbeddingGradOp::getKernelSpec() {
  KernelSpec spec{"embedding_grad", {}, {}};
  spec.operands = {KernelOperand::input(getGradient()), KernelOperand::tableInput("embedding_order"),
                   KernelOperand::tableInput("embedding_segments"), KernelOperand::input(getRowOffset()),
                   KernelOperand::output(getResult())};
  return spec;
}
