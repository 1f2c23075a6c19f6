//===- GenerateRowKernels.cpp - machine code for the sft.fused regions -----------===//

#include "passes/codegen/GenerateRowKernels.h"
#include "passes/Passes.h"
#include "passes/codegen/CompileCpu.h"
#include "passes/codegen/RowKernel.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

#include "llvm/ADT/StringExtras.h"

namespace sftc {
#define GEN_PASS_DEF_GENERATEROWKERNELS
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

ArrayRef<uint8_t> sftc::getKernelObject(ModuleOp module) {
  auto object = module->getAttrOfType<DenseResourceElementsAttr>(kKernelObjectAttr);
  AsmResourceBlob *blob = object ? object.getRawHandle().getBlob() : nullptr;
  if (!blob)
    return {};
  return {reinterpret_cast<const uint8_t *>(blob->getData().data()), blob->getData().size()};
}

/// What the kernel computes, for readers of profiles: the name of the op that the region was made
/// from.
static std::string nameHint(FusedOp op) {
  StringRef name = "fused";
  if (auto attribute = op->getAttrOfType<StringAttr>("sft.name"))
    name = attribute.getValue();
  else if (auto location = op.getLoc()->findInstanceOf<NameLoc>())
    name = location.getName().getValue();
  std::string hint;
  for (char c : name)
    hint += llvm::isAlnum(c) ? c : '_';
  return hint;
}

namespace {
struct GenerateRowKernelsPass : public sftc::impl::GenerateRowKernelsBase<GenerateRowKernelsPass> {
  using GenerateRowKernelsBase::GenerateRowKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    registerCodegenDialects(registry);
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<FusedOp> distinct;
    llvm::StringMap<StringAttr> names;
    module.walk([&](FusedOp op) {
      StringAttr &name = names[RowKernel(op).getStructuralKey()];
      if (!name) {
        name = StringAttr::get(&getContext(), "rk_" + Twine(distinct.size()) + "_" + nameHint(op));
        distinct.push_back(op);
      }
      op.setKernelAttr(name);
    });
    if (distinct.empty())
      return;

    FailureOr<CpuTarget> target = resolveCpuTarget(targetCpu, UnknownLoc::get(&getContext()));
    if (failed(target))
      return signalPassFailure();
    FailureOr<GeneratedKernels> kernels = compileRowKernels(distinct, *target);
    if (failed(kernels))
      return signalPassFailure();

    Builder builder(&getContext());
    auto type = RankedTensorType::get({int64_t(kernels->sharedObject.size())},
                                      builder.getIntegerType(8, /*isSigned=*/false));
    module->setAttr(kKernelObjectAttr, DenseUI8ResourceElementsAttr::get(
                                           type, "row_kernels",
                                           HeapAsmResourceBlob::allocateAndCopyInferAlign<uint8_t>(
                                               kernels->sharedObject)));
    SmallVector<StringRef> features(target->features.begin(), target->features.end());
    module->setAttr(kKernelTargetAttr,
                    builder.getDictionaryAttr(
                        {builder.getNamedAttr("cpu", builder.getStringAttr(target->cpu)),
                         builder.getNamedAttr("features", builder.getStrArrayAttr(features))}));
  }
};
} // namespace
