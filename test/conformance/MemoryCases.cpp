#include "test/conformance/Conformance.h"

#include "runtime/base/Error.h"

#include <cmath>

using namespace sft;
using namespace sft::test;

namespace {

const std::vector<int64_t> kSizes = {1, 13, 577, 3 * 65536 + 13};

std::vector<int32_t> integers(int64_t count) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(int32_t(i * 7919 % 1000 - 500));
  return values;
}

std::vector<Case> memoryCases() {
  std::vector<Case> cases;
  for (int64_t size : kSizes) {
    std::string suffix = "_" + std::to_string(size);
    std::vector<float> x = normal(size, 7), y = normal(size, 8);
    cases.push_back({"copy_f32" + suffix,
                     "copy",
                     {input({size}, x), output({size})},
                     {},
                     {},
                     nullptr,
                     nullptr,
                     0});
    cases.push_back({"copy_bf16" + suffix,
                     "copy",
                     {asBf16(input({size}, x)), output({size}, DType::BF16)},
                     {},
                     {},
                     nullptr,
                     nullptr,
                     0});
    cases.push_back({"copy_i32" + suffix,
                     "copy",
                     {input({size}, integers(size)), output({size}, DType::I32)},
                     {},
                     {},
                     nullptr,
                     nullptr,
                     0});
    for (DType dtype : {DType::F32, DType::BF16, DType::I32})
      for (double value : {0.0, -3.0})
        cases.push_back(
            {"fill_" + std::string(dtypeName(dtype)) + (value == 0 ? "_zero" : "_minus3") + suffix,
             "fill",
             {output({size}, dtype)},
             {},
             {{"value", value}},
             nullptr,
             nullptr,
             0});
    cases.push_back({"accumulate_overwrite" + suffix,
                     "accumulate",
                     {input({size}, x), output({size})},
                     {{"accumulate", 0}},
                     {},
                     nullptr,
                     nullptr,
                     0});
    cases.push_back({"accumulate_add" + suffix,
                     "accumulate",
                     {input({size}, x), inout({size}, y)},
                     {{"accumulate", 1}},
                     {},
                     nullptr,
                     nullptr,
                     1e-7});
    cases.push_back({"sum_of_squares" + suffix,
                     "sum_of_squares",
                     {input({size}, x), output({1})},
                     {},
                     {},
                     nullptr,
                     nullptr,
                     1e-7});
  }
  // Four slots of 77 rows arrive as 0 3 1 2 (the order of a zigzag all-gather of two ranks), one of
  // 13, one of 1.
  std::vector<std::vector<int32_t>> permutations = {{0, 3, 1, 2}, {2, 0, 1}, {0}};
  for (const auto &permutation : permutations)
    for (bool inverse : {false, true}) {
      int64_t slots = int64_t(permutation.size()), rows = slots == 4 ? 77 : slots == 3 ? 13 : 1;
      std::string name = "permute_" + std::to_string(slots) + (inverse ? "_inverse" : "");
      cases.push_back({name,
                       "permute_slots",
                       {input({slots * rows, 5}, normal(slots * rows * 5, 9)),
                        input({slots}, permutation), output({slots * rows, 5})},
                       {{"inverse", inverse}},
                       {},
                       nullptr,
                       nullptr,
                       0});
      cases.push_back({name + "_i32",
                       "permute_slots",
                       {input({slots * rows}, integers(slots * rows)), input({slots}, permutation),
                        output({slots * rows}, DType::I32)},
                       {{"inverse", inverse}},
                       {},
                       nullptr,
                       nullptr,
                       0});
    }
  return cases;
}

class Memory : public ::testing::TestWithParam<Case> {};

TEST_P(Memory, Conforms) { conform(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Cases, Memory, ::testing::ValuesIn(memoryCases()), caseName);

TEST(MemoryDefinition, SlotOfResultIsNamedSlotOfOperand) {
  Case launch{"slots",
              "permute_slots",
              {input({8}, std::vector<float>{0, 1, 10, 11, 20, 21, 30, 31}),
               input({4}, std::vector<int32_t>{0, 3, 1, 2}), output({8})},
              {{"inverse", 0}},
              {},
              nullptr,
              nullptr,
              0};
  for (const KernelRegistry *backend : {&referenceBackend(), &cpuBackend()}) {
    launch.integers["inverse"] = 0;
    EXPECT_EQ(floats(runCase(*backend, launch, 2)[2]),
              (std::vector<float>{0, 1, 30, 31, 10, 11, 20, 21}));
    launch.integers["inverse"] = 1;
    EXPECT_EQ(floats(runCase(*backend, launch, 2)[2]),
              (std::vector<float>{0, 1, 20, 21, 30, 31, 10, 11}));
  }
}

TEST(MemoryErrors, SlotOutsideTheOperand) {
  Case launch{"slots",
              "permute_slots",
              {input({4}, normal(4, 1)), input({2}, std::vector<int32_t>{0, 2}), output({4})},
              {{"inverse", 0}},
              {},
              nullptr,
              nullptr,
              0};
  for (const KernelRegistry *backend : {&referenceBackend(), &cpuBackend()})
    EXPECT_THROW(runCase(*backend, launch, 2), Error);
}

TEST(MemoryDefinition, SumOfSquaresNeedsFp64) {
  // 1 and then many numbers whose squares vanish beside it in fp32.
  int64_t size = 1 << 20;
  std::vector<float> x(size_t(size), 1e-4f);
  x[0] = 1;
  Case launch{"small_beside_large",
              "sum_of_squares",
              {input({size}, x), output({1})},
              {},
              {},
              nullptr,
              nullptr,
              0};
  double expected = 1 + double(size - 1) * double(1e-4f) * double(1e-4f);
  EXPECT_NEAR(floats(runCase(cpuBackend(), launch, 2)[1])[0], expected, 1e-7);
}

} // namespace
