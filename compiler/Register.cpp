#include "compiler/Register.h"
#include "dialects/plan/PlanOps.h"
#include "dialects/sft/SftDialect.h"
#include "passes/Passes.h"

#include "mlir/Transforms/Passes.h"

void sftc::registerAll(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect, SftDialect,
                  plan::PlanDialect>();
  registerSftPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
}
