#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

LogicalResult AttentionOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, ValueRange operands,
                                            DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
                                            SmallVectorImpl<Type> &results) {
  Adaptor op(operands, attributes, properties, regions);
  RankedTensorType q = tensorType(operands[0]);
  results.assign({q, RankedTensorType::get({q.getDimSize(0), q.getDimSize(1) / int64_t(op.getHeadDim())}, Float32Type::get(context))});
  return success();
}

LogicalResult AttentionOp::verify() {
  int64_t d = getHeadDim(), q = tensorType(getQ()).getDimSize(1), k = tensorType(getK()).getDimSize(1);
  if (d <= 0 || q < 0 || q % d || k <= 0 || k % d || getK().getType() != getV().getType() || q % k) // C1
    return emitOpError() << "q has " << q << " columns, k " << k << " and v " << tensorType(getV()).getDimSize(1)
                         << "; with head_dim " << d << " they must be whole heads, k and v of the same number that divides q's";
  auto sameRows = [](Value a, Value b) { return tensorType(a).getDimSize(0) == tensorType(b).getDimSize(0); };
  if (!sameRows(getQ(), getQPositions()) || !sameRows(getQ(), getQDocuments()) || !sameRows(getK(), getKvPositions()) ||
      !sameRows(getK(), getKvDocuments())) // C2
    return emitOpError() << "rows of q, k and v must agree with their positions and documents";
  return success();
}

// t: rows of q; s: rows of k and v; g: kv heads; r: query heads of a kv head; d: elements of a head.
std::string AttentionOp::getFactorString() {
  return "t (g r d), s! (g d), s! (g d), t, t, s!, s! -> t (g r d), t (g r)";
}

// Rows are cut as they are, heads by whole groups.
int64_t AttentionOp::getLeadingFactorSize(unsigned, unsigned dimension, int64_t size) {
  return dimension == 0 ? size : tensorType(getK()).getDimSize(1) / getHeadDim();
}

void AttentionOp::buildGradient(OpBuilder &builder, ArrayRef<Value> gradients, SmallVectorImpl<Value> &result) {
  auto op = AttentionGradOp::create(builder, getLoc(), gradients[0], getQ(), getK(), getV(), getResult(), getLogsumexp(),
                                    getQPositions(), getQDocuments(), getKvPositions(), getKvDocuments(), getHeadDimAttr(),
                                    getScaleAttr());
  result.assign({op.getQGradient(), op.getKGradient(), op.getVGradient(), Value(), Value(), Value(), Value()});
}

void AttentionOp::getSequenceMultiples(const SequenceContext &context, SmallVectorImpl<SequenceNeed> &needs) {
  // Every rank holds the same number of whole slots.
  if (context.token_ranks <= 1)
    return;
  if (context.zigzag)
    needs.push_back({2 * context.token_ranks, "zigzag order cuts a pack into 2*cp equal chunks"});
  else
    needs.push_back({context.token_ranks, "contiguous order cuts a pack into cp equal parts"});
}

//===----------------------------------------------------------------------===//
// AttentionGradOp
//===----------------------------------------------------------------------===//

LogicalResult AttentionGradOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                                OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  results.assign({operands[1].getType(), operands[2].getType(), operands[3].getType()});
  return success();
}

std::string AttentionGradOp::getFactorString() {
  return "t (g r d), t (g r d), s! (g d), s! (g d), t (g r d), t (g r), t, t, s!, s! -> t (g r d), s! (g d), s! (g d)";
}

int64_t AttentionGradOp::getLeadingFactorSize(unsigned, unsigned dimension, int64_t size) {
  return dimension == 0 ? size : tensorType(getK()).getDimSize(1) / getHeadDim();
}
