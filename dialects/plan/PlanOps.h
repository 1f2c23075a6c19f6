//===- PlanOps.h - the ops of the plan dialect ---------------------------------------===//
#ifndef DIALECTS_PLAN_PLANOPS_H
#define DIALECTS_PLAN_PLANOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/plan/PlanDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"

namespace sftc::plan {

/// Alignment of every buffer, in bytes: a cache line, and the widest vector.
inline constexpr int64_t kAlignment = 64;

/// Bytes of a buffer.
int64_t byteSize(mlir::MemRefType type);
inline int64_t byteSize(mlir::Value buffer) { return byteSize(llvm::cast<mlir::MemRefType>(buffer.getType())); }

/// `bytes` rounded up to kAlignment.
inline int64_t alignedSize(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

} // namespace sftc::plan

#endif // DIALECTS_PLAN_PLANOPS_H
