// Runs generated row kernels over blocks of rows and adds up their column sums in block order.

#include "runtime/backends/cpu/Cpu.h"

#include "runtime/base/Error.h"

using namespace sft;
using namespace sft::cpu;

namespace {

constexpr int64_t kColumnBlock = 256; ///< columns whose partial sums are added together

class RowKernel : public BoundKernel {
public:
  explicit RowKernel(const KernelCall &call)
      : launch_(call), function_(call.row_function),
        partials_(static_cast<float *>(call.workspace)) {
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const TensorRef &operand = call.operands[i];
      pointers_.push_back(operand.data);
      if (launch_.isColumnSum(i)) {
        sums_.push_back({i, operand.elements(), partialWidth_, operand.as<float>()});
        partialWidth_ += operand.elements();
      }
    }
    if (pointers_.size() > kMaximumOperands)
      failInternal("row kernel with ", pointers_.size(), " operands; at most ", kMaximumOperands);
  }

  void run(WorkerPool &pool) override {
    pool.forEach(launch_.blocks, [&](int64_t block, int) {
      int64_t begin = block * launch_.blockRows,
              end = std::min(launch_.rows, begin + launch_.blockRows);
      if (sums_.empty())
        return function_(pointers_.data(), begin, end);
      void *pointers[kMaximumOperands];
      std::copy(pointers_.begin(), pointers_.end(), pointers);
      for (const Sum &sum : sums_)
        pointers[sum.operand] = partials_ + block * partialWidth_ + sum.offset;
      function_(pointers, begin, end);
    });
    for (const Sum &sum : sums_)
      forEachBlock(pool, sum.width, kColumnBlock,
                   [&](int64_t begin, int64_t end) { addPartials(sum, begin, end); });
  }

private:
  static constexpr size_t kMaximumOperands = 64; ///< one bit each in column_sums

  struct Sum {
    size_t operand;
    int64_t width, offset; ///< of its partial sums inside those of a block
    float *to;
  };

  void addPartials(const Sum &sum, int64_t begin, int64_t end) const {
    double totals[kColumnBlock] = {};
    for (int64_t block = 0; block < launch_.blocks; ++block) {
      const float *partial = partials_ + block * partialWidth_ + sum.offset + begin;
      for (int64_t column = 0; column < end - begin; ++column)
        totals[column] += double(partial[column]);
    }
    for (int64_t column = 0; column < end - begin; ++column)
      sum.to[begin + column] = float(totals[column]);
  }

  RowLaunch launch_;
  RowFunction function_;
  float *partials_;
  int64_t partialWidth_ = 0; ///< floats of all partial sums of one block
  std::vector<void *> pointers_;
  std::vector<Sum> sums_;
};

void checkRows(const KernelCall &call) {
  RowLaunch launch(call);
  if (!call.row_function)
    fail("cannot run a row kernel (", call.location,
         "): its generated code is missing; compile the plan for this CPU");
  size_t width = 0;
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (launch.isColumnSum(i))
      width += size_t(call.operands[i].elements());
  requireWorkspace(call, size_t(launch.blocks) * width * sizeof(float));
}

} // namespace

void cpu::registerRows(KernelRegistry &registry) {
  registry.add(
      {"row_kernel", checkRows, [](const KernelCall &call) -> std::unique_ptr<BoundKernel> {
         return std::make_unique<RowKernel>(call);
       }});
}
