// Compiled with -DSFT_ATTENTION=attentionBaseline|Avx2|Avx512 and the matching -march; see
// AttentionTasks.h for what may be included.
//
// All tiles lie so that the query index (forward, gradQueries) or the key index (gradKeys) runs
// along vector lanes: scores are made transposed, so that the softmax needs no operation across
// lanes and no tile is transposed inside the loop.

#include "runtime/backends/cpu/AttentionTasks.h"

#include <math.h>

namespace sft::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16, kMicroRows = 8;
#elif defined(__AVX__)
constexpr int kLanes = 8, kMicroRows = 4;
#else
constexpr int kLanes = 4, kMicroRows = 4;
#endif
constexpr int kMicroColumns = 2 * kLanes;
constexpr int64_t kBlock = kAttentionBlock;

using Vector = float __attribute__((vector_size(kLanes * 4)));
using IntVector = int32_t __attribute__((vector_size(kLanes * 4)));

inline Vector loadVector(const float *from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
inline void storeVector(float *to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }
inline Vector splat(float value) {
  return value - Vector{};
} // x - 0 is x, also for -0: a plain broadcast
inline IntVector splatInt(int32_t value) { return value - IntVector{}; }
inline Vector maxVector(Vector a, Vector b) { return a > b ? a : b; }
inline IntVector laneNumbers() {
  IntVector lanes;
  for (int i = 0; i < kLanes; ++i)
    lanes[i] = i;
  return lanes;
}

inline int64_t minimum(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// exp(x) to about 1 ulp for x <= 88; 0 below the smallest normal number; NaN stays NaN. x = n ln 2
/// + r with |r| <= ln 2 / 2, and the coefficients of Cephes' expf for exp(r).
inline Vector expVector(Vector x) {
  const float magic =
      12582912.0f; // 1.5 * 2^23: adding it rounds to an integer, held in the low bits
  Vector shifted = x * 1.44269504088896341f + magic;
  Vector n = shifted - magic;
  Vector r = x - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  Vector p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n by its exponent bits; unsigned, so that rubbish in padding lanes wraps.
  using UnsignedVector = uint32_t __attribute__((vector_size(kLanes * 4)));
  UnsignedVector bits = ((UnsignedVector)shifted + 127u) << 23;
  Vector result = p * (Vector)bits;
  return x < -87.3f ? Vector{} : result;
}

/// What a product does to the tile it is written to.
enum class Into { Overwrite, Add, ScaleColumnsAndAdd };

/// How the left factor of a product lies: rows one after another, or its transpose.
enum class Left { Rows, Transposed };

/// c[kMicroRows, kMicroColumns] = a * b over `inner`, in registers; rows of a (or of its transpose)
/// are aStride apart. Not inlined: each copy in a caller would be scheduled worse than this one.
template <Into into, Left left>
__attribute__((noinline)) void microProduct(int64_t inner, const float *a, int64_t aStride,
                                            const float *b, float *c, const float *columnScale) {
  Vector sums[kMicroRows][2] = {};
  for (int64_t k = 0; k < inner; ++k) {
    Vector b0 = loadVector(b + k * kBlock), b1 = loadVector(b + k * kBlock + kLanes);
#pragma clang loop unroll(full)
    for (int m = 0; m < kMicroRows; ++m) {
      Vector factor = splat(left == Left::Rows ? a[m * aStride + k] : a[k * aStride + m]);
      sums[m][0] += factor * b0;
      sums[m][1] += factor * b1;
    }
  }
#pragma clang loop unroll(full)
  for (int m = 0; m < kMicroRows; ++m)
#pragma clang loop unroll(full)
    for (int half = 0; half < 2; ++half) {
      float *to = c + m * kBlock + half * kLanes;
      if constexpr (into == Into::Overwrite)
        storeVector(to, sums[m][half]);
      else if constexpr (into == Into::Add)
        storeVector(to, loadVector(to) + sums[m][half]);
      else
        storeVector(to, loadVector(to) * loadVector(columnScale + half * kLanes) + sums[m][half]);
    }
}

/// c[rows, columns] = a[rows, inner] * b[inner, columns]; rows of b and c are kBlock apart. rows is
/// a multiple of kMicroRows, columns of kMicroColumns.
template <Into into, Left left>
inline void product(int64_t rows, int64_t columns, int64_t inner, const float *a, int64_t aStride,
                    const float *b, float *c, const float *columnScale = nullptr) {
  for (int64_t n = 0; n < columns; n += kMicroColumns)
    for (int64_t m = 0; m < rows; m += kMicroRows)
      microProduct<into, left>(inner, left == Left::Rows ? a + m * aStride : a + m, aStride, b + n,
                               c + m * kBlock + n, columnScale ? columnScale + n : nullptr);
}

/// tile[row][j] = from[row * stride + j], rows [0, rows) and zeros up to paddedRows. Copying keeps
/// rows that lie a power of two apart from evicting each other from the cache.
inline void loadTile(float *tile, const float *from, int64_t stride, int64_t rows,
                     int64_t paddedRows, int64_t headDim) {
  for (int64_t row = 0; row < rows; ++row)
    __builtin_memcpy(tile + row * headDim, from + row * stride, size_t(headDim) * 4);
  __builtin_memset(tile + rows * headDim, 0, size_t((paddedRows - rows) * headDim) * 4);
}

/// tile[j][row] = from[row * stride + j]; zeros in columns rows..kBlock.
inline void loadTransposed(float *tile, const float *from, int64_t stride, int64_t rows,
                           int64_t headDim) {
  for (int64_t j = 0; j < headDim; ++j) {
    for (int64_t row = 0; row < rows; ++row)
      tile[j * kBlock + row] = from[row * stride + j];
    for (int64_t row = rows; row < kBlock; ++row)
      tile[j * kBlock + row] = 0;
  }
}

/// to[row * stride + j] (+)= factor * tile[j][row].
inline void storeTransposed(float *to, int64_t stride, const float *tile, int64_t rows,
                            int64_t headDim, float factor, bool add) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t j = 0; j < headDim; ++j)
      to[row * stride + j] = (add ? to[row * stride + j] : 0.0f) + factor * tile[j * kBlock + row];
}

