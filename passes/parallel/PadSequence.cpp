//===- PadSequence.cpp - the number of rows of a pack --------------------------------------===//

#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"

#include <numeric>

namespace sftc {
#define GEN_PASS_DEF_PADSEQUENCE
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {

struct PadSequencePass : public sftc::impl::PadSequenceBase<PadSequencePass> {
  using PadSequenceBase::PadSequenceBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (tokens < 1) {
      module.emitError() << "tokens is " << int64_t(tokens) << "; a pack holds at least one";
      return signalPassFailure();
    }
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    auto tokenAxes = module->getAttrOfType<ArrayAttr>(kTokenAxesAttr);
    auto order = module->getAttrOfType<StringAttr>(kTokenOrderAttr);
    SequenceContext context;
    context.token_ranks = mesh && tokenAxes ? mesh.getSize(tokenAxes) : 1;
    context.zigzag = order && order.getValue() == "zigzag";

    int64_t multiple = 1;
    SmallVector<Attribute> reasons;
    Builder builder(&getContext());
    auto need = [&](Operation *op, StringRef name, int64_t value, StringRef why) {
      Attribute reason = builder.getDictionaryAttr({builder.getNamedAttr("op", builder.getStringAttr(name)),
                                                    builder.getNamedAttr("multiple", builder.getI64IntegerAttr(value)),
                                                    builder.getNamedAttr("why", builder.getStringAttr(why))});
      if (llvm::is_contained(reasons, reason))
        return;
      reasons.push_back(reason);
      multiple = std::lcm(multiple, value);
      emitRemark(op->getLoc()) << "sequence: " << name << " needs a multiple of " << value << ": " << why;
    };
    module.walk([&](SequenceMultiple op) {
      SmallVector<SequenceNeed> needs;
      op.getSequenceMultiples(context, needs);
      for (const SequenceNeed &each : needs)
        need(op, op->getName().getStringRef(), each.multiple, each.why);
    });
    // The hand-made rule of NeMo-Aligner, for comparison.
    if (rule == "nemo")
      need(module, "pad-rule nemo", 16 * context.token_ranks, "16 * cp, whatever the ops need");

    int64_t padded = (tokens + multiple - 1) / multiple * multiple;
    if (rule == "none" && padded != tokens) {
      InFlightDiagnostic diagnostic = module.emitError()
                                      << "a pack of " << int64_t(tokens) << " tokens over " << context.token_ranks
                                      << " ranks would need padding, which the rule `none` forbids; the nearest valid --tokens are ";
      if (padded - multiple > 0)
        diagnostic << padded - multiple << " and ";
      diagnostic << padded;
      for (Attribute reason : reasons) {
        auto entry = cast<DictionaryAttr>(reason);
        diagnostic.attachNote(module.getLoc()) << entry.getAs<StringAttr>("op").getValue() << " needs a multiple of "
                                               << entry.getAs<IntegerAttr>("multiple").getInt() << ": "
                                               << entry.getAs<StringAttr>("why").getValue();
      }
      return signalPassFailure();
    }
    module->setAttr(kTokensAttr, builder.getI64IntegerAttr(tokens));
    module->setAttr("sft.padded_tokens", builder.getI64IntegerAttr(padded));
    module->setAttr(kPadReasonsAttr, builder.getArrayAttr(reasons));
    fixRows(module, padded);
  }

  /// The token axis is the only dynamic dimension of a graph.
  static void fixRows(ModuleOp module, int64_t rows) {
    auto fix = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || type.hasStaticShape())
        return;
      SmallVector<int64_t> shape(type.getShape());
      llvm::replace(shape, ShapedType::kDynamic, rows);
      value.setType(RankedTensorType::get(shape, type.getElementType()));
    };
    for (auto function : module.getOps<func::FuncOp>()) {
      for (Value argument : function.getArguments())
        fix(argument);
      function.walk([&](Operation *op) {
        for (Value result : op->getResults())
          fix(result);
      });
      Operation *terminator = function.getBody().front().getTerminator();
      function.setType(FunctionType::get(module.getContext(), function.getBody().getArgumentTypes(), terminator->getOperandTypes()));
    }
  }
};

} // namespace
