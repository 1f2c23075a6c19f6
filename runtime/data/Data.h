//===- Data.h - from JSONL files to the tables of a pack -----------------------===//
//
// A sample is one document. A pack holds at most `tokens` real tokens and `max_documents` documents. A step is `global_batch`
// packs in an order that depends on (seed, epoch, data, tokens, max_documents) alone, never on the mesh.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_DATA_DATA_H
#define RUNTIME_DATA_DATA_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sft {

/// One document. `weights[i]` is the weight of token i as a target, predicted from token i - 1; weights[0] is always 0.
struct Sample {
  int64_t number = 0; ///< place in reading order over all files, from 0; stable under dropping
  std::vector<int32_t> input_ids;
  std::vector<float> weights;
  std::vector<int32_t> position_ids; ///< empty: 0, 1, 2, ...
};

enum class OverLong { Error, Drop, Truncate };
enum class Packing { FirstFitDecreasing, Order, None };

struct DatasetOptions {
  int64_t tokens = 0;          ///< longest document
  int64_t vocab_size = 0;      ///< ids lie in [0, vocab_size)
  int64_t max_positions = 0;   ///< positions lie in [0, max_positions)
  OverLong over_long = OverLong::Error;
};

/// What became of the lines of the files. `lines` = samples + dropped + empty + (untrained, unless they were kept).
struct DatasetCounts {
  int64_t lines = 0, samples = 0, dropped = 0, truncated = 0, untrained = 0;
  int64_t empty = 0;                                       ///< samples without a token; they never stay
  int64_t tokens = 0, trained_tokens = 0;                  ///< of the samples that stay
  std::vector<int64_t> dropped_samples, truncated_samples; ///< sample numbers
  std::map<std::string, int64_t> ignored_keys;             ///< keys of lines that mean nothing here, with their number
};

struct Dataset {
  std::vector<Sample> samples;
  DatasetCounts counts;
  uint64_t hash = 0; ///< XXH3 of the contents (ids, weights, positions)
};

/// Reads JSONL files (INTERFACES "Data"). Throws one clear error naming file, line and column. A sample with no trained target
/// is left out of training and counted in `untrained` (it cannot change a gradient); it stays when `keep_untrained`. No sample
/// may be left at all: that is for the caller to judge. A document is over-long above min(tokens, max_positions) tokens, or
/// above `tokens` when it brings its own positions.
Dataset readDataset(const std::vector<std::string> &files, const DatasetOptions &options, bool keep_untrained);

/// Documents of one pack, as indices into Dataset::samples, in pack order.
struct Pack {
  std::vector<int64_t> documents;
};

struct Step {
  std::vector<Pack> packs;      ///< global_batch packs; the last step of an epoch may have fewer
  double weight_sum = 0;        ///< of all trained targets of the step
  int64_t trained_tokens = 0, tokens = 0, samples = 0;
};

struct StepOptions {
  int64_t tokens = 0, max_documents = 0, global_batch = 1;
  Packing packing = Packing::FirstFitDecreasing;
  uint64_t seed = 0;
  bool shuffle = true; ///< false for `order`, for evaluation, and for tests
};

/// The steps of one epoch: every sample exactly once. With `shuffle`, samples are permuted before packing and packs after
/// first-fit-decreasing (which sorts by length); without it, packs follow their first sample. Throws when a sample is longer
/// than `tokens`.
std::vector<Step> planEpoch(const Dataset &dataset, const StepOptions &options, int64_t epoch);

/// How the token axis of a pack is cut over the ranks of a context-parallel group.
struct TokenLayout {
  int64_t padded_tokens = 0; ///< rows of a pack over the whole group
  int ranks = 1;             ///< of the group
  bool zigzag = false;       ///< 2 * ranks chunks, rank r holds chunks r and 2 * ranks - 1 - r; otherwise contiguous
  int64_t max_documents = 0;

  int slots() const { return zigzag && ranks > 1 ? 2 : 1; }              ///< runs of consecutive tokens on a rank
  int64_t rows() const { return padded_tokens / ranks; }                 ///< of one rank
  int64_t slotRows() const { return rows() / slots(); }
  /// First global row of a slot of a rank.
  int64_t slotBegin(int rank, int slot) const {
    int64_t chunk = slot == 0 ? rank : 2 * int64_t(ranks) - 1 - rank;
    return chunk * slotRows();
  }
};

/// Entries of squares for one rank: a slot has at most max_documents, then one row of -1 closes the list.
int64_t squaresCapacity(const TokenLayout &layout);
/// Entries of rectangles for one rank: at most one a slot, then one row of -1.
int64_t rectanglesCapacity(const TokenLayout &layout);

/// A pack laid out over all rows of a context-parallel group, in global order, padding last (document -1, token 0, position 0,
/// target -1, weight 0). Targets are shifted inside each document before any cut; a token of weight 0 is no target (-1).
struct PackRows {
  std::vector<int32_t> tokens, positions, documents, targets;
  std::vector<float> weights;          ///< share of the step's loss: weight / weight_sum
  std::vector<int64_t> sample_index;   ///< of every row, -1 for padding
  std::vector<int32_t> sample_token;   ///< index inside the sample of the row's token
};
PackRows layOutPack(const Dataset &dataset, const Pack &pack, double weight_sum, const TokenLayout &layout);

/// Fills one table of one rank (kinds: tokens, positions, documents, targets, weights, squares, rectangles, embedding_order,
/// embedding_segments, slot_permutation). `whole` selects all rows in global order. squares rows are {q row, kv row, length} and
/// rectangles rows {q row, q length, kv row, kv length}: q rows are local, kv rows are in global order. `bytes` is the size of
/// `out`; unused entries are -1. embedding_order lists the rank's rows sorted by token (padding left out), embedding_segments
/// rows are {token, begin, end} into it. slot_permutation[i] is the place of global slot i in an all-gather of the ranks' rows.
void fillTable(const std::string &kind, bool whole, const PackRows &rows, const TokenLayout &layout, int rank, void *out,
               size_t bytes);

/// cos/sin tables of rotary embedding: rows x head_dim f32 each. Row p, element j of the cosine table is cos(angle(p, j mod
/// (head_dim/2))); of the sine table the same with the sign of the first half negated, so that rotating is
/// x[j] * cos[j] + x[partner(j)] * sin[j] (Su et al., RoFormer, eq. 34, in the half-split form of transformers).
/// The angle is fp32 inv_freq times the fp32 position, rounded to fp32 as transformers computes it; cos and sin are taken in
/// double.
struct RotaryParameters {
  std::string rope_type = "default"; ///< default, linear, llama3
  double theta = 10000;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  int64_t original_max_position_embeddings = 0;
  int64_t head_dim = 0;
};
void fillRotaryTable(const RotaryParameters &parameters, int64_t rows, float *cosine, float *sine);

/// Learning rate of step `step` (from 1) of `total`. Warm-up rises linearly from 0 to lr over warmup steps; then constant,
/// linear or cosine to min_lr at the last step. The first step that is not below lr is step max(warmup, 1).
struct ScheduleOptions {
  std::string kind = "cosine";
  double lr = 1e-5, min_lr = 0;
  int64_t warmup = 0, total = 0;
};
double learningRate(const ScheduleOptions &options, int64_t step);

} // namespace sft

#endif // RUNTIME_DATA_DATA_H
