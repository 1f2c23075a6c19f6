#include "runtime/base/Error.h"
#include "runtime/base/MappedFile.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/DurableFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string_view>

namespace sft {

namespace fs = std::filesystem;

namespace {

/// Whether a file of a source folder belongs to its tokenizer or to generation.
bool isCompanion(const fs::path &file) {
  static constexpr std::string_view names[] = {"special_tokens_map.json",
                                               "added_tokens.json",
                                               "vocab.json",
                                               "vocab.txt",
                                               "merges.txt",
                                               "tokenizer.model",
                                               "chat_template.jinja",
                                               "chat_template.json",
                                               "generation_config.json"};
  std::string name = file.filename().string();
  return std::find(std::begin(names), std::end(names), name) != std::end(names) ||
         (name.starts_with("tokenizer") && name.ends_with(".json"));
}

uint64_t bytesOf(const TensorToWrite &tensor) {
  uint64_t bytes = dtypeBytes(tensor.dtype);
  for (int64_t size : tensor.shape)
    bytes *= uint64_t(size);
  return bytes;
}

/// Consecutive tensors, as many in a shard as fit; a larger tensor has one of its own.
std::vector<std::vector<TensorToWrite>> cutIntoShards(const std::vector<TensorToWrite> &tensors,
                                                      uint64_t shardBytes) {
  std::vector<std::vector<TensorToWrite>> shards(1);
  uint64_t used = 0;
  for (const TensorToWrite &tensor : tensors) {
    uint64_t bytes = bytesOf(tensor);
    if (!shards.back().empty() && used + bytes > shardBytes) {
      shards.emplace_back();
      used = 0;
    }
    shards.back().push_back(tensor);
    used += bytes;
  }
  return shards;
}

void writeWeights(const fs::path &folder, const std::vector<TensorToWrite> &tensors,
                  uint64_t shardBytes) {
  const std::map<std::string, std::string> metadata = {{"format", "pt"}}; // transformers wants it
  std::vector<std::vector<TensorToWrite>> shards = cutIntoShards(tensors, shardBytes);
  if (shards.size() == 1)
    return writeSafetensors((folder / "model.safetensors").string(), tensors, metadata);
  nlohmann::json weightMap;
  uint64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    char name[64];
    std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", i + 1, shards.size());
    writeSafetensors((folder / name).string(), shards[i], metadata);
    for (const TensorToWrite &tensor : shards[i]) {
      weightMap[tensor.name] = name;
      total += bytesOf(tensor);
    }
  }
  nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", weightMap}};
  writeDurably((folder / "model.safetensors.index.json").string(), {index.dump(2)});
}

void copyCompanions(const fs::path &source, const fs::path &folder) {
  for (const fs::directory_entry &entry : fs::directory_iterator(source)) {
    if (!entry.is_regular_file() || !isCompanion(entry.path()))
      continue;
    MappedFile file(entry.path().string());
    writeDurably((folder / entry.path().filename()).string(), {{file.data(), file.size()}});
  }
}

/// The config with the dtype of the tensors: transformers would round fp32 weights to a bf16 that
/// the source had.
std::string withDtype(const std::string &config, const std::vector<TensorToWrite> &tensors) {
  bool allFloats = std::all_of(tensors.begin(), tensors.end(),
                               [](const TensorToWrite &t) { return t.dtype == DType::F32; });
  auto json = nlohmann::ordered_json::parse(config, nullptr, /*allow_exceptions=*/false);
  if (!allFloats || !json.is_object())
    return config;
  bool changed = false;
  for (const char *key : {"torch_dtype", "dtype"})
    if (json.contains(key) && json[key] != "float32") {
      json[key] = "float32";
      changed = true;
    }
  return changed ? json.dump(2) + '\n' : config;
}

} // namespace

void writeModelFolder(const std::string &folder, const std::vector<TensorToWrite> &tensors,
                      const std::string &configJson, const std::string &sourceFolder,
                      uint64_t shardBytes) {
  fs::path target = fs::path(folder).lexically_normal();
  if (!target.has_filename())
    target = target.parent_path(); // "final/"
  fs::path temporary = target.string() + ".tmp", old = target.string() + ".old";
  try {
    fs::remove_all(temporary);
    fs::create_directories(temporary);
    writeWeights(temporary, tensors, shardBytes);
    writeDurably((temporary / "config.json").string(), {withDtype(configJson, tensors)});
    if (!sourceFolder.empty())
      copyCompanions(sourceFolder, temporary);
    // Two renames, so that at every moment one of the two folders is whole under some name.
    fs::remove_all(old);
    if (fs::exists(target))
      fs::rename(target, old);
    fs::rename(temporary, target);
    syncFolder(target.has_parent_path() ? target.parent_path().string() : ".");
    fs::remove_all(old);
  } catch (const fs::filesystem_error &error) {
    fail("cannot write model folder (", folder, "): ", error.code().message(), ": ",
         error.path1().string());
  }
}

} // namespace sft
