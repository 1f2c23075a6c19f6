//===- DType.h - element types of buffers -----------------------------------===//
#ifndef RUNTIME_BASE_DTYPE_H
#define RUNTIME_BASE_DTYPE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sft {

/// Element type of a buffer. The values are stored in plan files: append only.
enum class DType : uint8_t { F32 = 0, BF16 = 1, I32 = 2, F16 = 3, F64 = 4, I64 = 5, U8 = 6 };

/// Bytes of one element.
size_t dtypeBytes(DType dtype);

/// "f32", "bf16", "i32", ...
std::string_view dtypeName(DType dtype);

/// The inverse of dtypeName; nothing for an unknown name.
std::optional<DType> parseDType(std::string_view name);

/// bf16 is stored as its 16 bits.
inline float bf16ToFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, 4);
  return value;
}

/// Rounds to nearest even; a NaN stays a NaN.
inline uint16_t floatToBf16(float value) {
  uint32_t wide;
  __builtin_memcpy(&wide, &value, 4);
  if ((wide & 0x7fffffffu) > 0x7f800000u)
    return uint16_t((wide >> 16) | 0x40u);
  return uint16_t((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
}

} // namespace sft

#endif // RUNTIME_BASE_DTYPE_H
