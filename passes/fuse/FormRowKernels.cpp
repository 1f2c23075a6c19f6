//===- FormRowKernels.cpp - row ops into sft.fused regions ------------------------------===//

#include "passes/fuse/FormRowKernels.h"
#include "passes/Passes.h"

namespace sftc {
#define GEN_PASS_DEF_FORMROWKERNELS
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

/// Columns of the row loop: the second dimension of whatever is reached element by element, 1 when nothing is.
static int64_t rowWidth(const RowSpec &spec, Operation *op) {
  auto widthOf = [](AccessAttr access, Value value) -> int64_t {
    RankedTensorType type = tensorType(value);
    switch (access.getKind()) {
    case AccessKind::Row:
    case AccessKind::Partner:
      return type.getDimSize(1);
    case AccessKind::Column:
    case AccessKind::ColumnSum:
      return type.getDimSize(0);
    default:
      return 0;
    }
  };
  int64_t width = 0;
  for (auto [value, access] : spec.inputs)
    width = std::max(width, widthOf(access, value));
  for (auto [access, value] : llvm::zip(spec.results, op->getResults()))
    width = std::max(width, widthOf(access, value));
  return std::max<int64_t>(width, 1);
}

FusedOp sftc::buildFused(OpBuilder &outer, RowBody op) {
  RowSpec spec = op.getRowSpec();
  SmallVector<Value> inputs;
  SmallVector<Attribute> inputAccess, resultAccess(spec.results.begin(), spec.results.end());
  for (auto [value, access] : spec.inputs) {
    inputs.push_back(value);
    inputAccess.push_back(access);
  }
  auto fused = FusedOp::create(outer, op.getLoc(), op->getResultTypes(), inputs, outer.getArrayAttr(inputAccess),
                               outer.getArrayAttr(resultAccess), outer.getI64IntegerAttr(rowWidth(spec, op)), StringAttr());
  fused->setAttr("sft.name", outer.getStringAttr(op->getName().stripDialect()));
  if (Attribute backward = op->getAttr(kBackwardAttr))
    fused->setAttr(kBackwardAttr, backward);

  ImplicitLocOpBuilder builder(op.getLoc(), op.getContext());
  Block *body = builder.createBlock(&fused.getBody());
  for (Value input : inputs) {
    bool integer = tensorType(input).getElementType().isInteger(32);
    body->addArgument(integer ? Type(builder.getI32Type()) : Type(builder.getF32Type()), op.getLoc());
  }
  SmallVector<Value> results = spec.body(builder, body->getArguments());
  YieldOp::create(builder, results);
  return fused;
}

namespace {
struct FormRowKernelsPass : public sftc::impl::FormRowKernelsBase<FormRowKernelsPass> {
  void runOnOperation() override {
    SmallVector<RowBody> ops;
    getOperation().walk([&](RowBody op) { ops.push_back(op); });
    for (RowBody op : ops) {
      OpBuilder builder(op);
      op->replaceAllUsesWith(buildFused(builder, op));
      op->erase();
    }
  }
};
} // namespace
