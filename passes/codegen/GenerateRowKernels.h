//===- GenerateRowKernels.h - what the pass leaves in the module -----------------===//
#ifndef PASSES_CODEGEN_GENERATEROWKERNELS_H
#define PASSES_CODEGEN_GENERATEROWKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace sftc {

/// Module attributes: the shared object (a dense_resource of bytes), and a dictionary of `cpu`
/// (string) and `features` (strings).
inline constexpr llvm::StringLiteral kKernelObjectAttr = "sft.kernel_object";
inline constexpr llvm::StringLiteral kKernelTargetAttr = "sft.kernel_target";

/// The bytes of kKernelObjectAttr; nothing where the module has none.
llvm::ArrayRef<uint8_t> getKernelObject(mlir::ModuleOp module);

} // namespace sftc

#endif // PASSES_CODEGEN_GENERATEROWKERNELS_H
