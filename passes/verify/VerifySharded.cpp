//===- VerifySharded.cpp - the contract of the sharded level --------------------------------------===//

#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"

namespace sftc {
#define GEN_PASS_DEF_VERIFYSHARDED
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {
struct VerifyShardedPass : public sftc::impl::VerifyShardedBase<VerifyShardedPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto order = module->getAttrOfType<StringAttr>(kTokenOrderAttr);
    auto tokenAxes = module->getAttrOfType<ArrayAttr>(kTokenAxesAttr);
    bool zigzag = order && order.getValue() == "zigzag";
    bool failed = false;
    auto report = [&](Operation *op) {
      failed = true;
      return op->emitError() << "sharded level: ";
    };
    module.walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && !type.hasStaticShape())
          report(op) << "result has type " << type << "; shapes are static after sft-pad-sequence";
      if (op->hasAttr(kShardingsAttr))
        report(op) << "`" << kShardingsAttr << "` is left; run sft-partition first";
      if (auto gather = dyn_cast<AllGatherOp>(op)) {
        verifyOrder(gather, zigzag && gather.getAxes() == tokenAxes, report);
        verifyHalf(gather, report);
      }
      if (auto reorder = dyn_cast<ReorderOp>(op))
        verifyHalf(reorder, report);
      if (auto attention = dyn_cast<AttentionOp>(op))
        verifyWhole(op, attention.getK(), report);
      if (auto gradient = dyn_cast<AttentionGradOp>(op))
        verifyWhole(op, gradient.getK(), report);
    });
    markAllAnalysesPreserved();
    if (failed)
      signalPassFailure();
  }

  /// Rows gathered from zigzag order are out of order: only a reorder may read them.
  template <typename Report> static void verifyOrder(AllGatherOp gather, bool zigzag, Report report) {
    if (!zigzag || gather.getDimension() != 0)
      return;
    for (Operation *user : gather.getResult().getUsers())
      if (!isa<ReorderOp>(user))
        report(user) << user->getName() << " reads rows gathered from zigzag order, which are not in global order";
  }

  /// Gathered memory is as large as the whole pack: it is gathered again rather than kept for the backward half.
  template <typename Op, typename Report> static void verifyHalf(Op op, Report report) {
    if (op->hasAttr(kBackwardAttr))
      return;
    for (Operation *user : op.getResult().getUsers())
      if (user->hasAttr(kBackwardAttr))
        report(user) << "a value gathered in the forward half lives to the backward half; gather it again";
  }

  /// Keys and values are whole; that they are in global order follows from verifyOrder.
  template <typename Report> static void verifyWhole(Operation *op, Value keys, Report report) {
    auto padded = op->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>("sft.padded_tokens");
    int64_t rows = tensorType(keys).getDimSize(0);
    if (padded && rows != padded.getInt())
      report(op) << "attention sees " << rows << " rows of keys and values of a pack of " << padded.getInt()
                 << "; they must be whole and in global order, or of a single slot";
  }
};
} // namespace
