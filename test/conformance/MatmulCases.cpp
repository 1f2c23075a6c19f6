#include "test/conformance/Conformance.h"

#include "runtime/base/Error.h"

using namespace sft;
using namespace sft::test;

namespace {

struct MatmulSpec {
  int64_t rows, columns, inner;
  bool transposeA, transposeB, accumulate, bias;
};

Case matmulCase(const MatmulSpec &spec) {
  Case launch;
  launch.kernel = "matmul";
  launch.name = "c" + std::to_string(spec.rows) + "x" + std::to_string(spec.columns) + "k" +
                std::to_string(spec.inner) + (spec.transposeA ? "_ta" : "") +
                (spec.transposeB ? "_tb" : "") + (spec.accumulate ? "_add" : "") +
                (spec.bias ? "_bias" : "");
  auto shape = [](bool transpose, int64_t rows, int64_t columns) {
    return transpose ? std::vector<int64_t>{columns, rows} : std::vector<int64_t>{rows, columns};
  };
  std::vector<int64_t> c = {spec.rows, spec.columns};
  launch.operands = {
      input(shape(spec.transposeA, spec.rows, spec.inner), normal(spec.rows * spec.inner, 1)),
      input(shape(spec.transposeB, spec.inner, spec.columns), normal(spec.inner * spec.columns, 2)),
      spec.bias ? input({spec.columns}, normal(spec.columns, 3)) : absent(),
      spec.accumulate ? inout(c, normal(spec.rows * spec.columns, 4)) : output(c)};
  launch.integers = {{"transpose_a", spec.transposeA},
                     {"transpose_b", spec.transposeB},
                     {"accumulate", spec.accumulate}};
  launch.tolerance = 1e-6;
  return launch;
}

std::vector<Case> matmulCases() {
  std::vector<Case> cases;
  std::vector<std::array<int64_t, 3>> shapes = {
      {1, 1, 1}, {1, 577, 13}, {13, 7, 577}, {300, 401, 33}, {64, 576, 96}};
  for (auto [rows, columns, inner] : shapes)
    for (int variant = 0; variant < 16; ++variant)
      cases.push_back(matmulCase({rows, columns, inner, bool(variant & 1), bool(variant & 2),
                                  bool(variant & 4), bool(variant & 8)}));
  // More tiles than threads in both directions.
  cases.push_back(matmulCase({577, 1153, 40, false, true, false, true}));
  cases.push_back(matmulCase({1153, 577, 40, true, false, true, false}));
  Case rounded = matmulCase({65, 48, 64, false, true, false, false});
  rounded.name += "_bf16";
  for (size_t i : {0, 1})
    rounded.operands[i] = asBf16(rounded.operands[i]);
  cases.push_back(rounded);
  return cases;
}

class Matmul : public ::testing::TestWithParam<Case> {};

TEST_P(Matmul, Conforms) { conform(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Cases, Matmul, ::testing::ValuesIn(matmulCases()), caseName);

TEST(MatmulErrors, SizesThatDoNotFit) {
  Case launch = matmulCase({4, 5, 6, false, false, false, false});
  launch.operands[1].shape = {5, 6};
  for (const KernelRegistry *backend : {&referenceBackend(), &cpuBackend()})
    EXPECT_THROW(runCase(*backend, launch, 1), Error);
}

} // namespace
