#include "runtime/checkpoint/Checkpoint.h"
#include "test/unit/TestFiles.h"

#include <cmath>
#include <cstring>

namespace sft {
namespace {

using test::expectError;
namespace fs = std::filesystem;

class WeightFolderTest : public testing::Test {
protected:
  test::TemporaryFolder folder_;
  std::vector<float> values_ = std::vector<float>(100, 1.5f);

  TensorToWrite tensor(const std::string &name, std::vector<int64_t> shape) {
    return {name, DType::F32, std::move(shape), values_.data()};
  }
  void write(const std::string &file, const std::vector<TensorToWrite> &tensors) {
    writeSafetensors(folder_.path(file), tensors);
  }
  void writeIndex(const std::string &weightMap) {
    folder_.write("model.safetensors.index.json",
                  R"({"metadata": {"total_size": 1}, "weight_map": )" + weightMap + "}");
  }
  void expectRefused(std::initializer_list<std::string> parts) {
    expectError([&] { WeightFolder weights(folder_.path()); }, parts);
  }
};

TEST_F(WeightFolderTest, ConvertsToFloat) {
  std::vector<float> f32 = {1, -2.5f, NAN, INFINITY};
  std::vector<uint16_t> bf16 = {0x3f80, 0xc020, 0x7fc0, 0x0001};
  std::vector<uint16_t> f16 = {0x3c00, 0xc100, 0x7c00, 0x0001};
  std::vector<double> f64 = {1, -2.5, 0.1, 1e300};
  std::vector<int32_t> i32 = {1, 2, 3, 4};
  write("model.safetensors", {{"f32", DType::F32, {4}, f32.data()},
                              {"bf16", DType::BF16, {2, 2}, bf16.data()},
                              {"f16", DType::F16, {4}, f16.data()},
                              {"f64", DType::F64, {4}, f64.data()},
                              {"i32", DType::I32, {4}, i32.data()}});
  WeightFolder weights(folder_.path());
  EXPECT_EQ(weights.folder(), folder_.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"bf16", "f16", "f32", "f64", "i32"}));
  EXPECT_EQ(weights.find("bf16")->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(weights.find("absent"), nullptr);
  float out[4];
  weights.readFloats("f32", 0, 4, out);
  EXPECT_EQ(std::memcmp(out, f32.data(), 16), 0);
  weights.readFloats("bf16", 0, 4, out);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], -2.5f);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_EQ(out[3], std::ldexp(1.f, -133));
  weights.readFloats("f16", 0, 4, out);
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], -2.5f);
  EXPECT_EQ(out[2], INFINITY);
  EXPECT_EQ(out[3], std::ldexp(1.f, -24));
  weights.readFloats("f64", 0, 4, out);
  EXPECT_EQ(out[2], 0.1f);
  EXPECT_EQ(out[3], INFINITY);
  weights.readFloats("f32", 1, 1, out); // a slice
  EXPECT_EQ(out[0], -2.5f);
  expectError([&] { weights.readFloats("i32", 0, 4, out); }, {"not floating point", "i32", "f64"});
  expectError([&] { weights.readFloats("absent", 0, 1, out); }, {"no such tensor", "absent"});
  expectError([&] { weights.readFloats("f32", 3, 2, out); }, {"elements 3 to 5", "has 4"});
  expectError([&] { weights.readFloats("f32", -1, 1, out); }, {"elements -1"});
}

TEST_F(WeightFolderTest, ShardsAreOneFolder) {
  write("a.safetensors", {tensor("x", {2})});
  write("b.safetensors", {tensor("y", {3}), tensor("z", {})});
  writeIndex(R"({"x": "a.safetensors", "z": "b.safetensors", "y": "b.safetensors"})");
  WeightFolder weights(folder_.path());
  EXPECT_EQ(weights.names(), (std::vector<std::string>{"x", "y", "z"}));
  float out[3] = {};
  weights.readFloats("y", 0, 3, out);
  EXPECT_EQ(out[2], 1.5f);
}

TEST_F(WeightFolderTest, LinksAreFollowed) {
  fs::create_directory(folder_.path("blobs"));
  write("blobs/1234", {tensor("x", {2})});
  fs::create_symlink(folder_.path("blobs/1234"), folder_.path("model.safetensors"));
  fs::create_directory_symlink(folder_.path(), folder_.path("link"));
  EXPECT_NE(WeightFolder(folder_.path("link")).find("x"), nullptr);
  fs::remove(folder_.path("blobs/1234"));
  expectRefused({"no weights in the folder", "model.safetensors.index.json", "broken link"});
}

TEST_F(WeightFolderTest, NothingThere) {
  expectRefused({folder_.path(), "looked for model.safetensors and model.safetensors.index.json"});
  expectError([&] { WeightFolder weights(folder_.path("absent")); },
              {"no such folder", folder_.path("absent"), "model.safetensors"});
  fs::create_directory_symlink(folder_.path("absent"), folder_.path("dangling"));
  expectError([&] { WeightFolder weights(folder_.path("dangling")); }, {"no such folder"});
}

// sgl-project/sglang #32279: an index that names a shard which is not there.
TEST_F(WeightFolderTest, MissingShardsAreNamed) {
  write("model-1.safetensors", {tensor("x", {2})});
  write("model-3.safetensors", {tensor("z", {2})});
  writeIndex(
      R"({"x": "model-1.safetensors", "y": "model-2.safetensors", "z": "model-3.safetensors"})");
  expectRefused({"missing shards", "model.safetensors.index.json", ": model-2.safetensors"});
}

