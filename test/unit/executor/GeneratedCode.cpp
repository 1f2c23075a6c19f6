// Row functions with the interface of generated kernels.
#include <cstdint>

extern "C" void double_rows(void *const *operands, int64_t rowBegin, int64_t rowEnd) {
  for (int64_t row = rowBegin; row < rowEnd; ++row)
    static_cast<float *>(operands[1])[row] = 2 * static_cast<const float *>(operands[0])[row];
}
