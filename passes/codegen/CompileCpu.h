//===- CompileCpu.h - row kernels to machine code --------------------------------===//
#ifndef PASSES_CODEGEN_COMPILECPU_H
#define PASSES_CODEGEN_COMPILECPU_H

#include "dialects/sft/SftOps.h"
#include "passes/codegen/CpuTarget.h"

#include "mlir/IR/DialectRegistry.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sftc {

/// An ELF shared object without undefined symbols, and the functions in it (sft::RowFunction of
/// runtime/kernels/Kernel.h).
struct GeneratedKernels {
  std::vector<uint8_t> sharedObject;
  std::vector<std::string> symbols;
};

/// Compiles one function for each op, named by its `kernel` attribute, and links them with `ld` or
/// `ld.lld` from the PATH. The same ops and target give the same bytes. The context must hold what
/// registerCodegenDialects registers.
mlir::FailureOr<GeneratedKernels> compileRowKernels(llvm::ArrayRef<FusedOp> kernels,
                                                    const CpuTarget &target);

/// The dialects, with their translations, that code generation goes through.
void registerCodegenDialects(mlir::DialectRegistry &registry);

} // namespace sftc

#endif // PASSES_CODEGEN_COMPILECPU_H