TEST_F(WeightFolderTest, ShardsOutsideTheFolderAreRefused) {
  fs::create_directory(folder_.path("sub"));
  write("model-1.safetensors", {tensor("x", {2})});
  write("sub/model-1.safetensors", {tensor("x", {2})});
  for (std::string name : {"../model-1.safetensors", "sub/model-1.safetensors", "..", ".", "",
                           "/etc/passwd", "sub/../model-1.safetensors"}) {
    writeIndex(R"({"x": ")" + name + "\"}");
    expectRefused({"outside the folder", "tensor x", "\"" + name + "\"", "plain file name"});
  }
}

TEST_F(WeightFolderTest, MalformedIndex) {
  write("a.safetensors", {tensor("x", {2})});
  auto refuse = [&](const std::string &text, std::initializer_list<std::string> parts) {
    folder_.write("model.safetensors.index.json", text);
    expectRefused(parts);
    expectRefused({"model.safetensors.index.json"});
  };
  refuse("", {"not valid JSON"});
  refuse("{\"weight_map\": {", {"not valid JSON", "line 1, column"});
  refuse("[]", {"without a weight_map"});
  refuse("{}", {"without a weight_map"});
  refuse(R"({"weight_map": []})", {"without a weight_map"});
  refuse(R"({"weight_map": {"x": 1}})", {"tensor x", "a file name"});
  refuse(R"({"weight_map": {"x": "a.safetensors", "x": "a.safetensors"}})",
         {"tensor twice in the index", "x"});
}

TEST_F(WeightFolderTest, IndexAndShardsAgreeInBothDirections) {
  write("a.safetensors", {tensor("x", {2}), tensor("extra", {1})});
  write("b.safetensors", {tensor("y", {2}), tensor("x", {2})});
  writeIndex(R"({"x": "a.safetensors", "y": "b.safetensors", "lost": "b.safetensors"})");
  expectRefused({"disagree", "extra is in a.safetensors but the index has it nowhere",
                 "x is in b.safetensors but the index has it in a.safetensors",
                 "lost is not in b.safetensors"});
}

// oxiglade/mlx-rs #304: missing and unexpected names were ignored.
TEST_F(WeightFolderTest, CheckListsEveryDifference) {
  std::vector<int32_t> ints(4);
  write("model.safetensors", {tensor("fine", {2, 3}),
                              tensor("renamed", {2}),
                              tensor("extra", {7}),
                              tensor("shaped", {3, 2}),
                              {"typed", DType::I32, {4}, ints.data()},
                              tensor("model.layers.0.self_attn.rotary_emb.inv_freq", {8})});
  WeightFolder weights(folder_.path());
  std::vector<ExpectedTensor> expected = {
      {"fine", {}, {2, 3}}, {"name", {}, {2}}, {"shaped", {}, {2, 3}}, {"typed", {}, {4}}};
  expectError(
      [&] { checkWeights(weights, expected); },
      {folder_.path(), "missing (1): name [2]", "unexpected (2): extra [7]; renamed [2]",
       "mismatched (2): shaped is f32 [3, 2], expected floating point [2, 3]; typed is i32 [4]"});
  write("model.safetensors", {tensor("fine", {2, 3})});
  checkWeights(WeightFolder(folder_.path()), {{"fine", {}, {2, 3}}});
}

TEST_F(WeightFolderTest, LongListsAreCut) {
  std::vector<ExpectedTensor> expected;
  for (int i = 0; i < 100; ++i)
    expected.push_back({"t" + std::to_string(i), {}, {1}});
  write("model.safetensors", {});
  WeightFolder weights(folder_.path());
  expectError([&] { checkWeights(weights, expected); },
              {"missing (100): t0 [1]", "t19 [1]; and 80 more"});
}

// vllm-project/vllm #51665: tied by the configuration, but the file holds another head.
TEST_F(WeightFolderTest, TiedTensorsMustBeEqual) {
  constexpr int64_t rows = 70'000; // more than one chunk of the comparison
  std::vector<float> embedding(rows), head(rows);
  for (int64_t i = 0; i < rows; ++i)
    embedding[size_t(i)] = head[size_t(i)] = float(i);
  std::vector<ExpectedTensor> expected = {{"embed", {"lm_head"}, {rows}}};
  auto writeBoth = [&] {
    write("model.safetensors", {{"embed", DType::F32, {rows}, embedding.data()},
                                {"lm_head", DType::F32, {rows}, head.data()}});
  };
  writeBoth();
  checkWeights(WeightFolder(folder_.path()), expected);
  head[rows - 1] = 0;
  writeBoth();
  expectError([&] { checkWeights(WeightFolder(folder_.path()), expected); },
              {"tied", "different (1): embed and lm_head"});
  write("model.safetensors", {{"embed", DType::F32, {rows}, embedding.data()}});
  checkWeights(WeightFolder(folder_.path()), expected);
  write("model.safetensors", {{"embed", DType::F32, {rows}, embedding.data()},
                              {"lm_head", DType::F32, {5}, head.data()}});
  expectError([&] { checkWeights(WeightFolder(folder_.path()), expected); },
              {"mismatched (1): lm_head is f32 [5]", "[70000]"});
  std::vector<uint16_t> small = {0x3f80};
  float one = 1;
  write("model.safetensors",
        {{"embed", DType::F32, {1}, &one}, {"lm_head", DType::BF16, {1}, small.data()}});
  checkWeights(WeightFolder(folder_.path()),
               {{"embed", {"lm_head"}, {1}}}); // equal values in another type
}

} // namespace
} // namespace sft
