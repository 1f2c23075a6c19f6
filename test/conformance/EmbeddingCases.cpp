#include "test/conformance/Conformance.h"

using namespace sft;
using namespace sft::test;

namespace {

/// tokens of -1 are padding rows; rowOffset of -1: the operand is absent.
Case embeddingCase(const std::string &name, const std::vector<int32_t> &tokens, int64_t width,
                   int64_t vocabulary, int32_t rowOffset, bool accumulate) {
  int64_t rows = int64_t(tokens.size());
  std::vector<int32_t> order, segments;
  for (int32_t token = 0; token < 1000; ++token) {
    int32_t begin = int32_t(order.size());
    for (int32_t row = 0; row < rows; ++row)
      if (tokens[size_t(row)] == token)
        order.push_back(row);
    if (int32_t(order.size()) > begin)
      segments.insert(segments.end(), {token, begin, int32_t(order.size())});
  }
  order.resize(size_t(rows), -1);
  segments.resize(size_t(rows * 3), -1);
  Case launch;
  launch.kernel = "embedding_grad";
  launch.name = name + (accumulate ? "_add" : "");
  launch.operands = {input({rows, width}, normal(rows * width, 5)), input({rows}, order),
                     input({rows, 3}, segments),
                     rowOffset < 0 ? absent() : input({1}, std::vector<int32_t>{rowOffset}),
                     accumulate ? inout({vocabulary, width}, normal(vocabulary * width, 6))
                                : output({vocabulary, width})};
  launch.integers = {{"accumulate", accumulate}};
  launch.tolerance = 1e-7;
  return launch;
}

std::vector<Case> embeddingCases() {
  std::vector<int32_t> repeated(577), some(40);
  for (size_t i = 0; i < repeated.size(); ++i)
    repeated[i] = i % 5 ? int32_t(i * 7 % 11) : -1;
  for (size_t i = 0; i < some.size(); ++i)
    some[i] = int32_t(i * i % 97);
  std::vector<Case> cases;
  for (bool accumulate : {false, true}) {
    cases.push_back(embeddingCase("one_row", {3}, 8, 5, -1, accumulate));
    cases.push_back(embeddingCase("all_padding", {-1, -1, -1}, 16, 7, -1, accumulate));
    cases.push_back(embeddingCase("few_tokens_many_rows", repeated, 77, 11, -1, accumulate));
    cases.push_back(embeddingCase("more_tokens_than_a_block", some, 64, 300, -1, accumulate));
    cases.push_back(embeddingCase("part_of_the_vocabulary", some, 13, 50, 20, accumulate));
  }
  return cases;
}

class EmbeddingGrad : public ::testing::TestWithParam<Case> {};

TEST_P(EmbeddingGrad, Conforms) { conform(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Cases, EmbeddingGrad, ::testing::ValuesIn(embeddingCases()), caseName);

// dw is the transpose of the look-up: row t holds the sum of the dy rows whose token is t.
TEST(EmbeddingDefinition, SumsRowsOfAToken) {
  Case launch = embeddingCase("sum", {2, -1, 2, 0, 9}, 3, 4, -1, false);
  std::vector<float> dy = floats(launch.operands[0].bytes),
                     dw = floats(runCase(cpuBackend(), launch, 1)[4]);
  for (size_t column = 0; column < 3; ++column) {
    EXPECT_FLOAT_EQ(dw[0 * 3 + column], dy[3 * 3 + column]);
    EXPECT_EQ(dw[1 * 3 + column], 0.0f);
    EXPECT_FLOAT_EQ(dw[2 * 3 + column], dy[column] + dy[2 * 3 + column]);
    EXPECT_EQ(dw[3 * 3 + column], 0.0f);
  }
}

} // namespace
