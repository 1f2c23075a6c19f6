#include "passes/codegen/CompileCpu.h"
#include "passes/codegen/EmitCpu.h"
#include "passes/codegen/RowKernel.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace sftc;

void sftc::registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                  math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

//===----------------------------------------------------------------------===//
// MLIR to LLVM IR
//===----------------------------------------------------------------------===//

/// Leaves nothing but the llvm dialect.
static LogicalResult lowerToLLVM(ModuleOp module) {
  // exp and log would become calls of libm for each element.
  RewritePatternSet patterns(module.getContext());
  populateMathPolynomialApproximationPatterns(patterns, MathPolynomialApproximationOptions{});
  if (failed(applyPatternsGreedily(module, std::move(patterns))))
    return module.emitError() << "the approximation of math functions did not come to an end";

  PassManager passes(module.getContext());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
    return failure();
  WalkResult left = module.walk([](Operation *op) {
    if (isa<ModuleOp>(op) || isa<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitError() << "row kernels cannot be generated from '" << op->getName() << "'";
    return WalkResult::interrupt();
  });
  return failure(left.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// LLVM IR to an object
//===----------------------------------------------------------------------===//

static void setFunctionAttributes(llvm::Module &module, const CpuTarget &target,
                                  StringRef features) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", "x86-64");
    function.addFnAttr("tune-cpu", target.cpu);
    function.addFnAttr("target-features", features);
    function.addFnAttr("prefer-vector-width", std::to_string(32 * target.vectorWidth()));
    // Loops stay loops: a call of memset or memcpy would have nothing to link against.
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  // The loops are vector loops already.
  tuning.LoopUnrolling = tuning.LoopInterleaving = tuning.LoopVectorization =
      tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

static FailureOr<SmallVector<char, 0>> generateObject(ModuleOp source, const CpuTarget &target) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86Target();
  LLVMInitializeX86AsmPrinter();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(source, context, "row_kernels");
  if (!module)
    return failure();

  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string problem, features;
  const llvm::Target *x86 = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (!x86)
    return source.emitError() << "this LLVM cannot generate x86-64 code: " << problem;
  for (const std::string &feature : target.features)
    features += (features.empty() ? "+" : ",+") + feature;
  std::unique_ptr<llvm::TargetMachine> machine(x86->createTargetMachine(
      triple, "x86-64", features, llvm::TargetOptions(), llvm::Reloc::PIC_));
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*module, target, features);
  optimize(*module, *machine);

  SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return source.emitError() << "this LLVM cannot write x86-64 objects";
  emission.run(*module);
  return object;
}

//===----------------------------------------------------------------------===//
// Object to shared object
//===----------------------------------------------------------------------===//

namespace {
/// A folder of our own that goes away with everything in it.
class TemporaryFolder {
public:
  ~TemporaryFolder() {
    if (!path.empty())
      llvm::sys::fs::remove_directories(path);
  }
  std::error_code create() { return llvm::sys::fs::createUniqueDirectory("sftc", path); }
  std::string file(StringRef name) const {
    SmallString<128> full(path);
    llvm::sys::path::append(full, name);
    return std::string(full);
  }

private:
  SmallString<128> path;
};
} // namespace

static FailureOr<std::vector<uint8_t>> linkSharedObject(Location location, ArrayRef<char> object) {
  std::string linker;
  for (StringRef name : {"ld", "ld.lld-22", "ld.lld"})
    if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(name);
        found && linker.empty())
      linker = *found;
  if (linker.empty()) {
    InFlightDiagnostic diagnostic =
        emitError(location)
        << "no linker for the row kernels: neither ld nor ld.lld is in the PATH";
    diagnostic.attachNote() << "Debian has them in the packages binutils and lld-22";
    return diagnostic;
  }

  TemporaryFolder folder;
  if (std::error_code error = folder.create())
    return emitError(location) << "cannot make a temporary folder: " << error.message();
  const std::string input = folder.file("kernels.o"), output = folder.file("kernels.so"),
                    messages = folder.file("messages");
  std::error_code error;
  {
    llvm::raw_fd_ostream file(input, error);
    file.write(object.data(), object.size());
    file.close();
    error = error ? error : file.error();
    file.clear_error();
  }
  if (error)
    return emitError(location) << "cannot write " << input << ": " << error.message();

  // -z defs: a call of a library function is an error here, not on the machine that runs the plan.
  SmallVector<StringRef> arguments = {linker,
                                      "-shared",
                                      "-z",
                                      "defs",
                                      "-z",
                                      "noexecstack",
                                      "-z",
                                      "noseparate-code",
                                      "--build-id=none",
                                      "-s",
                                      "-o",
                                      output,
                                      input};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(messages), StringRef(messages)};
  std::string problem;
  int status =
      llvm::sys::ExecuteAndWait(linker, arguments, std::nullopt, redirects, 0, 0, &problem);
  if (status != 0) {
    if (llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> text =
            llvm::MemoryBuffer::getFile(messages))
      problem += (*text)->getBuffer().trim();
    return emitError(location) << linker << " cannot link the row kernels: " << problem;
  }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> linked = llvm::MemoryBuffer::getFile(output);
  if (!linked)
    return emitError(location) << "cannot read " << output << ": " << linked.getError().message();
  StringRef bytes = (*linked)->getBuffer();
  return std::vector<uint8_t>(bytes.bytes_begin(), bytes.bytes_end());
}

FailureOr<GeneratedKernels> sftc::compileRowKernels(ArrayRef<FusedOp> kernels,
                                                    const CpuTarget &target) {
  GeneratedKernels result;
  if (kernels.empty())
    return result;
  MLIRContext *context = kernels.front()->getContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  for (FusedOp op : kernels) {
    std::optional<StringRef> name = op.getKernel();
    if (!name)
      return op.emitError() << "has no kernel name";
    if (failed(emitCpuRowKernel(*module, RowKernel(op), *name, target)))
      return failure();
    result.symbols.push_back(name->str());
  }
  if (failed(verify(*module)) || failed(lowerToLLVM(*module)))
    return failure();
  FailureOr<SmallVector<char, 0>> object = generateObject(*module, target);
  if (failed(object))
    return failure();
  FailureOr<std::vector<uint8_t>> linked =
      linkSharedObject(FusedOp(kernels.front()).getLoc(), *object);
  if (failed(linked))
    return failure();
  result.sharedObject = std::move(*linked);
  return result;
}
