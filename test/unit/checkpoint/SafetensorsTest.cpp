#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/DurableFile.h"
#include "test/unit/TestFiles.h"

#include <chrono>
#include <cstring>
#include <numeric>

namespace sft {
namespace {

using test::expectError;

class Safetensors : public testing::Test {
protected:
  test::TemporaryFolder folder_;

  /// A file with this header and so many bytes of data.
  std::string file(const std::string &header, size_t dataBytes) {
    uint64_t length = header.size();
    return folder_.write("t.safetensors", std::string(reinterpret_cast<const char *>(&length), 8) +
                                              header + std::string(dataBytes, '\1'));
  }
  void expectRefused(const std::string &header, size_t dataBytes,
                     std::initializer_list<std::string> parts) {
    SCOPED_TRACE(header.substr(0, 200));
    std::string path = file(header, dataBytes);
    expectError([&] { SafetensorsFile opened(path); }, parts);
    expectError([&] { SafetensorsFile opened(path); }, {path});
  }
  static std::string entry(const std::string &name, const std::string &shape,
                           const std::string &offsets, const std::string &dtype = "F32") {
    return "\"" + name + R"(": {"dtype": ")" + dtype + R"(", "shape": )" + shape +
           R"(, "data_offsets": )" + offsets + "}";
  }
};

TEST_F(Safetensors, WritesWhatItReads) {
  std::vector<float> a = {1, -2, 3.5f, 0, 5, 6};
  std::vector<uint8_t> bytes = {1, 2, 3};
  std::vector<double> d = {1e300};
  std::vector<uint16_t> half = {0x3f80, 0x4000, 0xc000};
  std::string path = folder_.path("x.safetensors");
  writeSafetensors(path,
                   {{"bytes", DType::U8, {3}, bytes.data()},
                    {"a", DType::F32, {2, 3}, a.data()},
                    {"half", DType::BF16, {3, 1}, half.data()},
                    {"empty", DType::F32, {4, 0}, nullptr},
                    {"scalar", DType::F64, {}, d.data()}},
                   {{"format", "pt"}, {"step", "7 \"quoted\""}});
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
  SafetensorsFile file(path);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(file.metadata(),
            (std::map<std::string, std::string>{{"format", "pt"}, {"step", "7 \"quoted\""}}));
  ASSERT_EQ(file.tensors().size(), 5u);
  const TensorInfo &tensor = file.tensors().at("a");
  EXPECT_EQ(tensor.name, "a");
  EXPECT_EQ(tensor.dtype, DType::F32);
  EXPECT_EQ(tensor.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensor.elements(), 6);
  EXPECT_EQ(std::memcmp(file.data(tensor), a.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.data(file.tensors().at("bytes")), bytes.data(), 3), 0);
  EXPECT_EQ(std::memcmp(file.data(file.tensors().at("half")), half.data(), 6), 0);
  EXPECT_EQ(std::memcmp(file.data(file.tensors().at("scalar")), d.data(), 8), 0);
  EXPECT_EQ(file.tensors().at("scalar").elements(), 1);
  EXPECT_EQ(file.tensors().at("empty").elements(), 0);
  for (const auto &[name, info] : file.tensors())
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file.data(info)) % dtypeBytes(info.dtype), 0u) << name;
}

TEST_F(Safetensors, EmptyFileOfTensors) {
  std::string path = folder_.path("x.safetensors");
  writeSafetensors(path, {});
  EXPECT_TRUE(SafetensorsFile(path).tensors().empty());
  EXPECT_TRUE(SafetensorsFile(file("{}", 0)).tensors().empty());
}

TEST_F(Safetensors, SameNameTwiceIsNotWritten) {
  float x = 1;
  std::string path = folder_.path("x.safetensors");
  expectError(
      [&] { writeSafetensors(path, {{"a", DType::F32, {1}, &x}, {"a", DType::F32, {1}, &x}}); },
      {"twice", "a"});
  expectError([&] { writeSafetensors(path, {{"__metadata__", DType::F32, {1}, &x}}); },
              {"reserved"});
  EXPECT_FALSE(std::filesystem::exists(path));
}

// safetensors/safetensors #668: hostile header lengths are refused before anything is allocated.
TEST_F(Safetensors, HeaderLengthIsCheckedFirst) {
  std::string rest = "{\"a\":1}" + std::string(100, ' ');
  for (uint64_t length : {uint64_t(1) << 40, uint64_t(1) << 63, uint64_t(0),
                          uint64_t(rest.size() + 8 + 1), uint64_t(rest.size() + 1), ~uint64_t(0)}) {
    std::string path = folder_.write(
        "t.safetensors", std::string(reinterpret_cast<const char *>(&length), 8) + rest);
    expectError([&] { SafetensorsFile file(path); },
                {path, std::to_string(length) + " bytes declared",
                 "at most " + std::to_string(rest.size())});
  }
  uint64_t three = 3;
  std::string path =
      folder_.write("t.safetensors", std::string(reinterpret_cast<const char *>(&three), 8) + rest);
  expectError([&] { SafetensorsFile file(path); }, {path, "not valid JSON"});
  expectRefused("[]", 0, {"not a safetensors file", "begins"});
  expectRefused(" {}", 0, {"not a safetensors file"});
  expectError([&] { SafetensorsFile file(folder_.write("short", "1234567")); },
              {"short", "7 bytes", "at least 8"});
  expectError([&] { SafetensorsFile file(folder_.write("none", "")); }, {"none", "0 bytes"});
}

