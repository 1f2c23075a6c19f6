// Attention written out: P = softmax(scale * Q K^T), O = P V, one query row at a time.
//
// Gradients, with delta = rowsum(dO * O) (Dao et al. 2022, FlashAttention, appendix B):
//   P = exp(scale * Q K^T - lse)   dV = P^T dO   dP = dO V^T   dS = P * (dP - delta)   dQ = scale *
//   dS K   dK = scale * dS^T Q

#include "runtime/backends/reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sft;
using namespace sft::reference;

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// Inner product of head `xHead` of row `xRow` of x with head `yHead` of row `yRow` of y.
double dot(const AttentionLaunch &at, const TensorRef &x, int64_t xRow, int64_t xHead,
           const TensorRef &y, int64_t yRow, int64_t yHead) {
  double sum = 0;
  for (int64_t j = 0; j < at.headDim; ++j)
    sum += load(x, xRow * x.shape[1] + xHead * at.headDim + j) *
           load(y, yRow * y.shape[1] + yHead * at.headDim + j);
  return sum;
}

/// kv rows that row i of the range sees.
int64_t visible(const AttentionLaunch &at, const AttentionRange &range, int64_t i) {
  return at.causal ? i + 1 : range.kvRows;
}

/// One query row and head: merges softmax attention over the range into what o and lse hold.
void attendRow(const AttentionLaunch &at, const AttentionRange &range, int64_t i, int64_t head) {
  int64_t row = range.qRow + i, kvHead = head / (at.heads / at.kvHeads),
          count = visible(at, range, i);
  std::vector<double> scores(static_cast<size_t>(count));
  double oldLse = load(at.lse, row * at.heads + head), maximum = oldLse;
  for (int64_t j = 0; j < count; ++j) {
    scores[size_t(j)] = at.scale * dot(at, at.q, row, head, at.k, range.kvRow + j, kvHead);
    maximum = std::max(maximum, scores[size_t(j)]);
  }
  if (maximum == kMinusInfinity)
    return;
  double oldWeight = std::exp(oldLse - maximum), sum = oldWeight;
  for (double &score : scores)
    sum += score = std::exp(score - maximum);
  for (int64_t d = 0; d < at.headDim; ++d) {
    int64_t column = row * at.q.shape[1] + head * at.headDim + d;
    double value = oldWeight == 0 ? 0 : oldWeight * load(at.o, column);
    for (int64_t j = 0; j < count; ++j)
      value += scores[size_t(j)] *
               load(at.v, (range.kvRow + j) * at.k.shape[1] + kvHead * at.headDim + d);
    store(at.o, column, value / sum);
  }
  store(at.lse, row * at.heads + head, maximum + std::log(sum));
}

void runForward(const KernelCall &call, WorkerPool &pool) {
  AttentionLaunch at(call);
  if (at.causal) {
    for (int64_t i = 0; i < at.o.elements(); ++i)
      store(at.o, i, 0);
    for (int64_t i = 0; i < at.lse.elements(); ++i)
      store(at.lse, i, kMinusInfinity);
  }
  AttentionRange range;
  for (int64_t index = 0; at.range(index, range); ++index)
    pool.forEach(range.qRows * at.heads, [&](int64_t task, int) {
      attendRow(at, range, task / at.heads, task % at.heads);
    });
}

/// All gradients of one kv head and the query heads that read it; dq, dk and dv are fp64 sums over
/// whole tensors.
void gradHead(const AttentionLaunch &at, const AttentionRange &range, int64_t kvHead,
              std::vector<double> &dq, std::vector<double> &dk, std::vector<double> &dv) {
  int64_t group = at.heads / at.kvHeads;
  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
    for (int64_t i = 0; i < range.qRows; ++i) {
      int64_t row = range.qRow + i, qBase = row * at.q.shape[1] + head * at.headDim;
      double delta = dot(at, at.dout, row, head, at.o, row, head);
      for (int64_t j = 0; j < visible(at, range, i); ++j) {
        int64_t kvRow = range.kvRow + j, kvBase = kvRow * at.k.shape[1] + kvHead * at.headDim;
        double p = std::exp(at.scale * dot(at, at.q, row, head, at.k, kvRow, kvHead) -
                            load(at.lse, row * at.heads + head));
        double ds = p * (dot(at, at.dout, row, head, at.v, kvRow, kvHead) - delta) * at.scale;
        for (int64_t d = 0; d < at.headDim; ++d) {
          dq[size_t(qBase + d)] += ds * load(at.k, kvBase + d);
          dk[size_t(kvBase + d)] += ds * load(at.q, qBase + d);
          dv[size_t(kvBase + d)] += p * load(at.dout, qBase + d);
        }
      }
    }
}

void runGradient(const KernelCall &call, WorkerPool &pool) {
  AttentionLaunch at(call);
  auto start = [&](const TensorRef &tensor) {
    std::vector<double> sums(size_t(tensor.elements()), 0.0);
    if (!at.causal)
      for (size_t i = 0; i < sums.size(); ++i)
        sums[i] = load(tensor, int64_t(i));
    return sums;
  };
  std::vector<double> dq = start(at.dq), dk = start(at.dk), dv = start(at.dv);
  AttentionRange range;
  for (int64_t index = 0; at.range(index, range); ++index)
    pool.forEach(at.kvHeads, [&](int64_t kvHead, int) { gradHead(at, range, kvHead, dq, dk, dv); });
  auto finish = [&](const TensorRef &tensor, const std::vector<double> &sums) {
    for (size_t i = 0; i < sums.size(); ++i)
      store(tensor, int64_t(i), sums[i]);
  };
  finish(at.dq, dq);
  finish(at.dk, dk);
  finish(at.dv, dv);
}

void checkAttention(const KernelCall &call) {
  checkDTypes(call);
  AttentionLaunch launch(call);
}

} // namespace

void reference::registerAttention(KernelRegistry &registry) {
  for (const char *name : {"square", "rectangle"})
    registry.add(functionKernel(name, checkAttention, runForward));
  for (const char *name : {"square_grad", "rectangle_grad"})
    registry.add(functionKernel(name, checkAttention, runGradient));
}
