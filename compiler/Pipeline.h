//===- Pipeline.h - the stages, in order ---------------------------------------------===//
#ifndef COMPILER_PIPELINE_H
#define COMPILER_PIPELINE_H

#include "compiler/Options.h"

#include "mlir/Pass/PassManager.h"

namespace sftc {

/// Stores what the passes read from the module: mesh, roles, token axes and order, capacities.
void annotateModule(mlir::ModuleOp module, const ResolvedOptions &options);

/// From the logical level up to `level` (at most Fused), with the verify pass after each stage.
void buildGraphPipeline(mlir::OpPassManager &manager, const CompileOptions &options, EmitLevel level);

/// Compiles the row kernels.
void buildCodegenPipeline(mlir::OpPassManager &manager, const CompileOptions &options);

/// From the fused level to the plan dialect with every buffer placed.
void buildPlanPipeline(mlir::OpPassManager &manager);

} // namespace sftc

#endif // COMPILER_PIPELINE_H
