#include "compiler/Compile.h"

#include "compiler/EmitPlan.h"
#include "compiler/Frontend.h"
#include "compiler/Pipeline.h"
#include "dialects/sft/SftOps.h"
#include "passes/codegen/GenerateRowKernels.h"
#include "passes/codegen/RowKernel.h"
#include "runtime/plan/PlanFile.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace sftc;
namespace fb = ::sft::fb;

/// Runs one part of the pipeline.
static LogicalResult runPasses(ModuleOp module, function_ref<void(OpPassManager &)> build) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  build(manager);
  return manager.run(module);
}

/// A plan carries the arithmetic of every generated kernel, so that the plain interpreter can check the code.
static FailureOr<RowBodies> collectBodies(ModuleOp module) {
  RowBodies bodies;
  WalkResult result = module.walk([&](FusedOp op) {
    std::string name = op.getKernel().value_or("").str();
    if (bodies.count(name))
      return WalkResult::advance();
    FailureOr<fb::RowBodyT> body = toRowBody(op);
    if (failed(body))
      return WalkResult::interrupt();
    bodies.emplace(name, std::move(*body));
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return bodies;
}

/// Parses a model and gives every op its place in the file beside the name that it carries.
static OwningOpRef<ModuleOp> parseModel(std::unique_ptr<llvm::MemoryBuffer> file, MLIRContext &context) {
  llvm::SourceMgr sources;
  StringAttr name = StringAttr::get(&context, file->getBufferIdentifier());
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  AsmParserState state;
  Block block;
  if (failed(parseAsmSourceFile(sources, &block, ParserConfig(&context), &state)))
    return {};
  for (const AsmParserState::OperationDefinition &definition : state.getOpDefs()) {
    auto named = dyn_cast<NameLoc>(definition.op->getLoc());
    if (!named)
      continue;
    auto [line, column] = sources.getLineAndColumn(definition.loc.Start);
    definition.op->setLoc(NameLoc::get(named.getName(), FileLineColLoc::get(name, line, column)));
  }
  return mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(&block, &context, UnknownLoc::get(&context));
}

/// What every model file must have before a pass looks at it.
static LogicalResult checkModel(ModuleOp module) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  if (!forward || !llvm::hasSingleElement(forward.getBody()))
    return module.emitError() << "there is no function @forward with one block; is this a file that `sftc import` wrote?";
  if (!module->getAttrOfType<IntegerAttr>(kVocabSizeAttr))
    return module.emitError() << "the module has no `" << kVocabSizeAttr << "`; is this a file that `sftc import` wrote?";
  return success();
}

LogicalResult sftc::compileModel(StringRef path, const CompileOptions &options, EmitLevel level, MLIRContext &context, raw_ostream &output) {
  Location unknown = UnknownLoc::get(&context);
  FailureOr<ResolvedOptions> resolved = resolveOptions(options, level, unknown);
  if (failed(resolved))
    return failure();
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!file)
    return emitError(unknown) << "cannot read the model file (" << path << "): " << file.getError().message()
                              << "; `sftc import CKPT_DIR -o FILE.mlir` writes one";
  std::string source = (*file)->getBuffer().str();
  OwningOpRef<ModuleOp> module = parseModel(std::move(*file), context);
  if (!module || failed(checkModel(*module)))
    return failure();

  // Remarks go into the plan, too.
  std::vector<fb::RemarkT> remarks;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Remark) {
      fb::RemarkT remark;
      remark.message = diagnostic.str();
      remark.pass_ = remark.message.substr(0, remark.message.find(':'));
      remarks.push_back(remark);
    }
    return failure(); // let the next handler print it
  });

  auto print = [&] {
    (*module)->removeAttr(kKernelObjectAttr);
    module->print(output, OpPrintingFlags().enableDebugInfo(false));
    output << '\n';
    return success();
  };
  annotateModule(*module, *resolved);
  if (failed(runPasses(*module, [&](OpPassManager &manager) { buildGraphPipeline(manager, options, level); })))
    return failure();
  if (level <= EmitLevel::Fused)
    return print();
  if (failed(runPasses(*module, [&](OpPassManager &manager) { buildCodegenPipeline(manager, options); })))
    return failure();
  FailureOr<RowBodies> bodies = collectBodies(*module);
  if (failed(bodies) || failed(runPasses(*module, buildPlanPipeline)))
    return failure();
  if (level == EmitLevel::PlanText)
    return print();

  EmitInputs inputs{&options, &*resolved, &*bodies, std::move(source), std::move(remarks)};
  FailureOr<std::unique_ptr<fb::PlanT>> plan = emitPlan(*module, inputs);
  if (failed(plan))
    return failure();
  std::vector<std::string> problems = ::sft::verifyPlan(**plan);
  if (!problems.empty()) {
    for (const std::string &problem : problems)
      emitError(unknown) << "internal error: the plan is not sound: " << problem;
    return failure();
  }
  std::vector<uint8_t> bytes = ::sft::serializePlan(**plan);
  output.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return success();
}
