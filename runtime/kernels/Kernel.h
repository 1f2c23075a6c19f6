//===- Kernel.h - what a backend implements -----------------------------------===//
//
// A backend registers one KernelEntry for each name in Kernels.def. The executor makes a KernelCall of every launch in a
// program, lets all of them be checked, and binds those that pass. Nothing is allocated or looked up when a bound kernel runs.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_KERNELS_KERNEL_H
#define RUNTIME_KERNELS_KERNEL_H

#include "runtime/base/DType.h"
#include "runtime/plan/plan_generated.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sft {

class WorkerPool;

/// One operand of a launch: where it lies and what it is. `data` is null for an absent optional operand.
struct TensorRef {
  void *data = nullptr;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;

  bool present() const { return data != nullptr; }
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape)
      n *= d;
    return n;
  }
  size_t bytes() const { return size_t(elements()) * dtypeBytes(dtype); }
  template <typename T> T *as() const { return static_cast<T *>(data); }
};

/// A generated row kernel: processes rows [row_begin, row_end). operands[i] points to element 0 of operand i, except that a
/// column-sum operand points to the fp32 partial sums of the block that is being processed, which the function overwrites.
using RowFunction = void (*)(void *const *operands, int64_t row_begin, int64_t row_end);

/// One launch with everything that is known before it runs.
struct KernelCall {
  std::string kernel;                         ///< name in Kernels.def
  std::vector<TensorRef> operands;            ///< in signature order
  std::map<std::string, int64_t> integers;    ///< parameters; defaults filled in, `accumulate` already resolved to 0 or 1
  std::map<std::string, double> floats;
  std::map<std::string, std::string> strings;
  void *workspace = nullptr;                  ///< as many bytes as the rule in KernelWorkspace.cpp says
  size_t workspace_bytes = 0;
  RowFunction row_function = nullptr;         ///< row_kernel: the generated code
  const fb::RowBodyT *row_body = nullptr;      ///< row_kernel: the same, to be interpreted
  std::string location;                       ///< source place, for messages
};

/// A launch that is ready to run. `run` may be called any number of times, from one thread at a time.
class BoundKernel {
public:
  virtual ~BoundKernel() = default;
  virtual void run(WorkerPool &pool) = 0;
};

/// What a backend offers for one kernel name.
struct KernelEntry {
  std::string name;
  /// Throws sft::Error when this backend cannot run the call (dtype, shape, parameter).
  std::function<void(const KernelCall &)> check;
  std::function<std::unique_ptr<BoundKernel>(const KernelCall &)> bind;
};

/// The kernels of one backend, by name.
class KernelRegistry {
public:
  void add(KernelEntry entry) { entries_[entry.name] = std::move(entry); }
  /// Null when the backend lacks the kernel.
  const KernelEntry *find(const std::string &name) const {
    auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : &it->second;
  }

private:
  std::map<std::string, KernelEntry> entries_;
};

/// The plain kernels, always built in: loops that follow the definitions, in fp64 where that is simpler to trust.
void registerReferenceKernels(KernelRegistry &registry);

/// Entry point of a backend module (libsft_cpu.so exports `sft_register_kernels` of this type).
using RegisterKernelsFunction = void (*)(KernelRegistry &registry);

} // namespace sft

#endif // RUNTIME_KERNELS_KERNEL_H
