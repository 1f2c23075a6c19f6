#include "compiler/Pipeline.h"

#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace sftc;

void sftc::annotateModule(ModuleOp module, const ResolvedOptions &options) {
  Builder builder(module.getContext());
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  for (const auto &[name, size] : options.mesh) {
    names.push_back(builder.getStringAttr(name));
    sizes.push_back(size);
  }
  auto mesh = MeshAttr::get(module.getContext(), builder.getArrayAttr(names), builder.getDenseI64ArrayAttr(sizes));
  auto axes = [&](ArrayRef<StringRef> wanted) {
    SmallVector<StringRef> used;
    for (StringRef axis : wanted)
      if (mesh.getSize(axis) > 1)
        used.push_back(axis);
    return builder.getStrArrayAttr(used);
  };
  module->setAttr(kMeshAttr, mesh);
  module->setAttr(kTokenAxesAttr, axes({"cp"}));
  module->setAttr(kBatchAxesAttr, axes({"dp"}));
  module->setAttr(kTokenOrderAttr, builder.getStringAttr(options.token_order));
  module->setAttr("sft.max_documents", builder.getI64IntegerAttr(options.max_documents));
  SmallVector<NamedAttribute> roles = {builder.getNamedAttr("tokens", axes({"cp"}))};
  for (StringRef role : {"heads", "kv_heads", "ffn", "vocabulary"})
    roles.push_back(builder.getNamedAttr(role, axes({"tp"})));
  module->setAttr(kRoleAxesAttr, builder.getDictionaryAttr(roles));
}

void sftc::buildGraphPipeline(OpPassManager &manager, const CompileOptions &options, EmitLevel level) {
  if (level == EmitLevel::Sft)
    return;
  // graph. CSE after decomposing: the gradient of the loss names the forward half's row statistics again.
  manager.addPass(createBuildBackward());
  manager.addPass(createDecompose());
  manager.addPass(createCSEPass());
  manager.addPass(createVerifyTraining());
  if (level == EmitLevel::Training)
    return;

  // parallel. The number of rows comes first: shapes decide what can be cut. No CSE from here to the plan: it would keep what
  // the forward half gathered for the backward half.
  PadSequenceOptions pad;
  pad.tokens = options.tokens;
  pad.rule = options.pad_rule;
  manager.addPass(createPadSequence(pad));
  manager.addPass(createPropagateSharding());
  manager.addPass(createPartition());
  manager.addPass(createVerifySharded());
  if (level == EmitLevel::Sharded)
    return;

  // fuse. The update comes before, so that its ops become row kernels as well.
  manager.addPass(createBuildUpdate());
  manager.addPass(createFormRowKernels());
}

void sftc::buildCodegenPipeline(OpPassManager &manager, const CompileOptions &options) {
  GenerateRowKernelsOptions generate;
  generate.targetCpu = options.target_cpu;
  manager.addPass(createGenerateRowKernels(generate));
}

void sftc::buildPlanPipeline(OpPassManager &manager) {
  manager.addPass(createLowerToPlan());
  manager.addPass(createPlanMemory());
  manager.addPass(createVerifyPlan());
}
