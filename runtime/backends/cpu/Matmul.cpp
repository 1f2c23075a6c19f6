// Cuts c into tiles of a fixed size, each one oneDNN call on one thread, so the bits do not depend
// on the number of threads.

#include "runtime/backends/cpu/Cpu.h"
#include "runtime/backends/cpu/Onednn.h"
#include "runtime/backends/cpu/Scratch.h"

using namespace sft;
using namespace sft::cpu;

namespace {

/// Measured on SmolLM2's shapes: per core as fast as the whole product in one call, and small
/// enough to balance.
constexpr int64_t kTileRows = 256, kTileColumns = 384;

class MatmulKernel : public BoundKernel {
public:
  explicit MatmulKernel(const KernelCall &call)
      : m_(call), rowTiles_((m_.rows + kTileRows - 1) / kTileRows),
        columnTiles_((m_.columns + kTileColumns - 1) / kTileColumns),
        lastRows_(m_.rows - (rowTiles_ - 1) * kTileRows),
        lastColumns_(m_.columns - (columnTiles_ - 1) * kTileColumns) {
    products_.reserve(4);
    for (int64_t rows : {std::min(kTileRows, m_.rows), lastRows_})
      for (int64_t columns : {std::min(kTileColumns, m_.columns), lastColumns_}) {
        products_.emplace_back(shapeOf(rows, columns));
        reserveScratch(products_.back().scratchBytes());
      }
  }

  void run(WorkerPool &pool) override {
    size_t aBytes = dtypeBytes(m_.a.dtype), bBytes = dtypeBytes(m_.b.dtype),
           cBytes = dtypeBytes(m_.c.dtype);
    pool.forEach(rowTiles_ * columnTiles_, [&](int64_t tile, int) {
      // Neighbours share columns of op(b), usually the larger operand.
      int64_t rowTile = tile % rowTiles_, columnTile = tile / rowTiles_;
      int64_t row = rowTile * kTileRows, column = columnTile * kTileColumns;
      const Product &product =
          products_[size_t(rowTile == rowTiles_ - 1) * 2 + size_t(columnTile == columnTiles_ - 1)];
      const char *bias = m_.bias.as<char>();
      product.run(m_.a.as<char>() + size_t(row * shape_.aRowStride) * aBytes,
                  m_.b.as<char>() + size_t(column * shape_.bColumnStride) * bBytes,
                  bias ? bias + size_t(column) * dtypeBytes(m_.bias.dtype) : nullptr,
                  m_.c.as<char>() + size_t(row * m_.columns + column) * cBytes, threadScratch());
    });
  }

private:
  ProductShape shapeOf(int64_t rows, int64_t columns) {
    shape_ = {rows,
              columns,
              m_.inner,
              m_.transposeA ? 1 : m_.inner,
              m_.transposeA ? m_.rows : 1,
              m_.transposeB ? 1 : m_.columns,
              m_.transposeB ? m_.inner : 1,
              m_.columns,
              m_.a.dtype,
              m_.b.dtype,
              m_.bias.dtype,
              m_.c.dtype,
              m_.bias.present(),
              m_.accumulate};
    return shape_;
  }

  MatmulLaunch m_;
  int64_t rowTiles_, columnTiles_, lastRows_, lastColumns_;
  ProductShape shape_;
  std::vector<Product>
      products_; ///< whole tile, tile at the right edge, at the lower edge, in the corner
};

void checkMatmul(const KernelCall &call) {
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.operands[i].present())
      requireDType(call, i, {DType::F32, DType::BF16});
  MatmulLaunch launch(call);
  requireDType(call, 1, {launch.a.dtype});
}

} // namespace

void cpu::registerMatmul(KernelRegistry &registry) {
  registry.add({"matmul", checkMatmul, [](const KernelCall &call) -> std::unique_ptr<BoundKernel> {
                  return std::make_unique<MatmulKernel>(call);
                }});
}