/// to[row] = from[row * stride]; zeros in rows..kBlock.
inline void loadStatistics(float *to, const float *from, int64_t stride, int64_t rows) {
  for (int64_t row = 0; row < kBlock; ++row)
    to[row] = row < rows ? from[row * stride] : 0.0f;
}

/// Hands out parts of the scratch.
class Scratch {
public:
  explicit Scratch(float *base) : next_(base) {}
  float *take(int64_t floats) {
    float *part = next_;
    next_ += floats;
    return part;
  }

private:
  float *next_;
};

/// Turns a tile of scores into weights relative to the running maximum and updates maximum and sum;
/// `rescale` is what earlier sums have to be multiplied by. scores[j][i]: key j of the tile, query
/// i; hidden where j > i + lastVisible.
template <bool masked>
inline void onlineSoftmax(float *scores, int64_t keys, int64_t columns, int64_t lastVisible,
                          float scale, float *maximum, float *sum, float *rescale) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    IntVector last = laneNumbers() + int32_t(i + lastVisible);
    Vector before = loadVector(maximum + i), now = before;
    for (int64_t j = 0; j < keys; ++j) {
      Vector score = loadVector(scores + j * kBlock + i) * scale;
      if constexpr (masked)
        score = splatInt(int32_t(j)) > last ? splat(-INFINITY) : score;
      storeVector(scores + j * kBlock + i, score);
      now = maxVector(now, score);
    }
    Vector factor = expVector(before - now), total = loadVector(sum + i) * factor;
    for (int64_t j = 0; j < keys; ++j) {
      Vector weight = expVector(loadVector(scores + j * kBlock + i) - now);
      storeVector(scores + j * kBlock + i, weight);
      total += weight;
    }
    storeVector(maximum + i, now);
    storeVector(sum + i, total);
    storeVector(rescale + i, factor);
  }
}

