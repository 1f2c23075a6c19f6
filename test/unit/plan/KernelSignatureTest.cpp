#include "runtime/plan/KernelSignature.h"

#include "runtime/base/Error.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>

using namespace sft;

TEST(KernelSignature, ReadsOperandsAndParameters) {
  const KernelSignature *matmul = findKernel("matmul");
  ASSERT_NE(matmul, nullptr);
  ASSERT_EQ(matmul->operands.size(), 4u);
  EXPECT_EQ(matmul->operands[0].name, "a");
  EXPECT_TRUE(matmul->operands[0].in);
  EXPECT_FALSE(matmul->operands[0].out);
  EXPECT_EQ(matmul->operands[0].dtypes, (std::vector<std::string>{"f32", "bf16"}));
  EXPECT_EQ(matmul->operands[0].dimensions, (std::vector<std::string>{"*", "*"}));
  EXPECT_TRUE(matmul->operands[2].optional);
  EXPECT_TRUE(matmul->operands[3].in && matmul->operands[3].out);
  ASSERT_EQ(matmul->parameters.size(), 3u);
  EXPECT_EQ(matmul->parameters[2].name, "accumulate");
  EXPECT_EQ(matmul->parameters[2].type, "int");
  EXPECT_EQ(matmul->parameters[2].default_value, "0");
  EXPECT_FALSE(matmul->parameters[2].required);
  EXPECT_TRUE(findKernel("square")->parameters[0].required);
  EXPECT_EQ(findKernel("no_such_kernel"), nullptr);
}

TEST(KernelSignature, RowKernelHasNoOperandsOfItsOwn) {
  const KernelSignature *rows = findKernel("row_kernel");
  ASSERT_NE(rows, nullptr);
  EXPECT_TRUE(rows->operands.empty());
  EXPECT_EQ(rows->parameters.size(), 3u);
}

TEST(KernelSignature, EveryEntryIsWellFormedAndHasItsOwnHash) {
  std::set<uint64_t> hashes;
  std::vector<std::string> names = kernelNames();
  EXPECT_GE(names.size(), 12u);
  for (const std::string &name : names) {
    const KernelSignature *signature = findKernel(name);
    ASSERT_NE(signature, nullptr) << name;
    EXPECT_TRUE(hashes.insert(signature->hash).second) << name;
    for (const OperandSignature &operand : signature->operands) {
      EXPECT_FALSE(operand.name.empty()) << name;
      EXPECT_FALSE(operand.dimensions.empty()) << name << ' ' << operand.name;
      for (const std::string &dtype : operand.dtypes)
        EXPECT_TRUE(dtype == "f32" || dtype == "bf16" || dtype == "i32") << name << ' ' << dtype;
    }
    for (const ParameterSignature &parameter : signature->parameters)
      EXPECT_TRUE(parameter.type == "int" || parameter.type == "float" ||
                  parameter.type == "string")
          << name;
  }
}

TEST(KernelWorkspace, FollowsTheRules) {
  EXPECT_EQ(kernelWorkspaceBytes(*findKernel("matmul"), {{4, 3}, {3, 5}, {}, {4, 5}}, {}), 0u);
  std::vector<std::vector<int64_t>> attention = {{7, 64}, {7, 64}, {9, 32}, {9, 32}, {7, 64},
                                                 {7, 4},  {3, 3},  {7, 64}, {9, 32}, {9, 32}};
  EXPECT_EQ(kernelWorkspaceBytes(*findKernel("square_grad"), attention, {}), 7u * 4 * 4);
  EXPECT_EQ(kernelWorkspaceBytes(*findKernel("rectangle_grad"), attention, {}), 7u * 4 * 4);
  EXPECT_EQ(kernelWorkspaceBytes(*findKernel("sum_of_squares"), {{kSumBlock}, {1}}, {}), 8u);
  EXPECT_EQ(kernelWorkspaceBytes(*findKernel("sum_of_squares"), {{2, kSumBlock / 2 + 1}, {1}}, {}),
            16u);
  const KernelSignature &rows = *findKernel("row_kernel");
  EXPECT_EQ(kernelWorkspaceBytes(rows, {{130, 5}, {5}, {1, 7}},
                                 {{"rows", 130}, {"block_rows", 64}, {"column_sums", 6}}),
            3u * (5 + 7) * 4);
  EXPECT_EQ(kernelWorkspaceBytes(rows, {{130, 5}}, {{"rows", 130}, {"block_rows", 64}}), 0u);
}

TEST(KernelWorkspace, RefusesSizesThatOverflow) {
  const KernelSignature &rows = *findKernel("row_kernel");
  EXPECT_THROW(kernelWorkspaceBytes(rows, {{INT64_MAX / 2}},
                                    {{"rows", 64}, {"block_rows", 1}, {"column_sums", 1}}),
               Error);
  EXPECT_THROW(
      kernelWorkspaceBytes(rows, {{5}}, {{"rows", 64}, {"block_rows", 0}, {"column_sums", 1}}),
      Error);
  EXPECT_THROW(
      kernelWorkspaceBytes(rows, {{5}}, {{"rows", 64}, {"block_rows", 1}, {"column_sums", 2}}),
      Error);
}
