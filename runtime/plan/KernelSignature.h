//===- KernelSignature.h - Kernels.def as data ---------------------------------===//
#ifndef RUNTIME_PLAN_KERNELSIGNATURE_H
#define RUNTIME_PLAN_KERNELSIGNATURE_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sft {

struct OperandSignature {
  std::string name;
  bool in = false, out = false, optional = false;
  std::vector<std::string> dtypes;
  std::vector<std::string> dimensions; ///< one "*" alone: any rank
};

struct ParameterSignature {
  std::string name, type, default_value;
  bool required = false;
};

struct KernelSignature {
  std::string name;
  std::vector<OperandSignature> operands; ///< empty for row_kernel, whose operands stand in the plan
  std::vector<ParameterSignature> parameters;
  std::string workspace;                  ///< name of the rule
  uint64_t hash = 0;                      ///< XXH3 of the entry's text
};

/// Null for an unknown name.
const KernelSignature *findKernel(const std::string &name);
/// All names, in the order of Kernels.def.
std::vector<std::string> kernelNames();

/// Bytes of workspace that a launch needs. `shapes` are the operands' shapes in signature order (empty for an absent one).
size_t kernelWorkspaceBytes(const KernelSignature &signature, const std::vector<std::vector<int64_t>> &shapes,
                            const std::map<std::string, int64_t> &integers);

/// Rows of one block of a row kernel.
inline constexpr int64_t kRowBlock = 64;
/// Elements that one partial sum of sum_of_squares covers.
inline constexpr int64_t kSumBlock = 65536;

} // namespace sft

#endif // RUNTIME_PLAN_KERNELSIGNATURE_H
