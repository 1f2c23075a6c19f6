#include "test/conformance/Conformance.h"

#include "runtime/kernels/WorkerPool.h"
#include "runtime/plan/KernelSignature.h"

#include <dlfcn.h>

#include <cmath>
#include <cstring>

using namespace sft;
using namespace sft::test;

namespace {

constexpr size_t kGuard = 256;
constexpr uint8_t kGuardByte = 0xa5;

/// Memory that shows when something was written outside.
class GuardedMemory {
public:
  explicit GuardedMemory(size_t bytes)
      : bytes_(bytes), memory_(bytes + 2 * kGuard + 64, kGuardByte) {
    auto address = reinterpret_cast<uintptr_t>(memory_.data());
    offset_ = kGuard + (64 - (address + kGuard) % 64) % 64;
  }

  uint8_t *data() { return memory_.data() + offset_; }
  bool intact() const {
    for (size_t i = 0; i < memory_.size(); ++i)
      if ((i < offset_ || i >= offset_ + bytes_) && memory_[i] != kGuardByte)
        return false;
    return true;
  }

private:
  size_t bytes_, offset_;
  std::vector<uint8_t> memory_;
};

template <typename Element>
CaseOperand makeOperand(Role role, DType dtype, std::vector<int64_t> shape,
                        const std::vector<Element> &values) {
  CaseOperand operand{role, dtype, std::move(shape),
                      std::vector<uint8_t>(values.size() * sizeof(Element))};
  if (!values.empty())
    std::memcpy(operand.bytes.data(), values.data(), operand.bytes.size());
  return operand;
}

KernelCall makeCall(const Case &launch, std::vector<GuardedMemory> &memory) {
  KernelCall call;
  call.kernel = launch.kernel;
  call.integers = launch.integers;
  call.floats = launch.floats;
  call.row_function = launch.rowFunction;
  call.row_body = launch.rowBody.get();
  call.location = launch.name;
  std::vector<std::vector<int64_t>> shapes;
  for (const CaseOperand &operand : launch.operands) {
    memory.emplace_back(operand.bytes.size());
    TensorRef tensor;
    tensor.dtype = operand.dtype;
    tensor.shape = operand.shape;
    tensor.data = operand.role == Role::Absent ? nullptr : memory.back().data();
    call.operands.push_back(tensor);
    shapes.push_back(operand.shape);
  }
  const KernelSignature *signature = findKernel(launch.kernel);
  EXPECT_NE(signature, nullptr);
  call.workspace_bytes = kernelWorkspaceBytes(*signature, shapes, launch.integers);
  memory.emplace_back(call.workspace_bytes);
  call.workspace = memory.back().data();
  return call;
}

} // namespace

CaseOperand test::absent() { return {Role::Absent, DType::F32, {}, {}}; }

CaseOperand test::input(std::vector<int64_t> shape, const std::vector<float> &values) {
  return makeOperand(Role::In, DType::F32, std::move(shape), values);
}

CaseOperand test::input(std::vector<int64_t> shape, const std::vector<int32_t> &values) {
  return makeOperand(Role::In, DType::I32, std::move(shape), values);
}

CaseOperand test::inout(std::vector<int64_t> shape, const std::vector<float> &values) {
  return makeOperand(Role::InOut, DType::F32, std::move(shape), values);
}

CaseOperand test::output(std::vector<int64_t> shape, DType dtype) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return {Role::Out, dtype, std::move(shape),
          std::vector<uint8_t>(size_t(elements) * dtypeBytes(dtype), 0xff)};
}

CaseOperand test::asBf16(const CaseOperand &operand) {
  std::vector<uint16_t> rounded;
  for (float value : floats(operand.bytes))
    rounded.push_back(floatToBf16(value));
  return makeOperand(operand.role, DType::BF16, operand.shape, rounded);
}

const KernelRegistry &test::referenceBackend() {
  static const KernelRegistry registry = [] {
    KernelRegistry made;
    registerReferenceKernels(made);
    return made;
  }();
  return registry;
}

const KernelRegistry &test::cpuBackend() {
  static const KernelRegistry registry = [] {
    KernelRegistry made;
    void *module = dlopen(SFT_CPU_MODULE, RTLD_NOW | RTLD_LOCAL);
    if (!module)
      throw std::runtime_error(dlerror());
    auto load = reinterpret_cast<RegisterKernelsFunction>(dlsym(module, "sft_register_kernels"));
    if (!load)
      throw std::runtime_error(dlerror());
    load(made);
    return made;
  }();
  return registry;
}