void forward(const AttentionOperands &at, const AttentionTask &task, float *scratchBase) {
  const int64_t dim = at.headDim, first = task.block * kBlock,
                rows = minimum(kBlock, task.qRows - first), columns = roundUp(rows, kMicroColumns),
                kvHead = task.head / at.group;
  Scratch scratch(scratchBase);
  float *queries = scratch.take(kBlock * dim), *keys = scratch.take(kBlock * dim),
        *values = scratch.take(kBlock * dim);
  float *output = scratch.take(kBlock * dim), *scores = scratch.take(kBlock * kBlock);
  float *top = scratch.take(kBlock), *sum = scratch.take(kBlock), *rescale = scratch.take(kBlock);
  loadTransposed(queries, at.q + (task.qRow + first) * at.qColumns + task.head * dim, at.qColumns,
                 rows, dim);
  __builtin_memset(output, 0, size_t(kBlock * dim) * 4);
  for (int64_t i = 0; i < kBlock; ++i) {
    top[i] = -INFINITY;
    sum[i] = 0;
  }
  const int64_t end = at.causal ? first + rows : task.kvRows;
  for (int64_t from = 0; from < end; from += kBlock) {
    const int64_t count = minimum(kBlock, end - from), padded = roundUp(count, kMicroRows);
    const int64_t offset = (task.kvRow + from) * at.kvColumns + kvHead * dim;
    loadTile(keys, at.k + offset, at.kvColumns, count, padded, dim);
    loadTile(values, at.v + offset, at.kvColumns, count, count, dim);
    product<Into::Overwrite, Left::Rows>(padded, columns, dim, keys, dim, queries, scores);
    if (at.causal && from + count > first)
      onlineSoftmax<true>(scores, count, columns, first - from, at.scale, top, sum, rescale);
    else
      onlineSoftmax<false>(scores, count, columns, 0, at.scale, top, sum, rescale);
    product<Into::ScaleColumnsAndAdd, Left::Transposed>(dim, columns, count, values, dim, scores,
                                                        output, rescale);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t qRow = task.qRow + first + row;
    float *to = at.o + qRow * at.qColumns + task.head * dim,
          *lse = at.lse + qRow * at.heads + task.head;
    const float inverse = 1.0f / sum[row], newLse = top[row] + logf(sum[row]);
    if (at.causal) {
      for (int64_t j = 0; j < dim; ++j)
        to[j] = output[j * kBlock + row] * inverse;
      *lse = newLse;
      continue;
    }
    // Both partials are weighted relative to the larger one, so nothing overflows; an empty earlier
    // partial (-inf) counts nothing.
    if (end == 0)
      continue;
    const float oldLse = *lse, larger = oldLse > newLse ? oldLse : newLse;
    const float oldWeight = expf(oldLse - larger), newWeight = expf(newLse - larger);
    const float total = oldWeight + newWeight, newFactor = newWeight / total * inverse,
                oldFactor = oldWeight / total;
    for (int64_t j = 0; j < dim; ++j)
      to[j] = (oldFactor == 0 ? 0.0f : oldFactor * to[j]) + output[j * kBlock + row] * newFactor;
    *lse = larger + logf(total);
  }
}

