#include "runtime/base/Error.h"
#include "runtime/data/Data.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace sft {

namespace {

/// SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
class SplitMix {
public:
  SplitMix(uint64_t seed, uint64_t stream) : state_(seed) {
    state_ = next() + stream;
    state_ = next();
  }
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// Fisher and Yates' shuffle.
  template <typename T> void shuffle(std::vector<T> &values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[size_t((static_cast<unsigned __int128>(next()) * i) >> 64)]);
  }

private:
  uint64_t state_;
};

/// The room left in each pack, to find the first pack that has enough: a tree of maxima. There are
/// as many packs as could ever be needed, so one always has.
class FirstFit {
public:
  FirstFit(size_t packs, int64_t room)
      : leaves_(std::bit_ceil(std::max<size_t>(packs, 1))), room_(2 * leaves_, room) {}
  size_t find(int64_t length) const {
    size_t node = 1;
    while (node < leaves_)
      node = room_[2 * node] >= length ? 2 * node : 2 * node + 1;
    return node - leaves_;
  }
  int64_t room(size_t pack) const { return room_[leaves_ + pack]; }
  void setRoom(size_t pack, int64_t room) {
    size_t node = leaves_ + pack;
    room_[node] = room;
    while (node /= 2)
      room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
  }

private:
  size_t leaves_;
  std::vector<int64_t> room_;
};

int64_t lengthOf(const Dataset &dataset, int64_t document) {
  return int64_t(dataset.samples[size_t(document)].input_ids.size());
}

std::vector<Pack> packFirstFitDecreasing(const Dataset &dataset, const StepOptions &options,
                                         const std::vector<int64_t> &order) {
  // Longest first; among equals, the order given.
  std::vector<std::pair<int64_t, size_t>> byLength;
  byLength.reserve(order.size());
  for (size_t place = 0; place < order.size(); ++place)
    byLength.emplace_back(-lengthOf(dataset, order[place]), place);
  std::sort(byLength.begin(), byLength.end());

  std::vector<Pack> packs;
  FirstFit fit(order.size(), options.tokens);
  for (auto [negativeLength, place] : byLength) {
    int64_t document = order[place], length = -negativeLength;
    size_t pack = fit.find(length);
    if (pack == packs.size())
      packs.emplace_back();
    packs[pack].documents.push_back(document);
    bool full = int64_t(packs[pack].documents.size()) == options.max_documents;
    fit.setRoom(pack, full ? 0 : fit.room(pack) - length);
  }
  return packs;
}

std::vector<Pack> packInOrder(const Dataset &dataset, const StepOptions &options,
                              const std::vector<int64_t> &order) {
  std::vector<Pack> packs;
  int64_t room = 0;
  for (int64_t document : order) {
    int64_t length = lengthOf(dataset, document);
    if (packs.empty() || length > room ||
        int64_t(packs.back().documents.size()) == options.max_documents) {
      packs.emplace_back();
      room = options.tokens;
    }
    packs.back().documents.push_back(document);
    room -= length;
  }
  return packs;
}

std::vector<Pack> packSingly(const std::vector<int64_t> &order) {
  std::vector<Pack> packs;
  for (int64_t document : order)
    packs.push_back({{document}});
  return packs;
}

void addToTotals(Step &step, const Sample &sample) {
  ++step.samples;
  step.tokens += int64_t(sample.input_ids.size());
  for (float weight : sample.weights) {
    step.trained_tokens += weight > 0;
    step.weight_sum += weight;
  }
}

} // namespace

std::vector<Step> planEpoch(const Dataset &dataset, const StepOptions &options, int64_t epoch) {
  if (options.tokens <= 0 || options.max_documents <= 0 || options.global_batch <= 0)
    failInternal("packing without limits (planEpoch)");
  for (const Sample &sample : dataset.samples)
    if (int64_t(sample.input_ids.size()) > options.tokens)
      fail("sample longer than a pack (sample ", sample.number, "): ", sample.input_ids.size(),
           " tokens; at most ", options.tokens);

  std::vector<int64_t> order(dataset.samples.size());
  std::iota(order.begin(), order.end(), 0);
  SplitMix random(options.seed, uint64_t(epoch));
  if (options.shuffle)
    random.shuffle(order);

  std::vector<Pack> packs;
  switch (options.packing) {
  case Packing::FirstFitDecreasing:
    packs = packFirstFitDecreasing(dataset, options, order);
    if (options.shuffle)
      random.shuffle(packs);
    else
      std::sort(packs.begin(), packs.end(), [](const Pack &a, const Pack &b) {
        return *std::min_element(a.documents.begin(), a.documents.end()) <
               *std::min_element(b.documents.begin(), b.documents.end());
      });
    break;
  case Packing::Order:
    packs = packInOrder(dataset, options, order);
    break;
  case Packing::None:
    packs = packSingly(order);
    break;
  }

  std::vector<Step> steps;
  for (Pack &pack : packs) {
    if (steps.empty() || int64_t(steps.back().packs.size()) == options.global_batch)
      steps.emplace_back();
    for (int64_t document : pack.documents)
      addToTotals(steps.back(), dataset.samples[size_t(document)]);
    steps.back().packs.push_back(std::move(pack));
  }
  return steps;
}

} // namespace sft
