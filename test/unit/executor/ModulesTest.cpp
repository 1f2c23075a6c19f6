#include "runtime/executor/Modules.h"

#include "runtime/base/Error.h"
#include "runtime/plan/plan_generated.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

using namespace sft;

namespace {

std::unique_ptr<fb::BlobT> testCode() {
  auto blob = std::make_unique<fb::BlobT>();
  blob->format = "elf-x86-64";
  std::ifstream file(SFT_TEST_CODE, std::ios::binary);
  blob->bytes.assign(std::istreambuf_iterator<char>(file), {});
  return blob;
}

void addKernel(fb::PlanT &plan, int blob, const std::string &symbol) {
  plan.kernels.push_back(std::make_unique<fb::KernelT>());
  plan.kernels.back()->name = "row_kernel";
  plan.kernels.back()->blob = blob;
  plan.kernels.back()->symbol = symbol;
}

std::string loadError(const fb::PlanT &plan) {
  try {
    GeneratedCode code(plan);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(GeneratedCode, IsLoadedFromThePlanAndRuns) {
  fb::PlanT plan;
  plan.blobs.push_back(testCode());
  plan.kernels.push_back(std::make_unique<fb::KernelT>()); // a library kernel has no code
  addKernel(plan, 0, "double_rows");
  GeneratedCode code(plan);
  EXPECT_EQ(code.function(0), nullptr);
  float input[] = {1, 2, 3}, output[] = {0, 0, 0};
  void *operands[] = {input, output};
  code.function(1)(operands, 1, 3);
  EXPECT_EQ(output[0], 0);
  EXPECT_EQ(output[2], 6);
}

TEST(GeneratedCode, ObjectsOfOnePlanAndOfTwoPlansAreDistinct) {
  fb::PlanT plan;
  plan.blobs.push_back(testCode());
  plan.blobs.push_back(testCode());
  addKernel(plan, 0, "double_rows");
  addKernel(plan, 1, "double_rows");
  GeneratedCode first(plan), second(plan);
  EXPECT_NE(first.function(0), first.function(1));
  EXPECT_NE(first.function(0), second.function(0));
}

TEST(GeneratedCode, RefusesOtherFormatsDamagedObjectsAndMissingFunctions) {
  fb::PlanT plan;
  plan.blobs.push_back(testCode());
  addKernel(plan, 0, "triple_rows");
  EXPECT_NE(loadError(plan).find("triple_rows"), std::string::npos);
  plan.blobs[0]->format = "ptx";
  EXPECT_NE(loadError(plan).find("ptx; it loads elf-x86-64"), std::string::npos);
  plan.blobs[0]->format = "elf-x86-64";
  plan.blobs[0]->bytes.resize(20);
  EXPECT_NE(loadError(plan).find("cannot load generated code (blob 0)"), std::string::npos);
}

std::string targetError(const fb::PlanT &plan) {
  try {
    checkTarget(plan);
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(Target, NamesMissingFeaturesAndTheCommandThatHelps) {
  fb::PlanT plan;
  plan.command_line = "sftc compile m.mlir -o m.plan --target-cpu=znver5 --tokens 128";
  plan.target = std::make_unique<fb::TargetT>();
  plan.target->kind = "cpu";
  plan.target->cpu = "bdver2";
  plan.target->features = {"+sse3", "+xop", "-avx512f", "fma4", "+nosuch"};
  // Only one family of processors, long gone, had xop and fma4.
  std::string message = targetError(plan);
  EXPECT_NE(message.find("(target bdver2): xop, fma4, nosuch; recompile with: sftc compile m.mlir -o "
                         "m.plan --target-cpu=native --tokens 128"),
            std::string::npos)
      << message;
  plan.target->features = {"+sse3"};
  EXPECT_EQ(targetError(plan), "");
  plan.target->kind = "gpu";
  plan.target->name = "h200";
  EXPECT_NE(targetError(plan).find("h200 of kind gpu"), std::string::npos);
}

TEST(Target, RecompileCommandReplacesOrAddsTheFlag) {
  fb::PlanT plan;
  plan.command_line = "sftc compile m.mlir --mesh cp=2 -o m.plan";
  EXPECT_EQ(recompileCommand(plan, "--mesh", "cp=4"), "sftc compile m.mlir --mesh cp=4 -o m.plan");
  EXPECT_EQ(recompileCommand(plan, "--tokens", "64"),
            "sftc compile m.mlir --mesh cp=2 -o m.plan --tokens 64");
}

TEST(BackendModule, ThatIsMissingSaysWhereItWasLookedFor) {
  try {
    BackendModule module("nosuch");
    FAIL() << "there is no such backend";
  } catch (const Error &error) {
    std::string message = error.what();
    EXPECT_NE(message.find("/bin/libsft_nosuch.so, "), std::string::npos) << message;
    EXPECT_NE(message.find("/lib/libsft_nosuch.so"), std::string::npos) << message;
    EXPECT_NE(message.find("--reference"), std::string::npos) << message;
  }
}

} // namespace
