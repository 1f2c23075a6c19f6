#include "runtime/base/Error.h"
#include "runtime/data/JsonlReader.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>

namespace sft {

namespace {

/// Hashes samples one after another; lengths go in too, so that no two data sets spell the same
/// bytes.
class ContentHash {
public:
  ContentHash() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(const Sample &sample) {
    int64_t sizes[] = {sample.number, int64_t(sample.input_ids.size()),
                       int64_t(sample.position_ids.size())};
    update(sizes, sizeof(sizes));
    update(sample.input_ids.data(), sample.input_ids.size() * sizeof(int32_t));
    update(sample.weights.data(), sample.weights.size() * sizeof(float));
    update(sample.position_ids.data(), sample.position_ids.size() * sizeof(int32_t));
  }
  uint64_t digest() const { return XXH3_64bits_digest(state_.get()); }

private:
  void update(const void *data, size_t bytes) {
    if (bytes)
      XXH3_64bits_update(state_.get(), data, bytes);
  }
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

/// Applies the limits on length and position. False when the sample is to be dropped.
bool applyLimits(Sample &sample, const std::string &place, const DatasetOptions &options,
                 DatasetCounts &counts) {
  bool ownPositions = !sample.position_ids.empty();
  int64_t limit = ownPositions ? options.tokens : std::min(options.tokens, options.max_positions);
  int64_t length = int64_t(sample.input_ids.size());
  if (length > limit) {
    switch (options.over_long) {
    case OverLong::Error:
      fail(place, ":1: error: sample too long (sample ", sample.number, "): ", length,
           " tokens; at most ", limit, " (",
           limit == options.tokens ? "tokens of a pack" : "positions of the model",
           "), or --over-long drop or truncate");
    case OverLong::Drop:
      ++counts.dropped;
      counts.dropped_samples.push_back(sample.number);
      return false;
    case OverLong::Truncate:
      ++counts.truncated;
      counts.truncated_samples.push_back(sample.number);
      sample.input_ids.resize(size_t(limit));
      sample.weights.resize(size_t(limit));
      if (ownPositions)
        sample.position_ids.resize(size_t(limit));
    }
  }
  if (ownPositions && sample.position_ids.back() >= options.max_positions)
    fail(place, ":1: error: position outside the model (sample ", sample.number,
         "): ", sample.position_ids.back(), "; position_ids are below ", options.max_positions);
  return true;
}

} // namespace

Dataset readDataset(const std::vector<std::string> &files, const DatasetOptions &options,
                    bool keepUntrained) {
  if (options.tokens <= 0 || options.vocab_size <= 0 || options.max_positions <= 0)
    failInternal("data set without limits (readDataset)");
  Dataset dataset;
  DatasetCounts &counts = dataset.counts;
  ContentHash hash;
  for (const std::string &file : files) {
    readJsonl(file, options.vocab_size, counts.lines, counts.ignored_keys,
              [&](int64_t line, Sample &&sample) {
                ++counts.lines;
                if (sample.input_ids.empty()) {
                  ++counts.empty;
                  return;
                }
                if (!applyLimits(sample, concat(file, ":", line), options, counts))
                  return;
                int64_t trained = std::count_if(sample.weights.begin(), sample.weights.end(),
                                                [](float w) { return w > 0; });
                counts.untrained += trained == 0;
                if (trained == 0 && !keepUntrained)
                  return;
                ++counts.samples;
                counts.tokens += int64_t(sample.input_ids.size());
                counts.trained_tokens += trained;
                hash.add(sample);
                dataset.samples.push_back(std::move(sample));
              });
  }
  dataset.hash = hash.digest();
  return dataset;
}

} // namespace sft
