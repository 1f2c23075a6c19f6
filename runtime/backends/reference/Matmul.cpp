#include "runtime/backends/reference/Reference.h"

using namespace sft;
using namespace sft::reference;

namespace {

void checkMatmul(const KernelCall &call) {
  checkDTypes(call);
  MatmulLaunch launch(call);
}

void runMatmul(const KernelCall &call, WorkerPool &pool) {
  MatmulLaunch m(call);
  pool.forEach(m.rows, [&](int64_t row, int) {
    std::vector<double> sums(size_t(m.columns), 0.0);
    for (int64_t k = 0; k < m.inner; ++k) {
      double a = load(m.a, m.transposeA ? k * m.rows + row : row * m.inner + k);
      for (int64_t column = 0; column < m.columns; ++column)
        sums[size_t(column)] +=
            a * load(m.b, m.transposeB ? column * m.inner + k : k * m.columns + column);
    }
    for (int64_t column = 0; column < m.columns; ++column) {
      double sum = sums[size_t(column)];
      if (m.bias.present())
        sum += load(m.bias, column);
      if (m.accumulate)
        sum += load(m.c, row * m.columns + column);
      store(m.c, row * m.columns + column, sum);
    }
  });
}

} // namespace

void reference::registerMatmul(KernelRegistry &registry) {
  registry.add(functionKernel("matmul", checkMatmul, runMatmul));
}
