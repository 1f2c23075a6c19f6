//===- Checkpoint.h - safetensors files and Hugging Face folders ----------------===//
#ifndef RUNTIME_CHECKPOINT_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "runtime/base/DType.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sft {

/// One tensor of a safetensors file, as its header declares it.
struct TensorInfo {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0; ///< bytes from the start of the data
  int64_t elements() const;
};

/// A mapped safetensors file. Opening checks the whole header: size (at most 100 MB), JSON, repeated keys, dtypes, shapes against
/// byte ranges, overlaps, gaps, trailing bytes. The format: 8 bytes header length (little endian), JSON header, data.
class SafetensorsFile {
public:
  explicit SafetensorsFile(const std::string &path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile &&) noexcept;
  const std::string &path() const;
  const std::map<std::string, TensorInfo> &tensors() const;
  const std::map<std::string, std::string> &metadata() const;
  const void *data(const TensorInfo &tensor) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A tensor to write.
struct TensorToWrite {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  const void *data = nullptr;
};

/// Writes a safetensors file through a temporary name, fsync and rename; throws with path, bytes needed and bytes free. Tensors
/// are laid out widest element type first, so that each is aligned.
void writeSafetensors(const std::string &path, const std::vector<TensorToWrite> &tensors,
                      const std::map<std::string, std::string> &metadata = {});

/// The weights of a Hugging Face folder: model.safetensors, or else the shards that model.safetensors.index.json names. Index
/// and shards must agree in both directions. A reference stays valid when the folder object is moved.
class WeightFolder {
public:
  explicit WeightFolder(const std::string &folder);
  /// Null when absent.
  const TensorInfo *find(const std::string &name) const;
  std::vector<std::string> names() const;
  /// Copies `count` elements from element `begin` on, converted to fp32 (from F32, BF16, F16 or F64).
  void readFloats(const std::string &name, int64_t begin, int64_t count, float *out) const;
  const std::string &folder() const { return folder_; }

private:
  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_of_;
};

/// What a plan expects of a checkpoint.
struct ExpectedTensor {
  std::string name;
  std::vector<std::string> aliases; ///< may be missing; when present must hold the same values (tied weights)
  std::vector<int64_t> shape;
};

/// Throws one error that lists missing, unexpected and mismatched tensors (with both shapes) and tied tensors that differ.
/// Tensors named *.rotary_emb.inv_freq, which old checkpoints carry, are accepted unread: they follow from config.json.
void checkWeights(const WeightFolder &weights, const std::vector<ExpectedTensor> &expected);

/// Writes a Hugging Face folder: model.safetensors (above `shard_bytes`: several files and an index), config.json (as
/// given, but with dtype float32 where all tensors are) and the tokenizer and generation files of `source_folder` when not empty. Written to a temporary folder beside it, then renamed;
/// an existing folder of that name is replaced.
void writeModelFolder(const std::string &folder, const std::vector<TensorToWrite> &tensors, const std::string &config_json,
                      const std::string &source_folder, uint64_t shard_bytes = 5'000'000'000);

/// Random weights: N(0, initializer_range) by Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3")
/// keyed by (seed, XXH64 of the checkpoint name), counter = global element index / 2, Box-Muller; the same on every mesh. The
/// seed is Philox's key; the low half of its counter is the element pair, the high half the hash.
void fillRandomNormal(uint64_t seed, const std::string &name, double standard_deviation, int64_t begin, int64_t count,
                      float *out);

} // namespace sft

#endif // RUNTIME_CHECKPOINT_CHECKPOINT_H
