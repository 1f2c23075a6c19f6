#include "runtime/checkpoint/Checkpoint.h"
#include "test/unit/TestFiles.h"

#include <nlohmann/json.hpp>

namespace sft {
namespace {

namespace fs = std::filesystem;

class ModelFolder : public testing::Test {
protected:
  test::TemporaryFolder folder_;
  std::vector<float> values_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

  std::vector<TensorToWrite> tensors() {
    return {{"a", DType::F32, {3}, &values_[0]},
            {"b", DType::F32, {2, 2}, &values_[3]},
            {"c", DType::F32, {1}, &values_[7]}};
  }
  std::vector<std::string> files(const std::string &name) {
    std::vector<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder_.path(name)))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(ModelFolder, HoldsWeightsConfigAndTokenizer) {
  fs::create_directories(folder_.path("source/tokenizer_folder.json"));
  for (std::string name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
        "generation_config.json", "vocab.json", "merges.txt", "tokenizer.model",
        "added_tokens.json", "config.json", "model.safetensors", "README.md"})
    folder_.write("source/" + name, "contents of " + name);
  folder_.write("source/merges.txt", ""); // an empty file is copied too
  std::string config = "{\n  \"model_type\":\"llama\" }\n";
  writeModelFolder(folder_.path("final/"), tensors(), config, folder_.path("source"));
  EXPECT_EQ(files("final"),
            (std::vector<std::string>{"added_tokens.json", "chat_template.jinja", "config.json",
                                      "generation_config.json", "merges.txt", "model.safetensors",
                                      "special_tokens_map.json", "tokenizer.json",
                                      "tokenizer.model", "tokenizer_config.json", "vocab.json"}));
  EXPECT_EQ(folder_.read("final/config.json"), config);
  EXPECT_EQ(folder_.read("final/tokenizer.json"), "contents of tokenizer.json");
  EXPECT_EQ(folder_.read("final/merges.txt"), "");
  EXPECT_EQ(files(""), (std::vector<std::string>{"final", "source"}));
  SafetensorsFile file(folder_.path("final/model.safetensors"));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  float out[4];
  WeightFolder(folder_.path("final")).readFloats("b", 0, 4, out);
  EXPECT_EQ(out[3], 7);
}

// transformers loads a model in the dtype of its config.json: fp32 weights came back rounded to
// bf16.
TEST_F(ModelFolder, ConfigHasTheDtypeOfTheTensors) {
  auto written = [&](const std::string &config, const std::vector<TensorToWrite> &tensors) {
    writeModelFolder(folder_.path("out"), tensors, config, "");
    return folder_.read("out/config.json");
  };
  auto config = [](const std::string &first, const std::string &second) {
    return "{\n  \"vocab_size\": 320,\n  \"torch_dtype\": " + first +
           ",\n  \"rms_norm_eps\": 1e-06,\n  \"dtype\": " + second +
           ",\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ]\n}\n";
  };
  const std::string f32 = "\"float32\"", bf16 = "\"bfloat16\"", f16 = "\"float16\"";
  // Either key or both, and nothing else: keys keep their order.
  EXPECT_EQ(written(config(bf16, bf16), tensors()), config(f32, f32));
  EXPECT_EQ(written(config(f16, f32), tensors()), config(f32, f32));
  EXPECT_EQ(written(config(f32, bf16), tensors()), config(f32, f32));
  EXPECT_EQ(written("{\"torch_dtype\": \"bfloat16\"}", tensors()),
            "{\n  \"torch_dtype\": \"float32\"\n}\n");
  EXPECT_EQ(written("{\"dtype\": \"bfloat16\"}", tensors()), "{\n  \"dtype\": \"float32\"\n}\n");
  // The text stands as it was when there is nothing to change, down to its spaces.
  for (std::string text : {"{\"torch_dtype\":\"float32\" ,\"x\":1.50}", "{ \"x\":[1,2] }\n\n", "{}",
                           "[\"dtype\"]", "not JSON", ""})
    EXPECT_EQ(written(text, tensors()), text);
  // Tensors of another type: their config is the caller's to say.
  std::vector<uint16_t> halves = {0x3f80};
  std::vector<TensorToWrite> mixed = tensors();
  mixed.push_back({"d", DType::BF16, {1}, halves.data()});
  EXPECT_EQ(written(config(bf16, bf16), mixed), config(bf16, bf16));
}

TEST_F(ModelFolder, ShardsAboveTheLimitHaveAnIndex) {
  writeModelFolder(folder_.path("out"), tensors(), "{}", "", 16);
  EXPECT_EQ(files("out"), (std::vector<std::string>{
                              "config.json", "model-00001-of-00003.safetensors",
                              "model-00002-of-00003.safetensors",
                              "model-00003-of-00003.safetensors", "model.safetensors.index.json"}));
  nlohmann::json index = nlohmann::json::parse(folder_.read("out/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 32);
  EXPECT_EQ(index["weight_map"]["c"], "model-00003-of-00003.safetensors");
  WeightFolder weights(folder_.path("out"));
  checkWeights(weights, {{"a", {}, {3}}, {"b", {}, {2, 2}}, {"c", {}, {1}}});
  float out[1];
  weights.readFloats("c", 0, 1, out);
  EXPECT_EQ(out[0], 8);
  // 12 + 16 bytes fit into 28, and a tensor above the limit has a shard of its own.
  writeModelFolder(folder_.path("out"), tensors(), "{}", "", 28);
  EXPECT_EQ(files("out").size(), 4u);
  writeModelFolder(folder_.path("out"), tensors(), "{}", "", 1);
  EXPECT_EQ(files("out").size(), 5u);
  writeModelFolder(folder_.path("out"), tensors(), "{}", "", 32);
  EXPECT_EQ(files("out"), (std::vector<std::string>{"config.json", "model.safetensors"}));
}

TEST_F(ModelFolder, ReplacesAnOldFolderAndLeftovers) {
  for (std::string name : {"out", "out.tmp", "out.old"}) {
    fs::create_directories(folder_.path(name));
    folder_.write(name + "/stale", "x");
  }
  // The folder itself may be the source of its tokenizer.
  folder_.write("out/tokenizer.json", "t");
  writeModelFolder(folder_.path("out"), tensors(), "{}", folder_.path("out"));
  EXPECT_EQ(files("out"),
            (std::vector<std::string>{"config.json", "model.safetensors", "tokenizer.json"}));
  EXPECT_EQ(files(""), (std::vector<std::string>{"out"}));
}

TEST_F(ModelFolder, AFailureLeavesTheOldFolder) {
  fs::create_directories(folder_.path("out"));
  folder_.write("out/config.json", "old");
  test::expectError(
      [&] { writeModelFolder(folder_.path("out"), tensors(), "new", folder_.path("absent")); },
      {"cannot write model folder", folder_.path("out"), "absent"});
  EXPECT_EQ(folder_.read("out/config.json"), "old");
  folder_.write("file", "");
  test::expectError([&] { writeModelFolder(folder_.path("file/out"), tensors(), "{}", ""); },
                    {"cannot write model folder", "file/out"});
}

} // namespace
} // namespace sft
