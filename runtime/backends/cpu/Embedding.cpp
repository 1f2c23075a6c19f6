#include "runtime/backends/cpu/Cpu.h"

using namespace sft;
using namespace sft::cpu;

namespace {

constexpr int64_t kSegmentBlock = 16; ///< tokens of one piece of work
constexpr int64_t kClearedRows = 256;    ///< rows of dw that are cleared together
constexpr int64_t kColumns = 64;      ///< columns that are summed together

void checkEmbedding(const KernelCall &call) {
  requireDType(call, 0, {DType::F32});
  requireDType(call, 4, {DType::F32});
  EmbeddingLaunch launch(call);
}

/// dw[row] += the rows of dy, in fp64 and in their order.
void addSegment(const EmbeddingLaunch &e, int64_t row, int64_t begin, int64_t end) {
  for (int64_t first = 0; first < e.width; first += kColumns) {
    int64_t columns = std::min(kColumns, e.width - first);
    double sums[kColumns] = {};
    for (int64_t i = begin; i < end; ++i) {
      const float *dy = e.dy.as<float>() + e.order.as<int32_t>()[i] * e.width + first;
      for (int64_t column = 0; column < columns; ++column)
        sums[column] += double(dy[column]);
    }
    float *dw = e.dw.as<float>() + row * e.width + first;
    for (int64_t column = 0; column < columns; ++column)
      dw[column] = float(double(dw[column]) + sums[column]);
  }
}

void runEmbedding(const KernelCall &call, WorkerPool &pool) {
  EmbeddingLaunch e(call);
  if (!e.accumulate)
    forEachBlock(pool, e.vocabulary, kClearedRows, [&](int64_t begin, int64_t end) {
      std::fill(e.dw.as<float>() + begin * e.width, e.dw.as<float>() + end * e.width, 0.0f);
    });
  // Each token has one segment, so segments write different rows. The list ends somewhere inside
  // its capacity.
  forEachBlock(pool, e.segmentCapacity, kSegmentBlock, [&](int64_t first, int64_t last) {
    int64_t row, begin, end;
    for (int64_t index = first; index < last && e.segment(index, row, begin, end); ++index)
      if (row >= 0)
        addSegment(e, row, begin, end);
  });
}

} // namespace

void cpu::registerEmbedding(KernelRegistry &registry) {
  registry.add(functionKernel("embedding_grad", checkEmbedding, runEmbedding));
}
