//===- VerifyTraining.cpp - the contract of the training level ---------------------------------===//

#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace sftc {
#define GEN_PASS_DEF_VERIFYTRAINING
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {
struct VerifyTrainingPass : public sftc::impl::VerifyTrainingBase<VerifyTrainingPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    bool failed = false;
    auto report = [&](Operation *op) {
      failed = true;
      return op->emitError() << "training level: ";
    };
    for (StringRef name : {"train", "evaluate"}) {
      auto function = module.lookupSymbol<func::FuncOp>(name);
      if (!function) {
        report(module) << "there is no function @" << name;
        continue;
      }
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (!function.getArgAttrOfType<StringAttr>(i, kTableAttr) || !function.getArgAttrOfType<ArrayAttr>(i, kRolesAttr))
          report(function) << "argument " << i << " of @" << name << " has no `" << kTableAttr << "` or no `" << kRolesAttr << "`";
    }
    llvm::StringSet<> trained;
    module.walk([&](Operation *op) {
      if (auto accumulate = dyn_cast<AccumulateGradientOp>(op))
        trained.insert(accumulate.getSymbol());
      if (isa<Decomposable>(op))
        report(op) << op->getName() << " is left; run sft-decompose first";
      if (isa<AllGatherOp, ReduceScatterOp, AllReduceOp, AllToAllOp, SliceOp, ReorderOp>(op))
        report(op) << op->getName() << " moves data between ranks before the graph is partitioned";
    });
    for (auto parameter : module.getOps<ParameterOp>())
      if (!trained.contains(parameter.getSymName()))
        report(parameter) << "parameter @" << parameter.getSymName() << " gets no gradient";
    markAllAnalysesPreserved();
    if (failed)
      signalPassFailure();
  }
};
} // namespace
