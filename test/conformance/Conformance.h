//===- Conformance.h - runs one launch on a backend and watches its memory -----===//
//
// A Case is one launch with its inputs. Before it runs, outputs and workspace are filled with NaN,
// and every buffer has guard bytes on both sides; afterwards inputs and guards must be untouched.
//
//===--------------------------------------------------------------------------===//
#ifndef TEST_CONFORMANCE_CONFORMANCE_H
#define TEST_CONFORMANCE_CONFORMANCE_H

#include "runtime/kernels/Kernel.h"

#include <gtest/gtest.h>

#include <random>

namespace sft::test {

enum class Role { In, Out, InOut, Absent };

/// An operand of a case; `bytes` is its content before the launch.
struct CaseOperand {
  Role role;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

CaseOperand absent();
CaseOperand input(std::vector<int64_t> shape, const std::vector<float> &values);
CaseOperand input(std::vector<int64_t> shape, const std::vector<int32_t> &values);
CaseOperand inout(std::vector<int64_t> shape, const std::vector<float> &values);
CaseOperand output(std::vector<int64_t> shape, DType dtype = DType::F32);
/// The same values rounded to bf16.
CaseOperand asBf16(const CaseOperand &operand);

struct Case {
  std::string name, kernel;
  std::vector<CaseOperand> operands;
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> floats;
  RowFunction rowFunction = nullptr;
  std::shared_ptr<fb::RowBodyT> rowBody;
  double tolerance = 0; ///< of the largest entry of an output; 0: the same bits as the reference
  double unit =
      0; ///< what counts as the largest entry where all are smaller: size of the terms that cancel
};

/// Contents of the operands after a launch, as bytes.
using Contents = std::vector<std::vector<uint8_t>>;

const KernelRegistry &referenceBackend();
const KernelRegistry &cpuBackend();

/// Checks, binds and runs the launch twice on `threads` threads from the same start, and checks
/// memory and that both runs agree.
Contents runCase(const KernelRegistry &backend, const Case &launch, int threads);

/// The full table of checks for one case: cpu on 1, 2 and 3 threads with the same bits, and within
/// tolerance of the reference.
void conform(const Case &launch);

/// An f32, bf16 or i32 operand's content as numbers.
std::vector<double> numbers(const CaseOperand &operand, const std::vector<uint8_t> &bytes);
std::vector<float> floats(const std::vector<uint8_t> &bytes);

/// Every entry of `actual` within tolerance * max(largest |expected|, unit); infinities must be
/// equal and nothing may be NaN unless the tolerance is 0.
void expectNear(const std::vector<double> &actual, const std::vector<double> &expected,
                double tolerance, const std::string &what, double unit = 0);

/// Standard normal numbers, the same for the same seed.
std::vector<float> normal(int64_t count, unsigned seed);

/// Makes GoogleTest print a case by its name.
inline void PrintTo(const Case &launch, std::ostream *os) { *os << launch.name; }
inline std::string caseName(const ::testing::TestParamInfo<Case> &info) { return info.param.name; }

} // namespace sft::test

#endif // TEST_CONFORMANCE_CONFORMANCE_H
