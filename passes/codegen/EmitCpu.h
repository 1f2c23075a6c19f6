//===- EmitCpu.h - row kernels as vector loops ----------------------------------===//
#ifndef PASSES_CODEGEN_EMITCPU_H
#define PASSES_CODEGEN_EMITCPU_H

#include "passes/codegen/CpuTarget.h"
#include "passes/codegen/RowKernel.h"

namespace sftc {

/// Appends `func.func @name(operands, row_begin, row_end)` to `module`: sft::RowFunction of
/// runtime/kernels/Kernel.h, as loops of vector operations on llvm pointers.
mlir::LogicalResult emitCpuRowKernel(mlir::ModuleOp module, const RowKernel &kernel,
                                     llvm::StringRef name, const CpuTarget &target);

} // namespace sftc

#endif // PASSES_CODEGEN_EMITCPU_H
