#include "runtime/plan/PlanFile.h"

#include "runtime/base/Error.h"
#include "test/unit/plan/PlanFixture.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>
#include <xxhash.h>

using namespace sft;

namespace {

constexpr size_t kHeaderBytes = 64;

std::vector<uint8_t> tinyBytes() { return serializePlan(tinyPlan().plan); }

/// The message of the error, or "" when the bytes are a valid plan.
std::string readError(const std::vector<uint8_t> &bytes) {
  try {
    readPlan("tiny.plan", bytes.data(), bytes.size());
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

/// Makes a header whose length and hash fit the payload, as somebody would who means harm.
void rehash(std::vector<uint8_t> &bytes) {
  uint64_t size = bytes.size() - kHeaderBytes;
  XXH128_hash_t hash = XXH3_128bits(bytes.data() + kHeaderBytes, size);
  std::memcpy(bytes.data() + 16, &size, 8);
  std::memcpy(bytes.data() + 24, &hash.low64, 8);
  std::memcpy(bytes.data() + 32, &hash.high64, 8);
}

/// A plan of more than 4 KB whose every instruction is checked, so that flips hit something.
std::vector<uint8_t> largeBytes() {
  PlanBuilder builder = tinyPlan();
  for (int i = 0; i < 40; ++i) {
    auto remark = std::make_unique<fb::RemarkT>();
    remark->pass_ = "test";
    remark->message = "remark number " + std::to_string(i);
    builder.plan.remarks.push_back(std::move(remark));
  }
  std::vector<uint8_t> bytes = serializePlan(builder.plan);
  EXPECT_GT(bytes.size(), 4096u);
  return bytes;
}

/// Everything that damage may do to a plan: `damaged` is called for each damaged copy.
void forEachDamage(const std::vector<uint8_t> &good,
                   const std::function<void(std::vector<uint8_t>)> &damaged) {
  for (size_t i = 0; i < 4096; ++i) {
    std::vector<uint8_t> bytes = good;
    bytes[i] = uint8_t(~bytes[i]);
    damaged(bytes);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    std::vector<uint8_t> bytes = good;
    bytes[random() % bytes.size()] ^= uint8_t(1u << random() % 8);
    damaged(bytes);
  }
  for (size_t i = 0; i < 50; ++i)
    damaged({good.begin(), good.begin() + int64_t(good.size() * i / 50)});
}

} // namespace

TEST(PlanFile, ComesBackAsWritten) {
  std::vector<uint8_t> bytes = tinyBytes();
  PlanFile file = readPlan("tiny.plan", bytes.data(), bytes.size());
  EXPECT_EQ(file.major, kPlanMajor);
  EXPECT_EQ(file.minor, kPlanMinor);
  EXPECT_EQ(file.hash.size(), 32u);
  EXPECT_EQ(file.plan.command_line, "sftc compile tiny.mlir -o tiny.plan --mesh cp=2");
  EXPECT_EQ(file.plan.buffers[tiny::Y]->shape, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(serializePlan(file.plan), bytes);
}

TEST(PlanFile, ReadsBytesAtAnyAddress) {
  std::vector<uint8_t> bytes = tinyBytes();
  bytes.insert(bytes.begin(), 0);
  EXPECT_EQ(readPlan("tiny.plan", bytes.data() + 1, bytes.size() - 1).plan.tokens, 8);
}

TEST(PlanFile, WritesThroughATemporaryName) {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("sft-plan-test-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::string path = folder / "tiny.plan";
  writePlan(path, {'o', 'l', 'd'});
  writePlan(path, tinyBytes());
  EXPECT_EQ(readPlan(path).plan.padded_tokens, 8);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1)
      << "the temporary file is left";
  uint16_t major = 0, minor = 9;
  readPlanVersion(path, major, minor);
  EXPECT_EQ(major, kPlanMajor);
  EXPECT_EQ(minor, kPlanMinor);
  EXPECT_THROW(writePlan(folder / "missing" / "tiny.plan", {}), Error);
  EXPECT_THROW(readPlan(folder / "missing.plan"), Error);
  EXPECT_THROW(readPlan(folder), Error);
  std::filesystem::remove_all(folder);
}

TEST(PlanFile, NamesWhatIsWrongWithTheHeader) {
  std::vector<uint8_t> bytes = tinyBytes();
  EXPECT_EQ(readError({}).find("not a plan file (tiny.plan)"), 0u);
  std::vector<uint8_t> foreign = bytes;
  foreign[0] = 'X';
  EXPECT_EQ(readError(foreign).find("not a plan file (tiny.plan)"), 0u);
  std::vector<uint8_t> cut(bytes.begin(), bytes.end() - 1);
  EXPECT_EQ(readError(cut).find("plan file has the wrong length (tiny.plan)"), 0u);
  std::vector<uint8_t> damaged = bytes;
  damaged.back() ^= 1;
  EXPECT_EQ(readError(damaged).find("plan file is damaged (tiny.plan)"), 0u);
}

TEST(PlanFile, RefusesOtherVersionsWithBothVersionsAndTheCommand) {
  std::vector<uint8_t> newer = tinyBytes();
  newer[10] = uint8_t(kPlanMinor + 1);
  std::string error = readError(newer);
  EXPECT_EQ(error.find("plan version is newer than this runtime (tiny.plan): plan version 1.1, "
                       "runtime version 1.0"),
            0u)
      << error;
  EXPECT_NE(error.find("re-run the compiler"), std::string::npos) << error;
  EXPECT_NE(error.find("sftc compile tiny.mlir -o tiny.plan --mesh cp=2"), std::string::npos)
      << error;

  std::vector<uint8_t> other = tinyBytes();
  other[8] = uint8_t(kPlanMajor + 1);
  EXPECT_EQ(
      readError(other).find("plan version does not fit this runtime (tiny.plan): plan version 2.0"),
      0u);
  // A command line that cannot be trusted is not shown.
  newer.back() ^= 1;
  EXPECT_EQ(readError(newer).find("sftc compile"), std::string::npos);
}

// llvm/llvm-project #186145: reading a binary with invalid content asserted instead of failing.
TEST(PlanFile, DamageIsAlwaysAnError) {
  std::vector<uint8_t> good = largeBytes();
  ASSERT_EQ(readError(good), "");
  forEachDamage(good, [](const std::vector<uint8_t> &bytes) { ASSERT_NE(readError(bytes), ""); });
}

// The same with a fitting hash: the structure and the contents are what is left to check.
TEST(PlanFile, DamageWithAFittingHashNeverCrashes) {
  std::vector<uint8_t> good = largeBytes();
  int accepted = 0, structure = 0, contents = 0;
  forEachDamage(good, [&](std::vector<uint8_t> bytes) {
    if (bytes.size() < kHeaderBytes ||
        !std::equal(bytes.begin(), bytes.begin() + kHeaderBytes, good.begin()))
      return;
    rehash(bytes);
    std::string error = readError(bytes);
    accepted += error.empty();
    structure += error.find("unsound structure") != std::string::npos;
    contents += error.find("plan is not valid") != std::string::npos;
  });
  EXPECT_GT(accepted, 100); // names, source places
  EXPECT_GT(structure, 100);
  EXPECT_GT(contents, 100);
}

TEST(PlanFile, RefusesTablesSharedIntoAHugePlan) {
  // 25 levels of repeats, each of which names the next one twice: 2^25 instructions when unpacked.
  flatbuffers::FlatBufferBuilder builder;
  flatbuffers::Offset<fb::Instruction> body = fb::CreateInstruction(builder);
  for (int level = 0; level < 25; ++level) {
    std::vector<flatbuffers::Offset<fb::Instruction>> both = {body, body};
    auto list = builder.CreateVector(both);
    fb::InstructionBuilder instruction(builder);
    instruction.add_kind(fb::InstructionKind::Repeat);
    instruction.add_body(list);
    body = instruction.Finish();
  }
  std::vector<flatbuffers::Offset<fb::Instruction>> instructions = {body};
  auto name = builder.CreateString("train");
  std::vector<flatbuffers::Offset<fb::Program>> programs = {
      fb::CreateProgram(builder, name, 0, 0, builder.CreateVector(instructions))};
  auto list = builder.CreateVector(programs);
  fb::PlanBuilder plan(builder);
  plan.add_programs(list);
  fb::FinishPlanBuffer(builder, plan.Finish());

  std::vector<uint8_t> bytes = tinyBytes();
  bytes.resize(kHeaderBytes);
  bytes.insert(bytes.end(), builder.GetBufferPointer(),
               builder.GetBufferPointer() + builder.GetSize());
  rehash(bytes);
  EXPECT_NE(readError(bytes).find("unsound structure"), std::string::npos);
}

TEST(PlanFile, ListsAllProblemsAtOnce) {
  PlanBuilder builder = tinyPlan();
  builder.plan.kernels[tiny::Fill]->signature_hash ^= 1;
  builder.plan.padded_tokens = 9;
  std::string error = readError(serializePlan(builder.plan));
  EXPECT_NE(error.find("kernel signature differs (kernel fill)"), std::string::npos) << error;
  EXPECT_NE(error.find("padded tokens do not divide"), std::string::npos) << error;
}
