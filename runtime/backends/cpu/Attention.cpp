// Deals the blocks of attention to the pool; AttentionTasks.cpp does the work of a block.

#include "runtime/backends/cpu/AttentionTasks.h"
#include "runtime/backends/cpu/Cpu.h"
#include "runtime/backends/cpu/Scratch.h"

#include "runtime/base/Error.h"

#include <cstring>
#include <limits>

using namespace sft;
using namespace sft::cpu;

namespace {

const AttentionFunctions &attentionFunctions() {
  static const AttentionFunctions &chosen = __builtin_cpu_supports("x86-64-v4") ? attentionAvx512
                                            : __builtin_cpu_supports("x86-64-v3")
                                                ? attentionAvx2
                                                : attentionBaseline;
  return chosen;
}

int64_t blocksOf(int64_t rows) { return (rows + kAttentionBlock - 1) / kAttentionBlock; }

class AttentionKernel : public BoundKernel {
public:
  explicit AttentionKernel(const KernelCall &call)
      : launch_(call), functions_(attentionFunctions()) {
    const AttentionLaunch &at = launch_;
    operands_.q = at.q.as<float>();
    operands_.k = at.k.as<float>();
    operands_.v = at.v.as<float>();
    operands_.o = at.o.as<float>();
    operands_.lse = at.lse.as<float>();
    operands_.dout = at.dout.as<float>();
    operands_.delta = static_cast<float *>(call.workspace);
    operands_.dq = at.dq.as<float>();
    operands_.dk = at.dk.as<float>();
    operands_.dv = at.dv.as<float>();
    operands_.qColumns = at.heads * at.headDim;
    operands_.kvColumns = at.kvHeads * at.headDim;
    operands_.heads = at.heads;
    operands_.group = at.heads / at.kvHeads;
    operands_.headDim = at.headDim;
    operands_.scale = at.scale;
    operands_.causal = at.causal;
    queryBlocks_.reserve(size_t(blocksOf(at.qRows) + at.rangeCapacity));
    keyBlocks_.reserve(size_t(blocksOf(at.kvRows) + at.rangeCapacity));
    reserveScratch(size_t(attentionScratchFloats(at.headDim)) * sizeof(float));
  }

  void run(WorkerPool &pool) override {
    prepareRows(pool);
    // Squares lie apart from each other and run together. Rectangles of one call may share rows of
    // K and V, so they follow one another.
    AttentionRange range;
    for (int64_t index = 0; launch_.range(index, range); ++index) {
      addBlocks(queryBlocks_, range, range.qRows);
      addBlocks(keyBlocks_, range, range.kvRows);
      if (!launch_.causal)
        runBlocks(pool);
    }
    runBlocks(pool);
  }

private:
  static void addBlocks(std::vector<AttentionTask> &list, const AttentionRange &range,
                        int64_t rows) {
    for (int64_t block = 0; block < blocksOf(rows); ++block)
      list.push_back({range.qRow, range.qRows, range.kvRow, range.kvRows, 0, block});
  }

  /// Rows in no range get their values here; delta is made for the gradients.
  void prepareRows(WorkerPool &pool) {
    const AttentionLaunch &at = launch_;
    const AttentionOperands &p = operands_;
    if (!at.gradient && !at.causal)
      return;
    forEachBlock(pool, std::max(at.qRows, at.gradient ? at.kvRows : 0), kAttentionBlock,
                 [&](int64_t begin, int64_t end) {
                   int64_t qBegin = std::min(begin, at.qRows), qEnd = std::min(end, at.qRows);
                   int64_t kvBegin = std::min(begin, at.kvRows), kvEnd = std::min(end, at.kvRows);
                   if (at.gradient)
                     functions_.delta(p, qBegin, qEnd);
                   if (!at.causal)
                     return;
                   if (at.gradient) {
                     std::fill(p.dq + qBegin * p.qColumns, p.dq + qEnd * p.qColumns, 0.0f);
                     std::fill(p.dk + kvBegin * p.kvColumns, p.dk + kvEnd * p.kvColumns, 0.0f);
                     std::fill(p.dv + kvBegin * p.kvColumns, p.dv + kvEnd * p.kvColumns, 0.0f);
                   } else {
                     std::fill(p.o + qBegin * p.qColumns, p.o + qEnd * p.qColumns, 0.0f);
                     std::fill(p.lse + qBegin * p.heads, p.lse + qEnd * p.heads,
                               -std::numeric_limits<float>::infinity());
                   }
                 });
  }

  /// Runs the listed blocks of all heads, the long ones first, and clears the lists.
  void runBlocks(WorkerPool &pool) {
    int64_t queryTasks = int64_t(queryBlocks_.size()) * launch_.heads;
    int64_t keyTasks = launch_.gradient ? int64_t(keyBlocks_.size()) * launch_.kvHeads : 0;
    pool.forEach(keyTasks + queryTasks, [&](int64_t index, int) {
      float *scratch = static_cast<float *>(threadScratch());
      if (index < keyTasks) {
        AttentionTask task = keyBlocks_[size_t(index / launch_.kvHeads)];
        task.head = index % launch_.kvHeads;
        return functions_.gradKeys(operands_, task, scratch);
      }
      index -= keyTasks;
      // A causal block is the longer the later it stands.
      AttentionTask task = queryBlocks_[queryBlocks_.size() - 1 - size_t(index / launch_.heads)];
      task.head = index % launch_.heads;
      (launch_.gradient ? functions_.gradQueries : functions_.forward)(operands_, task, scratch);
    });
    queryBlocks_.clear();
    keyBlocks_.clear();
  }

  AttentionLaunch launch_;
  const AttentionFunctions &functions_;
  AttentionOperands operands_;
  std::vector<AttentionTask> queryBlocks_, keyBlocks_;
};

void checkAttention(const KernelCall &call) {
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.operands[i].dtype != DType::I32)
      requireDType(call, i, {DType::F32});
  AttentionLaunch launch(call);
  if (launch.headDim % 8)
    fail("cannot run ", call.kernel, " (", call.location, "): head_dim ", launch.headDim,
         "; the cpu backend takes multiples of 8");
  if (launch.gradient)
    requireWorkspace(call, launch.lse.bytes());
}

} // namespace

void cpu::registerAttention(KernelRegistry &registry) {
  for (const char *name : {"square", "rectangle", "square_grad", "rectangle_grad"})
    registry.add({name, checkAttention, [](const KernelCall &call) -> std::unique_ptr<BoundKernel> {
                    return std::make_unique<AttentionKernel>(call);
                  }});
}
