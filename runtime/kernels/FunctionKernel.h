//===- FunctionKernel.h - a kernel that is one function -----------------------===//
#ifndef RUNTIME_KERNELS_FUNCTIONKERNEL_H
#define RUNTIME_KERNELS_FUNCTIONKERNEL_H

#include "runtime/kernels/Kernel.h"

#include <utility>

namespace sft {

/// A bound kernel that keeps nothing but its call.
class FunctionKernel : public BoundKernel {
public:
  using Function = void (*)(const KernelCall &call, WorkerPool &pool);
  FunctionKernel(const KernelCall &call, Function function) : call_(call), function_(function) {}
  void run(WorkerPool &pool) override { function_(call_, pool); }

private:
  KernelCall call_;
  Function function_;
};

/// The entry of such a kernel.
inline KernelEntry functionKernel(std::string name, void (*check)(const KernelCall &),
                                  FunctionKernel::Function function) {
  return {std::move(name), check,
          [function](const KernelCall &call) -> std::unique_ptr<BoundKernel> {
            return std::make_unique<FunctionKernel>(call, function);
          }};
}

} // namespace sft

#endif // RUNTIME_KERNELS_FUNCTIONKERNEL_H
