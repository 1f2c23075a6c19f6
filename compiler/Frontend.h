//===- Frontend.h - from a checkpoint folder to the logical level ---------------===//
#ifndef COMPILER_FRONTEND_H
#define COMPILER_FRONTEND_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace sftc {

/// Module attribute with the number of vocabulary rows: token ids lie below it (IntegerAttr, i64).
inline constexpr llvm::StringLiteral kVocabSizeAttr = "sft.vocab_size";

/// Builds the logical level of the model in `path`: a folder with config.json, or the file itself.
/// Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> importModel(llvm::StringRef path, mlir::MLIRContext &context);

} // namespace sftc

#endif // COMPILER_FRONTEND_H
