//===- AttentionTasks.h - the inner work of blocked attention -----------------===//
//
// Attention in tiles with an online softmax (Dao et al. 2022, FlashAttention). One task is one
// block of rows of one head, and no two tasks write the same element, so tasks may run in any order
// and on any thread without changing a bit.
//
// AttentionTasks.cpp is compiled once for each instruction set below and selected at run time. It
// may include nothing but this header and built-in headers: an inline function compiled for AVX-512
// could be the copy that the linker keeps for everybody.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_BACKENDS_CPU_ATTENTIONTASKS_H
#define RUNTIME_BACKENDS_CPU_ATTENTIONTASKS_H

#include <stdint.h>

namespace sft::cpu {

/// Rows of a block of queries and of a block of keys: the unit in which work is dealt to threads.
inline constexpr int64_t kAttentionBlock = 64;

/// The operands of one call. Rows of q, o, dout and dq have qColumns elements, rows of k, v, dk and
/// dv kvColumns; lse and delta have `heads` elements a row.
struct AttentionOperands {
  const float *q, *k, *v, *dout;
  float *o, *lse, *delta, *dq, *dk, *dv;
  int64_t qColumns, kvColumns, heads, group, headDim; ///< group: query heads that read one kv head
  float scale;
  bool causal;
};

/// q rows [qRow, qRow + qRows) attend to kv rows [kvRow, kvRow + kvRows); one block of one head of
/// it.
struct AttentionTask {
  int64_t qRow, qRows, kvRow, kvRows;
  int64_t head;  ///< query head, or kv head for gradKeys
  int64_t block; ///< number of the block of q rows, or of kv rows for gradKeys
};

struct AttentionFunctions {
  /// Writes o and lse (square), or merges into them by log-sum-exp (rectangle).
  void (*forward)(const AttentionOperands &, const AttentionTask &, float *scratch);
  /// delta = rowsum(dout * o) for q rows [rowBegin, rowEnd), every head.
  void (*delta)(const AttentionOperands &, int64_t rowBegin, int64_t rowEnd);
  /// Writes dq (square) or adds to it (rectangle).
  void (*gradQueries)(const AttentionOperands &, const AttentionTask &, float *scratch);
  /// Writes dk and dv (square) or adds to them (rectangle); the sum runs over the query heads of
  /// the group, then over q blocks.
  void (*gradKeys)(const AttentionOperands &, const AttentionTask &, float *scratch);
};

/// Floats of scratch that a task needs: six tiles of a block by headDim, two of a block by a block,
/// four rows of statistics.
inline int64_t attentionScratchFloats(int64_t headDim) {
  return 6 * kAttentionBlock * headDim + 2 * kAttentionBlock * kAttentionBlock +
         4 * kAttentionBlock;
}

extern const AttentionFunctions attentionBaseline, attentionAvx2, attentionAvx512;

} // namespace sft::cpu

#endif // RUNTIME_BACKENDS_CPU_ATTENTIONTASKS_H
