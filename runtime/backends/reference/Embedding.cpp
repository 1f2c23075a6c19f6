#include "runtime/backends/reference/Reference.h"

using namespace sft;
using namespace sft::reference;

namespace {

void checkEmbedding(const KernelCall &call) {
  checkDTypes(call);
  EmbeddingLaunch launch(call);
}

void runEmbedding(const KernelCall &call, WorkerPool &) {
  EmbeddingLaunch e(call);
  if (!e.accumulate)
    for (int64_t i = 0; i < e.dw.elements(); ++i)
      store(e.dw, i, 0);
  int64_t row, begin, end;
  for (int64_t index = 0; e.segment(index, row, begin, end); ++index)
    for (int64_t column = 0; row >= 0 && column < e.width; ++column) {
      double sum = load(e.dw, row * e.width + column);
      for (int64_t i = begin; i < end; ++i)
        sum += load(e.dy, e.order.as<int32_t>()[i] * e.width + column);
      store(e.dw, row * e.width + column, sum);
    }
}

} // namespace

void reference::registerEmbedding(KernelRegistry &registry) {
  registry.add(functionKernel("embedding_grad", checkEmbedding, runEmbedding));
}
