#include "runtime/base/Error.h"
#include "runtime/base/MappedFile.h"
#include "runtime/checkpoint/Checkpoint.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace sft {

namespace fs = std::filesystem;

namespace {

constexpr const char *singleName = "model.safetensors";
constexpr const char *indexName = "model.safetensors.index.json";

/// The first few entries and how many more there are.
std::string shortList(const std::vector<std::string> &entries, const char *separator = ", ") {
  constexpr size_t shown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(entries.size(), shown); ++i)
    text += (i ? separator : "") + entries[i];
  if (entries.size() > shown)
    text += concat(separator, "and ", entries.size() - shown, " more");
  return text;
}

/// The weight_map of an index: tensor name -> file name inside the folder.
std::map<std::string, std::string> readIndex(const std::string &path) {
  MappedFile file(path);
  // The parser keeps the last of two equal keys, so they have to be found on the way.
  std::string section;
  std::set<std::string> seen;
  auto checkKey = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json &value) {
    if (event != nlohmann::json::parse_event_t::key)
      return true;
    if (depth == 1)
      section = value.get<std::string>();
    else if (depth == 2 && section == "weight_map" && !seen.insert(value.get<std::string>()).second)
      fail("tensor twice in the index (", path, "): ", value.get<std::string>());
    return true;
  };
  nlohmann::json index;
  try {
    index = nlohmann::json::parse(file.data(), file.data() + file.size(), checkKey);
  } catch (const nlohmann::json::exception &error) {
    fail("index is not valid JSON (", path, "): ", error.what());
  }
  auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object())
    fail("index without a weight_map (", path, "); {\"weight_map\": {TENSOR: FILE}}");
  std::map<std::string, std::string> fileOf;
  for (const auto &[tensor, name] : map->items()) {
    if (!name.is_string())
      fail("malformed index (", path, ", tensor ", tensor, "): ", name.dump(), "; a file name");
    std::string shard = name.get<std::string>();
    if (shard.empty() || shard == "." || shard == ".." || fs::path(shard).filename() != shard)
      fail("shard outside the folder (", path, ", tensor ", tensor, "): \"", shard,
           "\"; a plain file name");
    fileOf[tensor] = shard;
  }
  return fileOf;
}

float halfToFloat(const char *bytes) {
  _Float16 value;
  std::memcpy(&value, bytes, sizeof(value));
  return float(value);
}

void convert(DType dtype, const char *source, int64_t count, float *out) {
  switch (dtype) {
  case DType::F32:
    std::memcpy(out, source, size_t(count) * sizeof(float));
    return;
  case DType::BF16:
    for (int64_t i = 0; i < count; ++i) {
      uint16_t bits;
      std::memcpy(&bits, source + 2 * i, sizeof(bits));
      out[i] = bf16ToFloat(bits);
    }
    return;
  case DType::F16:
    for (int64_t i = 0; i < count; ++i)
      out[i] = halfToFloat(source + 2 * i);
    return;
  case DType::F64:
    for (int64_t i = 0; i < count; ++i) {
      double value;
      std::memcpy(&value, source + 8 * i, sizeof(value));
      out[i] = float(value);
    }
    return;
  default:
    failInternal("no conversion to fp32 from ", dtypeName(dtype));
  }
}

bool isFloating(DType dtype) {
  return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16 || dtype == DType::F64;
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Whether two tensors of one shape hold the same bits after conversion to fp32.
bool sameValues(const WeightFolder &weights, const TensorInfo &a, const TensorInfo &b) {
  constexpr int64_t chunk = 1 << 16;
  std::vector<float> left(chunk), right(chunk);
  for (int64_t begin = 0; begin < a.elements(); begin += chunk) {
    int64_t count = std::min(chunk, a.elements() - begin);
    weights.readFloats(a.name, begin, count, left.data());
    weights.readFloats(b.name, begin, count, right.data());
    if (std::memcmp(left.data(), right.data(), size_t(count) * sizeof(float)) != 0)
      return false;
  }
  return true;
}

} // namespace

