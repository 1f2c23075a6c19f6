#include "tools/sftc/sftc.h"

#include "compiler/Frontend.h"

using namespace llvm;
using namespace sftc;

static cl::SubCommand importCommand("import",
                                    "Turn a Hugging Face checkpoint folder into a model file");

static cl::opt<std::string> checkpoint(cl::Positional, cl::Required, cl::desc("CKPT_DIR"),
                                       cl::sub(importCommand), cl::cat(getOptionCategory()));
static cl::opt<std::string>
    output("o", cl::desc("Where to write the model; - is standard output (default)"),
           cl::value_desc("FILE.mlir"), cl::init("-"), cl::sub(importCommand),
           cl::cat(getOptionCategory()));

static constexpr StringLiteral help = R"(
CKPT_DIR is a folder with a config.json, or a config.json itself; weights are not read. Supported are LlamaForCausalLM
models with SiLU, rope types default, linear and llama3, tied or untied, with or without biases, in the spelling of
transformers 4 and 5. A key of config.json that changes nothing is reported; one that would change numbers and is not
supported is an error.

EXAMPLE: sftc import SmolLM2-135M-Instruct -o model.mlir
)";

static ExitCode runImport(mlir::MLIRContext &context) {
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(checkpoint, context);
  if (!module)
    return Failed;
  // Locations are the names by which remarks and plans speak of ops and weights.
  auto flags = mlir::OpPrintingFlags().enableDebugInfo().printNameLocAsPrefix();
  return writeOutput(output, [&](raw_ostream &stream) {
    module->print(stream, flags);
    stream << '\n';
  });
}

Command sftc::getImportCommand() { return {&importCommand, help, runImport}; }
