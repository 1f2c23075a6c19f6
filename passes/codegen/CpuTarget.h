//===- CpuTarget.h - the CPU that row kernels are generated for ------------------===//
#ifndef PASSES_CODEGEN_CPUTARGET_H
#define PASSES_CODEGEN_CPUTARGET_H

#include "mlir/IR/Location.h"
#include "mlir/Support/LLVM.h"

#include <string>
#include <vector>

namespace sftc {

/// Generated code is scheduled for `cpu`, but uses the instructions of x86-64 and of `features`
/// only; so a machine that has the features runs it, whatever its name.
struct CpuTarget {
  std::string cpu;                   ///< LLVM's name, `native` resolved
  std::vector<std::string> features; ///< as __builtin_cpu_supports names them

  bool has(llvm::StringRef feature) const { return llvm::is_contained(features, feature); }
  /// f32 elements of a vector register.
  int64_t vectorWidth() const { return has("avx512f") ? 16 : 8; }
};

/// `name` is a CPU that LLVM knows, or `native`: this machine's. An error where LLVM does not know
/// it, or where it lacks avx2 or fma.
mlir::FailureOr<CpuTarget> resolveCpuTarget(llvm::StringRef name, mlir::Location location);

} // namespace sftc

#endif // PASSES_CODEGEN_CPUTARGET_H