void delta(const AttentionOperands &at, int64_t rowBegin, int64_t rowEnd) {
  using Four = float __attribute__((vector_size(16)));
  using FourDoubles = double __attribute__((vector_size(32)));
  for (int64_t part = rowBegin * at.heads; part < rowEnd * at.heads; ++part) {
    const float *dout = at.dout + part * at.headDim, *o = at.o + part * at.headDim;
    FourDoubles sums = {};
    for (int64_t j = 0; j < at.headDim; j += 4) {
      Four x, y;
      __builtin_memcpy(&x, dout + j, 16);
      __builtin_memcpy(&y, o + j, 16);
      sums += __builtin_convertvector(x, FourDoubles) * __builtin_convertvector(y, FourDoubles);
    }
    at.delta[part] = float((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
}

/// dS / scale = P * (dP - delta) of one tile, in dP's place, with P = exp(scale * S - lse). scores
/// and grads hold key j in row j and query i in column i; hidden where j > i + lastVisible.
template <bool masked>
inline void scoreGradByColumn(const float *scores, float *grads, int64_t keys, int64_t columns,
                              int64_t lastVisible, float scale, const float *lse,
                              const float *delta) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    IntVector last = laneNumbers() + int32_t(i + lastVisible);
    Vector lses = loadVector(lse + i), deltas = loadVector(delta + i);
    for (int64_t j = 0; j < keys; ++j) {
      Vector weight = expVector(loadVector(scores + j * kBlock + i) * scale - lses);
      if constexpr (masked)
        weight = splatInt(int32_t(j)) > last ? Vector{} : weight;
      storeVector(grads + j * kBlock + i, weight * (loadVector(grads + j * kBlock + i) - deltas));
    }
  }
}

/// The same with query i in row i and key j in column j; P is kept, in S's place.
template <bool masked>
inline void scoreGradByRow(float *scores, float *grads, int64_t queries, int64_t columns,
                           int64_t lastVisible, float scale, const float *lse, const float *delta) {
  for (int64_t i = 0; i < queries; ++i) {
    IntVector last = splatInt(int32_t(i + lastVisible));
    for (int64_t j = 0; j < columns; j += kLanes) {
      Vector weight = expVector(loadVector(scores + i * kBlock + j) * scale - lse[i]);
      if constexpr (masked)
        weight = laneNumbers() + int32_t(j) > last ? Vector{} : weight;
      storeVector(scores + i * kBlock + j, weight);
      storeVector(grads + i * kBlock + j, weight * (loadVector(grads + i * kBlock + j) - delta[i]));
    }
  }
}

void gradQueries(const AttentionOperands &at, const AttentionTask &task, float *scratchBase) {
  const int64_t dim = at.headDim, first = task.block * kBlock,
                rows = minimum(kBlock, task.qRows - first), columns = roundUp(rows, kMicroColumns),
                kvHead = task.head / at.group;
  Scratch scratch(scratchBase);
  float *queries = scratch.take(kBlock * dim), *douts = scratch.take(kBlock * dim),
        *grad = scratch.take(kBlock * dim);
  float *keys = scratch.take(kBlock * dim), *values = scratch.take(kBlock * dim);
  float *scores = scratch.take(kBlock * kBlock), *scoreGrads = scratch.take(kBlock * kBlock);
  float *lse = scratch.take(kBlock), *deltas = scratch.take(kBlock);
  const int64_t qOffset = (task.qRow + first) * at.qColumns + task.head * dim;
  const int64_t statistics = (task.qRow + first) * at.heads + task.head;
  loadTransposed(queries, at.q + qOffset, at.qColumns, rows, dim);
  loadTransposed(douts, at.dout + qOffset, at.qColumns, rows, dim);
  loadStatistics(lse, at.lse + statistics, at.heads, rows);
  loadStatistics(deltas, at.delta + statistics, at.heads, rows);
  __builtin_memset(grad, 0, size_t(kBlock * dim) * 4);
  const int64_t end = at.causal ? first + rows : task.kvRows;
  for (int64_t from = 0; from < end; from += kBlock) {
    const int64_t count = minimum(kBlock, end - from), padded = roundUp(count, kMicroRows);
    const int64_t offset = (task.kvRow + from) * at.kvColumns + kvHead * dim;
    loadTile(keys, at.k + offset, at.kvColumns, count, padded, dim);
    loadTile(values, at.v + offset, at.kvColumns, count, padded, dim);
    product<Into::Overwrite, Left::Rows>(padded, columns, dim, keys, dim, queries, scores);
    product<Into::Overwrite, Left::Rows>(padded, columns, dim, values, dim, douts, scoreGrads);
    if (at.causal && from + count > first)
      scoreGradByColumn<true>(scores, scoreGrads, count, columns, first - from, at.scale, lse,
                              deltas);
    else
      scoreGradByColumn<false>(scores, scoreGrads, count, columns, 0, at.scale, lse, deltas);
    product<Into::Add, Left::Transposed>(dim, columns, count, keys, dim, scoreGrads, grad);
  }
  storeTransposed(at.dq + qOffset, at.qColumns, grad, rows, dim, at.scale, !at.causal);
}

void gradKeys(const AttentionOperands &at, const AttentionTask &task, float *scratchBase) {
  const int64_t dim = at.headDim, first = task.block * kBlock,
                rows = minimum(kBlock, task.kvRows - first), columns = roundUp(rows, kMicroColumns);
  Scratch scratch(scratchBase);
  float *keys = scratch.take(kBlock * dim), *values = scratch.take(kBlock * dim);
  float *keyGrad = scratch.take(kBlock * dim), *valueGrad = scratch.take(kBlock * dim);
  float *queries = scratch.take(kBlock * dim), *douts = scratch.take(kBlock * dim);
  float *scores = scratch.take(kBlock * kBlock), *scoreGrads = scratch.take(kBlock * kBlock);
  float *lse = scratch.take(kBlock), *deltas = scratch.take(kBlock);
  const int64_t kvOffset = (task.kvRow + first) * at.kvColumns + task.head * dim;
  loadTransposed(keys, at.k + kvOffset, at.kvColumns, rows, dim);
  loadTransposed(values, at.v + kvOffset, at.kvColumns, rows, dim);
  __builtin_memset(keyGrad, 0, size_t(kBlock * dim) * 4);
  __builtin_memset(valueGrad, 0, size_t(kBlock * dim) * 4);
  for (int64_t head = task.head * at.group; head < (task.head + 1) * at.group; ++head)
    for (int64_t from = at.causal ? first : 0; from < task.qRows; from += kBlock) {
      const int64_t count = minimum(kBlock, task.qRows - from), padded = roundUp(count, kMicroRows);
      const int64_t offset = (task.qRow + from) * at.qColumns + head * dim;
      const int64_t statistics = (task.qRow + from) * at.heads + head;
      loadTile(queries, at.q + offset, at.qColumns, count, padded, dim);
      loadTile(douts, at.dout + offset, at.qColumns, count, padded, dim);
      loadStatistics(lse, at.lse + statistics, at.heads, count);
      loadStatistics(deltas, at.delta + statistics, at.heads, count);
      product<Into::Overwrite, Left::Rows>(padded, columns, dim, queries, dim, keys, scores);
      product<Into::Overwrite, Left::Rows>(padded, columns, dim, douts, dim, values, scoreGrads);
      if (at.causal && from < first + rows)
        scoreGradByRow<true>(scores, scoreGrads, count, columns, from - first, at.scale, lse,
                             deltas);
      else
        scoreGradByRow<false>(scores, scoreGrads, count, columns, 0, at.scale, lse, deltas);
      product<Into::Add, Left::Transposed>(dim, columns, count, douts, dim, scores, valueGrad);
      product<Into::Add, Left::Transposed>(dim, columns, count, queries, dim, scoreGrads, keyGrad);
    }
  storeTransposed(at.dk + kvOffset, at.kvColumns, keyGrad, rows, dim, at.scale, !at.causal);
  storeTransposed(at.dv + kvOffset, at.kvColumns, valueGrad, rows, dim, 1.0f, !at.causal);
}

} // namespace

extern const AttentionFunctions SFT_ATTENTION = {forward, delta, gradQueries, gradKeys};

} // namespace sft::cpu