TEST_F(Safetensors, HeaderAboveTheLimit) {
  std::string path = folder_.path("huge");
  uint64_t length = 100'000'001;
  folder_.write("huge", std::string(reinterpret_cast<const char *>(&length), 8) + "{");
  std::filesystem::resize_file(path, length + 8); // sparse
  expectError([&] { SafetensorsFile file(path); },
              {path, "100000001 bytes declared", "at most 100000000", "the limit"});
}

// ml-explore/mlx #3363: offsets that do not fit shape and dtype.
TEST_F(Safetensors, ShapesMatchTheirBytes) {
  expectRefused("{" + entry("w", "[1000, 1000]", "[0, 4]") + "}", 4,
                {"tensor w", "declare 4 bytes", "needs 4000000"});
  expectRefused("{" + entry("w", "[1]", "[8, 4]") + "}", 8, {"tensor w", "8 to 4", "negative"});
  expectRefused("{" + entry("w", "[1]", "[-4, 0]") + "}", 8, {"tensor w", "data_offsets", "-4"});
  expectRefused("{" + entry("w", "[-1]", "[0, 4]") + "}", 4, {"tensor w", "shape", "-1"});
  expectRefused("{" + entry("w", "[2]", "[0, 8]") + "}", 4,
                {"tensor w", "0 to 8", "has 4", "truncated"});
  expectRefused("{" + entry("w", "[1]", "[18446744073709551612, 18446744073709551616]") + "}", 4,
                {"tensor w"});
  expectRefused("{" + entry("w", "[1]", "[18446744073709551608, 18446744073709551612]") + "}", 4,
                {"tensor w", "the file has 4"});
  // 2^62 elements of 4 bytes are 0 bytes modulo 2^64.
  expectRefused("{" + entry("w", "[2147483648, 2147483648]", "[0, 0]") + "}", 0,
                {"tensor w", "64 bits"});
  expectRefused("{" + entry("w", "[9223372036854775808]", "[0, 0]") + "}", 0,
                {"tensor w", "9223372036854775808"});
  expectRefused("{" + entry("w", "[]", "[0, 0]") + "}", 0, {"tensor w", "needs 4"});
  EXPECT_EQ(
      SafetensorsFile(file("{" + entry("w", "[]", "[0, 4]") + "}", 4)).tensors().at("w").elements(),
      1);
  EXPECT_EQ(
      SafetensorsFile(file("{" + entry("w", "[0, 9223372036854775807, 9]", "[0, 0]") + "}", 0))
          .tensors()
          .size(),
      1u);
}

// antirez/h3.c #48: overlaps and unindexed bytes.
TEST_F(Safetensors, EveryByteBelongsToOneTensor) {
  std::string a = entry("a", "[2]", "[0, 8]"), b = entry("b", "[1]", "[8, 12]");
  EXPECT_EQ(SafetensorsFile(file("{" + b + ", " + a + "}", 12)).tensors().size(),
            2u); // in any order
  expectRefused("{" + a + "," + entry("b", "[2]", "[4, 12]") + "}", 12,
                {"overlap", "a ends at byte 8", "b begins at 4"});
  expectRefused("{" + a + "," + entry("b", "[2]", "[0, 8]") + "}", 8, {"overlap", "a", "b"});
  expectRefused("{" + a + "," + entry("b", "[1]", "[12, 16]") + "}", 16,
                {"without a tensor", "8 to 12", "before b"});
  expectRefused("{" + entry("a", "[1]", "[4, 8]") + "}", 8,
                {"without a tensor", "0 to 4", "before a"});
  expectRefused("{" + a + "," + b + "}", 13, {"after the last tensor", "12 to 13"});
  expectRefused("{}", 1, {"after the last tensor", "0 to 1"});
}

