#include "runtime/base/DType.h"

namespace sft {

namespace {
struct Entry {
  DType dtype;
  std::string_view name;
  size_t bytes;
};
constexpr Entry entries[] = {{DType::F32, "f32", 4}, {DType::BF16, "bf16", 2}, {DType::I32, "i32", 4}, {DType::F16, "f16", 2},
                             {DType::F64, "f64", 8}, {DType::I64, "i64", 8},   {DType::U8, "u8", 1}};
} // namespace

size_t dtypeBytes(DType dtype) { return entries[static_cast<size_t>(dtype)].bytes; }

std::string_view dtypeName(DType dtype) { return entries[static_cast<size_t>(dtype)].name; }

std::optional<DType> parseDType(std::string_view name) {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return entry.dtype;
  return std::nullopt;
}

} // namespace sft