Contents test::runCase(const KernelRegistry &backend, const Case &launch, int threads) {
  std::vector<GuardedMemory> memory;
  memory.reserve(launch.operands.size() + 1);
  KernelCall call = makeCall(launch, memory);
  const KernelEntry *entry = backend.find(launch.kernel);
  if (!entry) {
    ADD_FAILURE() << "the backend lacks " << launch.kernel;
    return {};
  }
  WorkerPool pool(threads);
  std::unique_ptr<BoundKernel> bound;
  Contents results[2];
  for (Contents &result : results) {
    for (size_t i = 0; i < launch.operands.size(); ++i)
      if (!launch.operands[i].bytes.empty())
        std::memcpy(memory[i].data(), launch.operands[i].bytes.data(),
                    launch.operands[i].bytes.size());
    std::memset(memory.back().data(), 0xff, call.workspace_bytes);
    if (!bound) {
      entry->check(call);
      bound = entry->bind(call);
    }
    bound->run(pool);
    for (size_t i = 0; i < memory.size(); ++i)
      EXPECT_TRUE(memory[i].intact())
          << launch.name << ": written outside operand " << i << " (the last one is the workspace)";
    for (size_t i = 0; i < launch.operands.size(); ++i) {
      result.emplace_back(memory[i].data(), memory[i].data() + launch.operands[i].bytes.size());
      if (launch.operands[i].role == Role::In)
        EXPECT_EQ(result.back(), launch.operands[i].bytes)
            << launch.name << ": input " << i << " changed";
    }
  }
  EXPECT_EQ(results[0], results[1]) << launch.name << ": two runs differ";
  return results[0];
}

void test::conform(const Case &launch) {
  Contents expected = runCase(referenceBackend(), launch, 1);
  EXPECT_EQ(expected, runCase(referenceBackend(), launch, 2))
      << "reference: 2 threads differ from 1";
  Contents actual = runCase(cpuBackend(), launch, 1);
  for (int threads : {2, 3})
    EXPECT_EQ(actual, runCase(cpuBackend(), launch, threads))
        << threads << " threads differ from 1";
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    expectNear(numbers(launch.operands[i], actual[i]), numbers(launch.operands[i], expected[i]),
               launch.operands[i].role == Role::In ? 0 : launch.tolerance,
               launch.kernel + " operand " + std::to_string(i), launch.unit);
}

std::vector<float> test::floats(const std::vector<uint8_t> &bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty())
    std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<double> test::numbers(const CaseOperand &operand, const std::vector<uint8_t> &bytes) {
  std::vector<double> values;
  for (size_t at = 0; at < bytes.size(); at += dtypeBytes(operand.dtype)) {
    uint32_t raw = 0;
    std::memcpy(&raw, bytes.data() + at, dtypeBytes(operand.dtype));
    float asFloat;
    std::memcpy(&asFloat, &raw, sizeof raw);
    values.push_back(operand.dtype == DType::I32    ? double(int32_t(raw))
                     : operand.dtype == DType::BF16 ? double(bf16ToFloat(uint16_t(raw)))
                                                    : double(asFloat));
  }
  return values;
}

void test::expectNear(const std::vector<double> &actual, const std::vector<double> &expected,
                      double tolerance, const std::string &what, double unit) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = unit, worst = 0;
  size_t where = 0, different = 0;
  for (double value : expected)
    if (std::isfinite(value))
      largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i] ||
        (tolerance == 0 && std::isnan(actual[i]) && std::isnan(expected[i])))
      continue;
    double error = std::abs(actual[i] - expected[i]);
    bool wrong = !(error <= tolerance * largest);
    different += wrong;
    if (!(error <= worst)) {
      worst = error;
      where = i;
    }
  }
  EXPECT_EQ(different, 0u) << what << ": " << different << " of " << actual.size()
                           << " entries wrong; worst at " << where << ": " << actual[where]
                           << " instead of " << expected[where] << ", error " << worst / largest
                           << " of the largest entry";
}

std::vector<float> test::normal(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = distribution(generator);
  return values;
}