TEST_F(Safetensors, MalformedHeaders) {
  std::string a = entry("a", "[1]", "[0, 4]");
  expectRefused("{" + a + "," + a + "}", 4, {"tensor twice", "a"});
  expectRefused(R"({"__metadata__": {}, "__metadata__": {}})", 0, {"twice", "__metadata__"});
  expectRefused(R"({"__metadata__": {"x": "1", "x": "2"}})", 0, {"metadata key twice", "x"});
  expectRefused(R"({"__metadata__": {"x": 1}})", 0, {"__metadata__, x", "number 1"});
  expectRefused(R"({"__metadata__": {"x": ["1"]}})", 0, {"__metadata__, x", "an array"});
  expectRefused(R"({"__metadata__": "x"})", 0, {"__metadata__", "a string"});
  expectRefused(R"({"a": {"dtype": "F32", "dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})",
                4, {"key twice", "tensor a", "dtype"});
  expectRefused(R"({"a": {"shape": [1], "data_offsets": [0, 4]}})", 4, {"tensor a", "no dtype"});
  expectRefused(R"({"a": {"dtype": "F32", "data_offsets": [0, 4]}})", 4, {"tensor a", "no shape"});
  expectRefused(R"({"a": {"dtype": "F32", "shape": [1]}})", 4, {"tensor a", "no data_offsets"});
  expectRefused(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], "x": 1}})", 4,
                {"tensor a", "unknown key", "x"});
  expectRefused("{" + entry("a", "[1]", "[0, 4, 8]") + "}", 4, {"tensor a", "3 data_offsets"});
  expectRefused("{" + entry("a", "[1.0]", "[0, 4]") + "}", 4, {"tensor a", "shape", "number 1.0"});
  expectRefused("{" + entry("a", "[[1]]", "[0, 4]") + "}", 4, {"tensor a", "shape", "an array"});
  expectRefused("{" + entry("a", "1", "[0, 4]") + "}", 4, {"tensor a", "shape", "number 1"});
  expectRefused("{" + entry("a", "[null]", "[0, 4]") + "}", 4, {"null"});
  expectRefused("{" + entry("a", "[true]", "[0, 4]") + "}", 4, {"a boolean"});
  expectRefused("{" + entry("a", "[\"1\"]", "[0, 4]") + "}", 4, {"a string"});
  expectRefused("{" + entry("a", "[1]", "[0, 4]", "F8_E4M3") + "}", 4,
                {"unsupported dtype", "tensor a", "F8_E4M3;", "BF16"});
  expectRefused(R"({"a": 3})", 0, {"tensor a", "number 3"});
  expectRefused(R"({"a": {"dtype": {"x": 1}}})", 0, {"tensor a, dtype", "an object"});
  expectRefused(R"({"a": {"dtype": ["F32"]}})", 0, {"tensor a, dtype", "an array"});
  expectRefused("{" + a + "} {}", 4, {"not valid JSON", "byte"});
  expectRefused("{" + a, 4, {"not valid JSON"});
  expectRefused("{\"a\": " + std::string(100'000, '['), 0, {"tensor a", "an array"});
}

TEST_F(Safetensors, TruncatedFile) {
  std::vector<float> values(100, 1);
  std::string path = folder_.path("x.safetensors");
  writeSafetensors(
      path, {{"a", DType::F32, {50}, values.data()}, {"b", DType::F32, {50}, values.data() + 50}});
  uint64_t size = std::filesystem::file_size(path);
  for (uint64_t cut : {size - 1, size - 300, size - 401, uint64_t(9), uint64_t(7), uint64_t(0)}) {
    std::filesystem::resize_file(path, cut);
    expectError([&] { SafetensorsFile file(path); }, {path});
  }
}

// safetensors/safetensors #668: a large valid header loads.
TEST_F(Safetensors, ManyTensorsLoadQuickly) {
  constexpr size_t count = 200'000;
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.f);
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < count; ++i)
    tensors.push_back({"model.layers." + std::to_string(i) + ".mlp.down_proj.weight",
                       DType::F32,
                       {1},
                       &values[i]});
  std::string path = folder_.path("x.safetensors");
  writeSafetensors(path, tensors);
  auto start = std::chrono::steady_clock::now();
  SafetensorsFile file(path);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(file.tensors().size(), count);
  EXPECT_LT(seconds, 10); // something quadratic takes minutes
  RecordProperty("seconds", std::to_string(seconds));
}

TEST_F(Safetensors, FailedWritesNameTheSpace) {
  std::string path = folder_.path("no/such/x.safetensors");
  float x = 1;
  expectError([&] { writeSafetensors(path, {{"a", DType::F32, {1}, &x}}); },
              {path, "No such file", "bytes needed", "free"});
  // More than any disk has; the size is known before a byte is written.
  std::string big = folder_.path("big");
  std::string_view piece(reinterpret_cast<const char *>(&x), size_t(1) << 60);
  expectError([&] { writeDurably(big, {piece}); },
              {big, "No space", std::to_string(size_t(1) << 60) + " bytes needed", "free"});
  EXPECT_FALSE(std::filesystem::exists(big));
  EXPECT_FALSE(std::filesystem::exists(big + ".tmp"));
}

TEST_F(Safetensors, AFailedWriteLeavesTheOldFile) {
  float x = 1;
  std::string path = folder_.path("x.safetensors");
  writeSafetensors(path, {{"a", DType::F32, {1}, &x}});
  std::string before = folder_.read("x.safetensors");
  expectError([&] { writeDurably(path, {std::string_view(before.data(), size_t(1) << 60)}); },
              {"No space"});
  EXPECT_EQ(folder_.read("x.safetensors"), before);
}

} // namespace
} // namespace sft
