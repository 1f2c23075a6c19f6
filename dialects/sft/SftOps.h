//===- SftOps.h - the ops of the sft dialect ---------------------------------------===//
#ifndef DIALECTS_SFT_SFTOPS_H
#define DIALECTS_SFT_SFTOPS_H

#include "dialects/sft/SftDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/sft/SftInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/sft/SftOps.h.inc"

namespace sftc {

/// The type of a value of the graph; all of them are ranked tensors.
inline mlir::RankedTensorType tensorType(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }

/// `type` with one dimension changed.
mlir::RankedTensorType withDimension(mlir::RankedTensorType type, unsigned dimension, int64_t size);

/// A scalar f32 constant in the body of a row kernel.
mlir::Value rowConstant(mlir::ImplicitLocOpBuilder &builder, double value);

} // namespace sftc

#endif // DIALECTS_SFT_SFTOPS_H
