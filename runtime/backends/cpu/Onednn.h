//===- Onednn.h - the only door to oneDNN -------------------------------------===//
#ifndef RUNTIME_BACKENDS_CPU_ONEDNN_H
#define RUNTIME_BACKENDS_CPU_ONEDNN_H

#include "runtime/base/DType.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sft::cpu {

/// c[rows, columns] (+)= a[rows, inner] b[inner, columns] + bias[columns]. Strides are in elements;
/// columns of c are adjacent.
struct ProductShape {
  int64_t rows, columns, inner;
  int64_t aRowStride, aInnerStride, bInnerStride, bColumnStride, cRowStride;
  DType a, b, bias, c;
  bool hasBias, accumulate;
};

/// A product ready to run: always on the calling thread alone, whatever OpenMP is told elsewhere.
/// oneDNN shares the code of equal shapes through its own cache. One object may run on several
/// threads at once.
class Product {
public:
  /// Throws sft::Error when oneDNN has no implementation.
  explicit Product(const ProductShape &shape);
  ~Product();
  Product(Product &&) noexcept;

  size_t scratchBytes() const;
  /// `bias` is not read without hasBias.
  void run(const void *a, const void *b, const void *bias, void *c, void *scratch) const;

private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

} // namespace sft::cpu

#endif // RUNTIME_BACKENDS_CPU_ONEDNN_H
