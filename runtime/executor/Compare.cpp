#include "runtime/executor/Compare.h"

#include "runtime/base/Error.h"

#include <cmath>
#include <cstring>

namespace sft {

namespace {

constexpr size_t kAlignment = 64;
size_t alignedBytes(const TensorRef &tensor) {
  return (tensor.bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

bool overlap(const TensorRef &a, const TensorRef &b) {
  const char *x = a.as<const char>(), *y = b.as<const char>();
  return a.present() && b.present() && x < y + b.bytes() && y < x + a.bytes();
}

/// Operands whose contents differ after the launch: outputs, and inputs that share memory with one.
std::vector<size_t> overwrittenOperands(const Launch &launch) {
  const std::vector<TensorRef> &operands = launch.call.operands;
  std::vector<size_t> result;
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t j = 0; j < operands.size(); ++j)
      if (launch.writes[j] && overlap(operands[i], operands[j])) {
        result.push_back(i);
        break;
      }
  return result;
}

double elementAt(const TensorRef &tensor, int64_t i) {
  switch (tensor.dtype) {
  case DType::F32:
    return tensor.as<const float>()[i];
  case DType::BF16:
    return bf16ToFloat(tensor.as<const uint16_t>()[i]);
  case DType::I32:
    return tensor.as<const int32_t>()[i];
  default:
    failInternal("a kernel wrote a type that cannot be compared: ", dtypeName(tensor.dtype));
  }
}

double largestEntry(const TensorRef &tensor) {
  double largest = 0;
  for (int64_t i = 0, n = tensor.elements(); i < n; ++i) {
    double value = std::fabs(elementAt(tensor, i));
    if (std::isfinite(value))
      largest = std::max(largest, value);
  }
  return largest;
}

struct Tolerance {
  double relative = 1e-5, floor_of_operand_0 = 0;
};
Tolerance toleranceOf(const std::string &kernel) {
  if (kernel == "copy" || kernel == "fill" || kernel == "permute_slots")
    return {0, 0};
  if (kernel == "square_grad" || kernel == "rectangle_grad")
    return {2e-5, 1e-6};
  return {};
}

std::string indexText(const TensorRef &tensor, int64_t flat) {
  std::string text;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    text = concat(flat % tensor.shape[d], text.empty() ? "" : ", ", text);
    flat /= tensor.shape[d];
  }
  return concat("[", text, "]");
}

class CompareStep : public BoundStep {
public:
  CompareStep(const Launch &launch, const KernelEntry &backend, const KernelEntry &reference,
              void *storage, WorkerPool &pool)
      : launch_(launch), copies_(launch.call), pool_(pool) {
    char *next = static_cast<char *>(storage);
    overwritten_ = overwrittenOperands(launch);
    for (size_t i : overwritten_) {
      copies_.operands[i].data = next;
      next += alignedBytes(copies_.operands[i]);
    }
    backend_ = backend.bind(launch.call);
    reference_ = reference.bind(copies_);
  }

  void run() override {
    for (size_t i : overwritten_)
      std::memcpy(copies_.operands[i].data, launch_.call.operands[i].data,
                  copies_.operands[i].bytes());
    backend_->run(pool_);
    reference_->run(pool_);
    for (size_t i : overwritten_)
      if (launch_.writes[i])
        compare(i);
  }

private:
  void compare(size_t operand) {
    const TensorRef &got = launch_.call.operands[operand], &expected = copies_.operands[operand];
    if (std::memcmp(got.data, expected.data, got.bytes()) == 0)
      return;
    Tolerance tolerance = toleranceOf(launch_.call.kernel);
    double limit = 0;
    if (got.dtype != DType::I32) {
      double relative =
          tolerance.relative + (got.dtype == DType::BF16 && tolerance.relative > 0 ? 0x1p-8 : 0);
      limit = relative * largestEntry(expected);
      if (tolerance.floor_of_operand_0 > 0)
        limit += tolerance.floor_of_operand_0 * largestEntry(copies_.operands[0]);
    }
    for (int64_t i = 0, n = got.elements(); i < n; ++i) {
      double a = elementAt(got, i), b = elementAt(expected, i);
      bool agree = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= limit;
      if (!agree)
        report(operand, i, a, b, limit);
    }
  }

  void report(size_t operand, int64_t flat, double got, double expected, double limit) {
    std::ostringstream os;
    os.precision(9);
    os << "a kernel differs from the reference (" << launch_.place << "): " << launch_.call.kernel
       << ", " << launch_.operands[operand] << indexText(launch_.call.operands[operand], flat)
       << " is " << got << ", the reference has " << expected << ", tolerance " << limit
       << "; operands:";
    for (size_t i = 0; i < launch_.operands.size(); ++i) {
      const TensorRef &tensor = launch_.call.operands[i];
      os << (i ? ", " : " ") << launch_.operands[i];
      if (!tensor.present())
        continue;
      os << " " << dtypeName(tensor.dtype) << "[";
      for (size_t d = 0; d < tensor.shape.size(); ++d)
        os << (d ? "," : "") << tensor.shape[d];
      os << "]";
    }
    throw Error(ErrorKind::BadInput, os.str());
  }

  Launch launch_;
  KernelCall copies_; ///< the launch on copies of what it overwrites
  WorkerPool &pool_;
  std::vector<size_t> overwritten_;
  std::unique_ptr<BoundKernel> backend_, reference_;
};

} // namespace

size_t compareBytes(const Launch &launch) {
  size_t bytes = 0;
  for (size_t i : overwrittenOperands(launch))
    bytes += alignedBytes(launch.call.operands[i]);
  return bytes;
}

std::unique_ptr<BoundStep> bindCompare(const Launch &launch, const KernelEntry &backend,
                                       const KernelEntry &reference, void *storage,
                                       WorkerPool &pool) {
  return std::make_unique<CompareStep>(launch, backend, reference, storage, pool);
}

} // namespace sft
