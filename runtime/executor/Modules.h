//===- Modules.h - machine code that is loaded at run time -----------------------===//
#ifndef RUNTIME_EXECUTOR_MODULES_H
#define RUNTIME_EXECUTOR_MODULES_H

#include "runtime/kernels/Kernel.h"

#include <memory>
#include <string>
#include <vector>

namespace sft {

/// The compile command stored in a plan with one flag changed or added: what to run when a plan
/// must be made again.
std::string recompileCommand(const fb::PlanT &plan, const std::string &flag,
                             const std::string &value);

/// Throws when the plan's code is for another kind of machine, or for CPU features that this
/// machine lacks; the message names them and the command that compiles the plan for this machine.
/// Feature names are LLVM's ("avx2", with or without a leading
/// "+"; "-x" is not needed). A name that this build does not know counts as lacking.
void checkTarget(const fb::PlanT &plan);

/// The generated code of a plan, loaded once for all ranks. Format "elf-x86-64": a shared object,
/// loaded from a memory file.
class GeneratedCode {
public:
  /// Throws on another format, on an object that does not load, and on a missing symbol.
  explicit GeneratedCode(const fb::PlanT &plan);
  ~GeneratedCode();
  GeneratedCode(const GeneratedCode &) = delete;
  GeneratedCode &operator=(const GeneratedCode &) = delete;

  /// By index into Plan.kernels; null for kernels without code.
  RowFunction function(size_t kernel) const { return functions_[kernel]; }

private:
  struct Object {
    // The descriptor stays open: the loader knows objects by their path "/proc/self/fd/N", so N
    // must not be used twice.
    int fd = -1;
    void *handle = nullptr;
  };
  void load(const fb::BlobT &blob, size_t index, Object &object);

  std::vector<Object> objects_; ///< by blob
  std::vector<RowFunction> functions_;
};

/// A backend's module, libsft_NAME.so, looked for beside the executable and in ../lib from there.
/// It stays loaded until the process ends, since kernels and thread-local state of the libraries
/// behind it outlive a session.
class BackendModule {
public:
  /// Throws with the places looked at when there is none.
  explicit BackendModule(const std::string &name);
  /// Adds the module's kernels.
  void registerKernels(KernelRegistry &registry) const { register_(registry); }

private:
  RegisterKernelsFunction register_ = nullptr;
};

} // namespace sft

#endif // RUNTIME_EXECUTOR_MODULES_H
