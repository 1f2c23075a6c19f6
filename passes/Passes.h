//===- Passes.h - every pass, in pipeline order ------------------------------------===//
#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace sftc {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace sftc

#endif // PASSES_PASSES_H
