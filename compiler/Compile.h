//===- Compile.h - the library call behind sftc compile ----------------------------------===//
#ifndef COMPILER_COMPILE_H
#define COMPILER_COMPILE_H

#include "compiler/Options.h"

#include "llvm/Support/raw_ostream.h"

namespace sftc {

/// Compiles the model file `path` and writes the result of `level` to `output`: text, or the bytes of a plan. Fails after a
/// diagnostic; nothing is written then.
mlir::LogicalResult compileModel(llvm::StringRef path, const CompileOptions &options, EmitLevel level, mlir::MLIRContext &context,
                                 llvm::raw_ostream &output);

} // namespace sftc

#endif // COMPILER_COMPILE_H
