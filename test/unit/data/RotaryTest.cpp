#include "runtime/data/Data.h"
#include "test/unit/TestFiles.h"

#include <cmath>
#include <cstring>

namespace sft {
namespace {

constexpr int64_t rows = 131072;

struct Table {
  int64_t width;
  std::vector<float> cosine, sine;
  Table(const RotaryParameters &parameters, int64_t rows)
      : width(parameters.head_dim), cosine(size_t(rows * width)), sine(size_t(rows * width)) {
    fillRotaryTable(parameters, rows, cosine.data(), sine.data());
  }
  float cos(int64_t row, int64_t j) const { return cosine[size_t(row * width + j)]; }
  float sin(int64_t row, int64_t j) const { return sine[size_t(row * width + j)]; }
};

RotaryParameters defaultParameters() { return {.theta = 10000, .head_dim = 16}; }
RotaryParameters linearParameters() {
  return {.rope_type = "linear", .theta = 10000, .factor = 8, .head_dim = 16};
}
RotaryParameters llama3Parameters() {
  return {.rope_type = "llama3",
          .theta = 500000,
          .factor = 32,
          .low_freq_factor = 1,
          .high_freq_factor = 4,
          .original_max_position_embeddings = 8192,
          .head_dim = 64};
}

// inv_freq of LlamaRotaryEmbedding for these parameters (transformers 5.24.0, PyTorch 2.15.0), bit
// for bit.
const std::vector<float> defaultFrequencies = {0x1p0f,          0x1.43d136p-2f, 0x1.99999ap-4f,
                                               0x1.030dc6p-5f,  0x1.47ae14p-7f, 0x1.9e7c7p-9f,
                                               0x1.0624dep-10f, 0x1.4b96cp-12f};
const std::vector<float> linearFrequencies = {0x1p-3f,         0x1.43d136p-5f,  0x1.99999ap-7f,
                                              0x1.030dc6p-8f,  0x1.47ae14p-10f, 0x1.9e7c7p-12f,
                                              0x1.0624dep-13f, 0x1.4b96cp-15f};
const std::vector<float> llama3Frequencies = {
    0x1p0f,          0x1.53c38cp-1f,  0x1.c2ef78p-2f,  0x1.2b3dc6p-2f,  0x1.8d276p-3f,
    0x1.078d4p-3f,   0x1.5dc95ap-4f,  0x1.d03ccep-5f,  0x1.34119p-5f,   0x1.98de92p-6f,
    0x1.0f5386p-6f,  0x1.681adap-7f,  0x1.ddee9ep-8f,  0x1.3d2804p-8f,  0x1.a4ee4p-9f,
    0x1.524f36p-10f, 0x1.c26c4p-12f,  0x1.9731eep-14f, 0x1.46831ap-16f, 0x1.b15902p-17f,
    0x1.1f91fp-17f,  0x1.7da9e8p-18f, 0x1.fa8b86p-19f, 0x1.5024d6p-19f, 0x1.be2188p-20f,
    0x1.280d96p-20f, 0x1.88ec2p-21f,  0x1.04be68p-21f, 0x1.5a0f4ep-22f, 0x1.cb4a9ap-23f,
    0x1.30c94ep-23f, 0x1.94836p-24f};

/// At large positions one bit of a frequency shows in the angle, so equal tables mean equal
/// frequencies.
void expectFrequencies(const RotaryParameters &parameters, const std::vector<float> &frequencies) {
  Table table(parameters, rows);
  int64_t half = parameters.head_dim / 2;
  ASSERT_EQ(int64_t(frequencies.size()), half);
  for (int64_t row : {0, 1, 7, 1000, 65535, 131070, 131071})
    for (int64_t j = 0; j < half; ++j) {
      float angle = frequencies[size_t(j)] * float(row);
      float cosine = float(std::cos(double(angle))), sine = float(std::sin(double(angle)));
      EXPECT_EQ(table.cos(row, j), cosine) << row << " " << j;
      EXPECT_EQ(table.cos(row, j + half), cosine) << row << " " << j;
      EXPECT_EQ(table.sin(row, j), -sine) << row << " " << j;
      EXPECT_EQ(table.sin(row, j + half), sine) << row << " " << j;
    }
}

TEST(RotaryTable, FrequenciesAreThoseOfTransformers) {
  expectFrequencies(defaultParameters(), defaultFrequencies);
  expectFrequencies(linearParameters(), linearFrequencies);
  expectFrequencies(llama3Parameters(), llama3Frequencies);
}

// huggingface/transformers #29285: angles computed in bf16 collapse at large positions.
TEST(RotaryTable, LargePositionsKeepTheirAngles) {
  Table table(llama3Parameters(), rows);
  // cos and sin as PyTorch returns them, columns 1 5 16 20.
  const int64_t columns[] = {1, 5, 16, 20};
  struct {
    int64_t row;
    float cosine[4], sine[4];
  } expected[] = {
      {7,
       {-0.06712962687015533f, 0.6209739446640015f, 0.9999954700469971f, 1.0f},
       {-0.9977442622184753f, 0.7838311791419983f, 0.0030068925116211176f, 5.999179120408371e-05f}},
      {1000,
       {-0.7483618855476379f, -0.9930554032325745f, 0.9091504812240601f, 0.9999632835388184f},
       {-0.6632906794548035f, 0.11764776706695557f, 0.4164678156375885f, 0.008570150472223759f}},
      {131071,
       {0.7326388955116272f, -0.9996256232261658f, 0.9698352217674255f, 0.43269893527030945f},
       {0.6806175708770752f, 0.027359958738088608f, -0.24376142024993896f, 0.9015384912490845f}},
  };
  for (const auto &e : expected)
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(table.cos(e.row, columns[i]), e.cosine[i], 1e-6) << e.row << " " << columns[i];
      EXPECT_NEAR(table.sin(e.row, columns[i] + 32), e.sine[i], 1e-6) << e.row << " " << columns[i];
    }
  for (int64_t row = 1; row < rows; ++row)
    ASSERT_NE(std::memcmp(&table.cosine[size_t(row * 64)], &table.cosine[size_t((row - 1) * 64)],
                          64 * sizeof(float)),
              0)
        << row;
}

TEST(RotaryTable, RotatesPairs) {
  Table table({.theta = 1, .head_dim = 4}, 3); // one radian a position
  float x[] = {0.5f, 2, -1, 3};
  for (int64_t j = 0; j < 4; ++j) {
    float rotated = x[j] * table.cos(2, j) + x[(j + 2) % 4] * table.sin(2, j);
    double real = x[j % 2], imaginary = x[j % 2 + 2];
    double expected = j < 2 ? real * std::cos(2.0) - imaginary * std::sin(2.0)
                            : real * std::sin(2.0) + imaginary * std::cos(2.0);
    EXPECT_NEAR(rotated, expected, 1e-6);
  }
}

// NVIDIA/Megatron-LM #6305: a scaling factor that was read and then not used.
TEST(RotaryTable, FactorMatters) {
  for (RotaryParameters parameters : {linearParameters(), llama3Parameters()}) {
    Table before(parameters, 10);
    parameters.factor *= 2;
    EXPECT_NE(before.sine, Table(parameters, 10).sine) << parameters.rope_type;
  }
}

TEST(RotaryTable, WrongParametersAreErrors) {
  auto expectError = [](RotaryParameters parameters, std::initializer_list<std::string> parts) {
    test::expectError([&] { fillRotaryTable(parameters, 0, nullptr, nullptr); }, parts);
  };
  expectError({.rope_type = "yarn", .head_dim = 16},
              {"unknown rope_type", "yarn;", "default, linear or llama3"});
  expectError({.head_dim = 15}, {"head_dim", "15", "even"});
  expectError({.theta = 0, .head_dim = 16}, {"rope_theta"});
  expectError({.rope_type = "linear", .factor = 0, .head_dim = 16}, {"factor", "above 0"});
  RotaryParameters llama3 = llama3Parameters();
  llama3.original_max_position_embeddings = 0;
  expectError(llama3, {"original_max_position_embeddings"});
  llama3 = llama3Parameters();
  llama3.high_freq_factor = 1;
  expectError(llama3, {"high_freq_factor"});
}

} // namespace
} // namespace sft