WeightFolder::WeightFolder(const std::string &folder) : folder_(folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    fail("no such folder (weights): ", folder, "; a Hugging Face folder with ", singleName, " or ",
         indexName);
  fs::path single = fs::path(folder) / singleName, indexPath = fs::path(folder) / indexName;
  if (fs::exists(single, ignored)) {
    files_.emplace_back(single.string());
    for (const auto &[name, tensor] : files_[0].tensors())
      file_of_[name] = 0;
    return;
  }
  if (!fs::exists(indexPath, ignored))
    fail("no weights in the folder (weights): ", folder, "; looked for ", singleName, " and ",
         indexName,
         fs::is_symlink(fs::symlink_status(single, ignored))
             ? concat(" (", singleName, " is a broken link)")
             : "");

  std::map<std::string, std::string> fileOf = readIndex(indexPath.string());
  std::map<std::string, size_t> shards;
  for (const auto &[tensor, shard] : fileOf)
    shards.emplace(shard, 0);
  std::vector<std::string> problems;
  for (const auto &[shard, number] : shards)
    if (!fs::exists(fs::path(folder) / shard, ignored))
      problems.push_back(shard);
  if (!problems.empty())
    fail("missing shards (", indexPath.string(), "): ", shortList(problems));

  for (auto &[shard, number] : shards) {
    number = files_.size();
    files_.emplace_back((fs::path(folder) / shard).string());
    for (const auto &[name, tensor] : files_.back().tensors()) {
      auto at = fileOf.find(name);
      if (at == fileOf.end() || at->second != shard)
        problems.push_back(concat(name, " is in ", shard, " but the index has it ",
                                  at == fileOf.end() ? "nowhere" : "in " + at->second));
    }
  }
  for (const auto &[name, shard] : fileOf) {
    size_t number = shards[shard];
    if (!files_[number].tensors().contains(name))
      problems.push_back(concat(name, " is not in ", shard));
    file_of_[name] = number;
  }
  if (!problems.empty())
    fail("index and shards disagree (", indexPath.string(), "): ", shortList(problems, "; "));
}

const TensorInfo *WeightFolder::find(const std::string &name) const {
  auto at = file_of_.find(name);
  return at == file_of_.end() ? nullptr : &files_[at->second].tensors().at(name);
}

std::vector<std::string> WeightFolder::names() const {
  std::vector<std::string> names;
  for (const auto &[name, file] : file_of_)
    names.push_back(name);
  return names;
}

void WeightFolder::readFloats(const std::string &name, int64_t begin, int64_t count,
                              float *out) const {
  const TensorInfo *tensor = find(name);
  if (!tensor)
    fail("no such tensor (", folder_, "): ", name);
  if (!isFloating(tensor->dtype))
    fail("tensor is not floating point (", folder_, ", tensor ", name,
         "): ", dtypeName(tensor->dtype), "; f32, bf16, f16 or f64");
  if (begin < 0 || count < 0 || count > tensor->elements() - begin)
    failInternal("elements ", begin, " to ", begin + count, " of tensor ", name, ", which has ",
                 tensor->elements());
  if (count == 0)
    return;
  const char *data = static_cast<const char *>(files_[file_of_.at(name)].data(*tensor));
  convert(tensor->dtype, data + size_t(begin) * dtypeBytes(tensor->dtype), count, out);
}

void checkWeights(const WeightFolder &weights, const std::vector<ExpectedTensor> &expected) {
  std::vector<std::string> missing, unexpected, mismatched, untied;
  std::set<std::string> known;
  for (const ExpectedTensor &want : expected) {
    auto fits = [&](const std::string &name, const TensorInfo &have) {
      if (have.shape == want.shape && isFloating(have.dtype))
        return true;
      mismatched.push_back(concat(name, " is ", dtypeName(have.dtype), " ", shapeText(have.shape),
                                  ", expected floating point ", shapeText(want.shape)));
      return false;
    };
    known.insert(want.name);
    const TensorInfo *primary = weights.find(want.name);
    if (!primary)
      missing.push_back(want.name + " " + shapeText(want.shape));
    bool usable = primary && fits(want.name, *primary);
    for (const std::string &alias : want.aliases) {
      known.insert(alias);
      const TensorInfo *other = weights.find(alias);
      if (other && fits(alias, *other) && usable && !sameValues(weights, *primary, *other))
        untied.push_back(want.name + " and " + alias);
    }
  }
  for (const std::string &name : weights.names())
    if (!known.contains(name) && !name.ends_with(".rotary_emb.inv_freq"))
      unexpected.push_back(name + " " + shapeText(weights.find(name)->shape));

  std::string message;
  auto report = [&](const char *what, const std::vector<std::string> &list) {
    if (!list.empty())
      message += concat("\n  ", what, " (", list.size(), "): ", shortList(list, "; "));
  };
  report("missing", missing);
  report("unexpected", unexpected);
  report("mismatched", mismatched);
  report("tied by the configuration but different", untied);
  if (!message.empty())
    fail("weights do not fit the plan (", weights.folder(), "):", message);
}

} // namespace sft
