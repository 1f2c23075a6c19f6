// The workspace rules that Kernels.def names. The compiler reserves by them and the runtime relies
// on them.

#include "runtime/base/Error.h"
#include "runtime/plan/KernelSignature.h"

using namespace sft;

namespace {

/// Product of sizes that come from a file; throws instead of wrapping.
int64_t product(const KernelSignature &signature, const std::vector<int64_t> &factors) {
  int64_t result = 1;
  for (int64_t factor : factors)
    if (factor < 0 || __builtin_mul_overflow(result, factor, &result))
      fail("workspace cannot be computed (kernel ", signature.name, "): size ", factor,
           "; sizes are not negative and their product is below 2^63");
  return result;
}

int64_t ceilDivide(int64_t value, int64_t divisor) {
  return value / divisor + (value % divisor != 0);
}

size_t indexOfOperand(const KernelSignature &signature, const std::string &name) {
  for (size_t i = 0; i < signature.operands.size(); ++i)
    if (signature.operands[i].name == name)
      return i;
  failInternal("kernel ", signature.name, " has no operand ", name);
}

const std::vector<int64_t> &shapeOf(const KernelSignature &signature, size_t operand,
                                    const std::vector<std::vector<int64_t>> &shapes) {
  if (operand >= shapes.size())
    fail("workspace cannot be computed (kernel ", signature.name, "): ", shapes.size(),
         " operands; operand ", operand, " is needed");
  return shapes[operand];
}

int64_t positiveParameter(const KernelSignature &signature, const std::string &name,
                          const std::map<std::string, int64_t> &integers) {
  auto it = integers.find(name);
  if (it == integers.end() || it->second < 1)
    fail("workspace cannot be computed (kernel ", signature.name, "): parameter ", name,
         it == integers.end() ? std::string(" is missing") : concat(" is ", it->second),
         "; it must be at least 1");
  return it->second;
}

/// One fp32 number for every element of lse: rowsum(dout * o), which both gradients of attention
/// need.
int64_t attentionGrad(const KernelSignature &signature,
                      const std::vector<std::vector<int64_t>> &shapes) {
  int64_t lse = product(signature, shapeOf(signature, indexOfOperand(signature, "lse"), shapes));
  return product(signature, {lse, 4});
}

/// One fp64 partial sum for every block of elements.
int64_t sumOfSquares(const KernelSignature &signature,
                     const std::vector<std::vector<int64_t>> &shapes) {
  int64_t elements = product(signature, shapeOf(signature, indexOfOperand(signature, "x"), shapes));
  return product(signature, {ceilDivide(elements, kSumBlock), 8});
}

/// Every block of rows has its own fp32 partial sums, which are added up in block order afterwards.
int64_t columnSums(const KernelSignature &signature,
                   const std::vector<std::vector<int64_t>> &shapes,
                   const std::map<std::string, int64_t> &integers) {
  auto mask = integers.find("column_sums");
  uint64_t columnSumOperands = mask == integers.end() ? 0 : uint64_t(mask->second);
  if (columnSumOperands == 0)
    return 0;
  int64_t blocks = ceilDivide(positiveParameter(signature, "rows", integers),
                              positiveParameter(signature, "block_rows", integers));
  int64_t widths = 0;
  for (size_t i = 0; i < 64; ++i) {
    if (!(columnSumOperands >> i & 1))
      continue;
    int64_t width = product(signature, shapeOf(signature, i, shapes));
    if (__builtin_add_overflow(widths, width, &widths))
      fail("workspace cannot be computed (kernel ", signature.name, "): column width ", width,
           "; their sum is below 2^63");
  }
  return product(signature, {blocks, widths, 4});
}

} // namespace

size_t sft::kernelWorkspaceBytes(const KernelSignature &signature,
                                 const std::vector<std::vector<int64_t>> &shapes,
                                 const std::map<std::string, int64_t> &integers) {
  if (signature.workspace == "none")
    return 0;
  if (signature.workspace == "attention_grad")
    return size_t(attentionGrad(signature, shapes));
  if (signature.workspace == "sum_of_squares")
    return size_t(sumOfSquares(signature, shapes));
  if (signature.workspace == "column_sums")
    return size_t(columnSums(signature, shapes, integers));
  failInternal("kernel ", signature.name, " names the unknown workspace rule ",
               signature.workspace);
}
