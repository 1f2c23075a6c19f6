//===- EmitPlan.h - from the plan dialect to the plan file ------------------------------===//
#ifndef COMPILER_EMITPLAN_H
#define COMPILER_EMITPLAN_H

#include "compiler/Options.h"
#include "runtime/plan/plan_generated.h"

#include <map>

namespace sftc {

/// Bodies of the generated kernels by name, in the form of the plan file.
using RowBodies = std::map<std::string, ::sft::fb::RowBodyT>;

/// What EmitPlan takes from outside the module.
struct EmitInputs {
  const CompileOptions *options = nullptr;
  const ResolvedOptions *resolved = nullptr;
  const RowBodies *bodies = nullptr;
  std::string source; ///< the model file
  std::vector<::sft::fb::RemarkT> remarks;
};

/// Fills a plan from a module at the plan level; no op of the sft dialect is named here. Fails after a diagnostic.
mlir::FailureOr<std::unique_ptr<::sft::fb::PlanT>> emitPlan(mlir::ModuleOp module, const EmitInputs &inputs);

} // namespace sftc

#endif // COMPILER_EMITPLAN_H
