#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/Philox.h"

#include <xxhash.h>

#include <cmath>
#include <numbers>

namespace sft {

namespace {

/// 53 random bits as a number in (0, 1], so that its logarithm is finite.
double uniform(uint32_t low, uint32_t high) {
  uint64_t bits = uint64_t(high) << 32 | low;
  return double((bits >> 11) + 1) * 0x1p-53;
}

} // namespace

void fillRandomNormal(uint64_t seed, const std::string &name, double standardDeviation,
                      int64_t begin, int64_t count, float *out) {
  uint64_t hash = XXH64(name.data(), name.size(), 0);
  std::array<uint32_t, 2> key = {uint32_t(seed), uint32_t(seed >> 32)};
  int64_t end = begin + count;
  for (int64_t pair = begin / 2; 2 * pair < end; ++pair) {
    auto bits = philox4x32(
        {uint32_t(pair), uint32_t(uint64_t(pair) >> 32), uint32_t(hash), uint32_t(hash >> 32)},
        key);
    double radius = standardDeviation * std::sqrt(-2 * std::log(uniform(bits[0], bits[1])));
    double angle = 2 * std::numbers::pi * uniform(bits[2], bits[3]);
    if (2 * pair >= begin)
      *out++ = float(radius * std::cos(angle));
    if (2 * pair + 1 < end)
      *out++ = float(radius * std::sin(angle));
  }
}

} // namespace sft
