#include "runtime/base/Error.h"
#include "runtime/data/Data.h"

#include <cmath>
#include <numbers>

namespace sft {

namespace {

// The formulas of transformers' modeling_rope_utils.py, in its order and with its fp32 roundings.
// PyTorch computes `scalar / tensor` as reciprocal times scalar.

/// 1.0 / theta ** (arange(0, d, 2).float() / d)
std::vector<float> defaultFrequencies(const RotaryParameters &parameters) {
  std::vector<float> frequencies;
  for (int64_t i = 0; i < parameters.head_dim; i += 2) {
    float exponent = float(i) / float(parameters.head_dim);
    float power = float(std::pow(double(float(parameters.theta)), double(exponent)));
    frequencies.push_back(1.0f / power);
  }
  return frequencies;
}

/// _compute_llama3_parameters: long wavelengths are slowed by the factor, short ones kept, those
/// between blended.
float llama3Frequency(float frequency, const RotaryParameters &parameters) {
  float context = float(parameters.original_max_position_embeddings);
  float factor = float(parameters.factor);
  float low = float(parameters.low_freq_factor);
  float longest = float(double(context) / parameters.low_freq_factor);
  float shortest = float(double(context) / parameters.high_freq_factor);
  float wavelength = (1.0f / frequency) * float(2 * std::numbers::pi);
  if (wavelength > longest)
    return frequency / factor;
  if (wavelength < shortest)
    return frequency;
  float smooth = (1.0f / wavelength) * context;
  smooth -= low;
  smooth /= float(parameters.high_freq_factor - parameters.low_freq_factor);
  // One rounding a statement: no fused multiply-add.
  float slowed = (1.0f - smooth) * frequency;
  slowed /= factor;
  float kept = smooth * frequency;
  return slowed + kept;
}

std::vector<float> frequenciesOf(const RotaryParameters &parameters) {
  std::vector<float> frequencies = defaultFrequencies(parameters);
  if (parameters.rope_type == "default")
    return frequencies;
  if (!(parameters.factor > 0))
    fail("rotary factor (rope_parameters): ", parameters.factor, "; above 0");
  if (parameters.rope_type == "linear") {
    for (float &frequency : frequencies)
      frequency /= float(parameters.factor);
  } else if (parameters.rope_type == "llama3") {
    if (parameters.original_max_position_embeddings <= 0)
      fail("original_max_position_embeddings (rope_parameters): ",
           parameters.original_max_position_embeddings, "; llama3 needs a length above 0");
    if (!(parameters.low_freq_factor > 0 &&
          parameters.high_freq_factor > parameters.low_freq_factor))
      fail("high_freq_factor (rope_parameters): ", parameters.high_freq_factor,
           "; above low_freq_factor ", parameters.low_freq_factor, ", which is above 0");
    for (float &frequency : frequencies)
      frequency = llama3Frequency(frequency, parameters);
  } else {
    fail("unknown rope_type (rope_parameters): ", parameters.rope_type,
         "; default, linear or llama3");
  }
  return frequencies;
}

} // namespace

void fillRotaryTable(const RotaryParameters &parameters, int64_t rows, float *cosine, float *sine) {
  if (parameters.head_dim <= 0 || parameters.head_dim % 2 != 0)
    fail("head_dim (rotary embedding): ", parameters.head_dim, "; an even number above 0");
  if (!(parameters.theta > 0))
    fail("rope_theta (rope_parameters): ", parameters.theta, "; above 0");
  std::vector<float> frequencies = frequenciesOf(parameters);
  int64_t half = parameters.head_dim / 2;
  for (int64_t row = 0; row < rows; ++row, cosine += 2 * half, sine += 2 * half) {
    for (int64_t j = 0; j < half; ++j) {
      float angle = frequencies[size_t(j)] * float(row);
      cosine[j] = cosine[j + half] = float(std::cos(double(angle)));
      sine[j + half] = float(std::sin(double(angle)));
      sine[j] = -sine[j + half];
    }
  }
}

} // namespace sft
