//===- sftc.h - the subcommands of sftc -----------------------------------------===//
#ifndef TOOLS_SFTC_SFTC_H
#define TOOLS_SFTC_SFTC_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/CommandLine.h"

namespace sftc {

enum ExitCode { Done = 0, Failed = 1, WrongUsage = 2 };

/// A subcommand: what the command line parser knows of it, and what runs it.
struct Command {
  llvm::cl::SubCommand *subcommand;
  /// Shown at the end of its help.
  llvm::StringRef help;
  ExitCode (*run)(mlir::MLIRContext &context);
};

Command getImportCommand();
Command getCompileCommand();

/// Whether remarks (the compiler's decisions) are printed.
void setPrintRemarks(bool print);

/// The options of sftc itself: all others are LLVM's and stay out of the help.
llvm::cl::OptionCategory &getOptionCategory();

/// Prints `sftc: error: MESSAGE`.
void reportError(const llvm::Twine &message);

/// Writes a file, or standard output for "-", and reports what goes wrong. A file that fails
/// half-way is removed.
ExitCode writeOutput(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace sftc

#endif // TOOLS_SFTC_SFTC_H
