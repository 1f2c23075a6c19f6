#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/Philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sft {
namespace {

// The known answers of Random123 1.14 (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  using Bits = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Bits{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Bits{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Bits{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::vector<float> normals(uint64_t seed, const std::string &name, double deviation, int64_t begin,
                           int64_t count) {
  std::vector<float> values(size_t(count), NAN);
  fillRandomNormal(seed, name, deviation, begin, count, values.data());
  return values;
}

TEST(RandomNormal, AnySliceIsPartOfTheWhole) {
  std::vector<float> whole = normals(7, "a.weight", 0.02, 0, 101);
  for (int64_t begin : {0, 1, 2, 50, 99, 100})
    for (int64_t count : {0, 1, 2, 3, 51}) {
      count = std::min(count, 101 - begin);
      EXPECT_EQ(normals(7, "a.weight", 0.02, begin, count),
                std::vector<float>(whole.begin() + begin, whole.begin() + begin + count))
          << begin << " " << count;
    }
}

TEST(RandomNormal, SeedNameAndIndexAllMatter) {
  std::vector<float> values = normals(7, "a.weight", 1, 0, 1000);
  EXPECT_NE(values, normals(8, "a.weight", 1, 0, 1000));
  EXPECT_NE(values, normals(7 + (uint64_t(1) << 32), "a.weight", 1, 0, 1000));
  EXPECT_NE(values, normals(7, "b.weight", 1, 0, 1000));
  EXPECT_NE(values, normals(7, "a.weight", 1, int64_t(1) << 33, 1000));
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
}

TEST(RandomNormal, MomentsAndTailsAreThoseOfANormal) {
  constexpr int64_t count = 1'000'000;
  std::vector<float> values = normals(1, "w", 0.5, 0, count);
  double mean = 0, square = 0, fourth = 0, product = 0;
  int64_t beyondTwo = 0;
  for (int64_t i = 0; i < count; ++i) {
    double z = values[size_t(i)] / 0.5;
    mean += z;
    square += z * z;
    fourth += z * z * z * z;
    beyondTwo += std::abs(z) > 2;
    if (i)
      product += z * values[size_t(i - 1)] / 0.5;
  }
  // Five standard errors each.
  EXPECT_NEAR(mean / count, 0, 5 * 1e-3);
  EXPECT_NEAR(square / count, 1, 5 * 1.4143e-3);
  EXPECT_NEAR(fourth / count, 3, 5 * 9.8e-3);
  EXPECT_NEAR(product / count, 0, 5 * 1e-3);
  EXPECT_NEAR(double(beyondTwo) / count, 0.0455003, 5 * 2.1e-4);
}

} // namespace
} // namespace sft
