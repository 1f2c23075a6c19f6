//===- Register.h - everything a tool of the compiler knows ---------------------===//
#ifndef COMPILER_REGISTER_H
#define COMPILER_REGISTER_H

#include "mlir/IR/DialectRegistry.h"

namespace sftc {

/// Adds the dialects to `registry` and registers the passes.
void registerAll(mlir::DialectRegistry &registry);

} // namespace sftc

#endif // COMPILER_REGISTER_H
