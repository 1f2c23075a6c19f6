#include "tools/sftc/sftc.h"

#include "compiler/Compile.h"
#include "runtime/base/Error.h"
#include "runtime/plan/PlanFile.h"

#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace sftc;

static cl::SubCommand compileCommand("compile", "Turn a model file into a plan file");

static auto in() { return cl::sub(compileCommand); }
static auto group() { return cl::cat(getOptionCategory()); }

static CompileOptions options;

static cl::opt<std::string> model(cl::Positional, cl::Required, cl::desc("MODEL.mlir"), in(), group());
static cl::opt<std::string> output("o", cl::desc("Where to write the result; - is standard output"), cl::value_desc("FILE"),
                                   cl::init("-"), in(), group());
static cl::opt<std::string, true> mesh("mesh", cl::desc("Sizes of the mesh axes; axes not named have size 1 (default: cp=1,dp=1)"),
                                       cl::value_desc("cp=B,dp=C"), cl::location(options.mesh), in(), group());
static cl::opt<int64_t, true> tokens("tokens", cl::desc("Real tokens of a pack, at most; padding comes on top"), cl::value_desc("N"),
                                     cl::Required, cl::location(options.tokens), in(), group());
static cl::opt<std::string, true> precision("precision", cl::desc("fp32 (default)"), cl::value_desc("P"),
                                            cl::location(options.precision), in(), group());
static cl::opt<std::string, true> target("target", cl::desc("cpu (default)"), cl::value_desc("T"), cl::location(options.target), in(), group());
static cl::opt<std::string, true> targetCpu("target-cpu", cl::desc("CPU that generated kernels are for: native (default), x86-64-v3, skylake-avx512, ..."),
                                            cl::value_desc("CPU"), cl::location(options.target_cpu), in(), group());
static cl::opt<std::string, true> cpMethod("cp-method", cl::desc("How attention sees the tokens of other ranks: auto (default), gather"),
                                           cl::value_desc("M"), cl::location(options.cp_method), in(), group());
static cl::opt<std::string, true> tokenOrder("token-order", cl::desc("How a pack is cut over cp: auto (default: zigzag), contiguous, zigzag"),
                                             cl::value_desc("O"), cl::location(options.token_order), in(), group());
static cl::opt<std::string, true> padRule("pad-rule", cl::desc("derived (default): the least multiple the ops need; none: refuse instead of padding; "
                                                               "nemo: 16 * cp, for comparison"),
                                          cl::value_desc("R"), cl::location(options.pad_rule), in(), group());
static cl::opt<int64_t, true> maxDocuments("max-documents", cl::desc("Documents in one pack, at most (default: tokens / 32, at least 16)"),
                                           cl::value_desc("N"), cl::location(options.max_documents), in(), group());
static cl::opt<EmitLevel> emitLevel("emit", cl::desc("What to write"), cl::init(EmitLevel::Plan), in(), group(),
                                    cl::values(clEnumValN(EmitLevel::Plan, "plan", "the plan file (default)"),
                                               clEnumValN(EmitLevel::Sft, "sft", "the model as it was read"),
                                               clEnumValN(EmitLevel::Training, "training", "with the backward graph"),
                                               clEnumValN(EmitLevel::Sharded, "sharded", "shapes of one rank and collectives"),
                                               clEnumValN(EmitLevel::Fused, "fused", "row ops as regions"),
                                               clEnumValN(EmitLevel::PlanText, "plan-text", "the plan dialect: what runs")));
static cl::opt<bool> remarks("remarks", cl::desc("Print the decisions: padding, memory"), in(), group());

static constexpr StringLiteral help = R"(
The plan holds the programs train, update and evaluate for every rank of the mesh, with generated machine code: run a plan
only if you trust where it comes from. sft-plan shows what is inside.

EXAMPLE: sftc compile model.mlir -o model.plan --mesh cp=2 --tokens 1024
)";

/// The command line as it can be given again, for messages that ask for recompiling.
static std::string commandLine() {
  std::string text = "sftc compile " + model + " -o " + output + " --tokens " + std::to_string(options.tokens);
  auto add = [&](StringRef name, const std::string &value, StringRef usual) {
    if (value != usual)
      text += (" --" + name + " " + value).str();
  };
  const CompileOptions defaults;
  add("mesh", options.mesh, defaults.mesh);
  add("precision", options.precision, defaults.precision);
  add("target", options.target, defaults.target);
  add("target-cpu", options.target_cpu, defaults.target_cpu);
  add("cp-method", options.cp_method, defaults.cp_method);
  add("token-order", options.token_order, defaults.token_order);
  add("pad-rule", options.pad_rule, defaults.pad_rule);
  if (options.max_documents)
    add("max-documents", std::to_string(options.max_documents), "");
  return text;
}

static ExitCode runCompile(mlir::MLIRContext &context) {
  options.command_line = commandLine();
  setPrintRemarks(remarks);
  if (emitLevel == EmitLevel::Plan && output == "-") {
    reportError("a plan is not text (-o): standard output; give -o FILE.plan, or --emit plan-text");
    return WrongUsage;
  }
  std::string result;
  raw_string_ostream stream(result);
  if (mlir::failed(compileModel(model, options, emitLevel, context, stream)))
    return Failed;
  if (emitLevel != EmitLevel::Plan)
    return writeOutput(output, [&](raw_ostream &file) { file << result; });
  try {
    // Through a temporary name: an interrupted run leaves the plan that was there.
    ::sft::writePlan(output, std::vector<uint8_t>(result.begin(), result.end()));
  } catch (const ::sft::Error &error) {
    reportError(error.what());
    return Failed;
  }
  return Done;
}

Command sftc::getCompileCommand() { return {&compileCommand, help, runCompile}; }
