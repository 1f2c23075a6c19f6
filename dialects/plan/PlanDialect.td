//===- PlanDialect.td - the plan dialect -----------------------------------------===//
#ifndef DIALECTS_PLAN_PLANDIALECT
#define DIALECTS_PLAN_PLANDIALECT

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::sftc::plan";
  let summary = "Programs as the runtime executes them";
  let description = [{
    One op per kind of instruction in the plan file, so that what a test sees here is what runs. Buffers are memrefs of one rank:
    `plan.global` lives between programs (parameters, gradients, optimizer state, tables), `plan.alloc` is transient memory of one
    program. Instructions name the kernels of runtime/plan/Kernels.def.
  }];
}

#endif
