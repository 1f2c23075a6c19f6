//===- sftc.cpp - the compiler's command line -----------------------------------===//

#include "tools/sftc/sftc.h"

#include "compiler/Register.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace llvm;
using namespace sftc;

cl::OptionCategory &sftc::getOptionCategory() {
  static cl::OptionCategory category("Options of sftc");
  return category;
}

static cl::opt<bool> quiet("quiet", cl::desc("Print errors only"),
                           cl::sub(cl::SubCommand::getAll()), cl::cat(getOptionCategory()));

static constexpr StringLiteral overview =
    R"(sftc: compiles supervised fine-tuning of a language model into a plan file

  sftc import CKPT_DIR -o model.mlir      reads a Hugging Face config.json
  sftc compile model.mlir -o model.plan --mesh cp=2 --tokens 1024
                                          compiles it for a mesh of ranks
  sftc COMMAND --help                     shows what a command takes

Exit codes: 0 done, 1 bad input, 2 wrong usage.
)";

void sftc::reportError(const Twine &message) { errs() << "sftc: error: " << message << '\n'; }

ExitCode sftc::writeOutput(StringRef path, function_ref<void(raw_ostream &)> write) {
  std::error_code error;
  ToolOutputFile file(path, error, sys::fs::OF_None);
  if (!error) {
    write(file.os());
    file.os().flush();
    error = file.os().error();
    file.os().clear_error(); // Reported here; the stream would end the process.
  }
  if (error) {
    reportError("cannot write (-o): " + path + ": " + error.message());
    return Failed;
  }
  file.keep();
  return Done;
}

/// The place of a diagnostic, FILE:LINE:COL or `sftc`, and the name of what it is about where it has one.
static std::pair<std::string, std::string> describe(mlir::Location location) {
  std::string place = "sftc", name;
  location->walk([&](mlir::Location part) {
    if (auto file = dyn_cast<mlir::FileLineColLoc>(part)) {
      place = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" + Twine(file.getColumn())).str();
      return mlir::WalkResult::interrupt();
    }
    if (auto named = dyn_cast<mlir::NameLoc>(part); named && name.empty())
      name = named.getName().str();
    return mlir::WalkResult::advance();
  });
  return {place, name};
}

static bool printRemarks = false;
void sftc::setPrintRemarks(bool print) { printRemarks = print; }

static void print(const mlir::Diagnostic &diagnostic) {
  static constexpr StringLiteral kinds[] = {"note", "warning", "error", "remark"};
  StringRef kind = kinds[unsigned(diagnostic.getSeverity())];
  if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark && !printRemarks)
    return;
  if (quiet && diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
    return;
  auto [place, name] = describe(diagnostic.getLocation());
  errs() << place << ": " << kind << ": " << name << (name.empty() ? "" : ": ") << diagnostic << '\n';
  for (const mlir::Diagnostic &note : diagnostic.getNotes())
    print(note);
}

/// Prints what the parser of the command line said, in our form, and returns the code of wrong
/// usage.
static ExitCode reportUsage(StringRef text) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    if (size_t colon = line.find(": "); colon != StringRef::npos && !line.starts_with(" "))
      line = line.drop_front(colon + 2);
    reportError(line);
  }
  return WrongUsage;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  const Command commands[] = {getImportCommand(), getCompileCommand()};

  cl::SetVersionPrinter([](raw_ostream &stream) { stream << "sftc " SFTC_VERSION "\n"; });
  for (const Command &command : commands) {
    cl::HideUnrelatedOptions(getOptionCategory(), *command.subcommand);
    if (argc > 1 && command.subcommand->getName() == argv[1])
      cl::extrahelp(command.help); // Adds itself to the parser's list.
  }
  cl::HideUnrelatedOptions(getOptionCategory());
  std::string problems;
  raw_string_ostream problemStream(problems);
  if (!cl::ParseCommandLineOptions(argc, argv, overview, &problemStream))
    return reportUsage(problems);

  mlir::DialectRegistry registry;
  registerAll(registry);
  // One thread: diagnostics come in order.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // A place and a name say more than a dump of the op.
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &diagnostic) { print(diagnostic); });
  for (const Command &command : commands)
    if (*command.subcommand)
      return command.run(context);
  reportError("no command; try: sftc --help");
  return WrongUsage;
}
