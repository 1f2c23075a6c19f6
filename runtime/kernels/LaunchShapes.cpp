#include "runtime/kernels/LaunchShapes.h"

#include "runtime/base/Error.h"

using namespace sft;

namespace {

template <typename... Args>
[[noreturn]] void failCall(const KernelCall &call, const Args &...args) {
  fail("cannot run ", call.kernel, " (", call.location, "): ", args...);
}

std::string shapeText(const TensorRef &tensor) {
  std::string text = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

const TensorRef &operandAt(const KernelCall &call, size_t index) {
  if (index >= call.operands.size())
    failCall(call, call.operands.size(), " operands; operand ", index, " is needed");
  return call.operands[index];
}

void requireRank(const KernelCall &call, const char *name, const TensorRef &tensor, size_t rank) {
  if (!tensor.present() || tensor.shape.size() != rank)
    failCall(call, "operand ", name, " has shape ", shapeText(tensor), "; it must be present with ",
             rank, " dimensions");
}

void requireShape(const KernelCall &call, const char *name, const TensorRef &tensor,
                  std::initializer_list<int64_t> shape) {
  TensorRef wanted;
  wanted.shape = shape;
  if (!tensor.present() || tensor.shape != wanted.shape)
    failCall(call, "operand ", name, " has shape ", shapeText(tensor), "; its shape must be ",
             shapeText(wanted));
}

} // namespace

int64_t sft::integerParameter(const KernelCall &call, const std::string &name) {
  auto it = call.integers.find(name);
  if (it == call.integers.end())
    failCall(call, "parameter ", name, " is missing; give it a value");
  return it->second;
}

void sft::requireDType(const KernelCall &call, size_t index, std::initializer_list<DType> dtypes) {
  const TensorRef &tensor = operandAt(call, index);
  std::string choices;
  for (DType dtype : dtypes) {
    if (tensor.dtype == dtype)
      return;
    choices += (choices.empty() ? "" : " or ") + std::string(dtypeName(dtype));
  }
  failCall(call, "operand ", index, " is ", dtypeName(tensor.dtype), "; this backend takes ",
           choices);
}

void sft::requireWorkspace(const KernelCall &call, size_t bytes) {
  if (call.workspace_bytes < bytes || (bytes && !call.workspace))
    failCall(call, "workspace of ", call.workspace_bytes, " bytes; it needs ", bytes);
}

void sft::requireSameElements(const KernelCall &call, size_t first, size_t second) {
  const TensorRef &x = operandAt(call, first), &y = operandAt(call, second);
  if (x.elements() != y.elements())
    failCall(call, "operands ", first, " and ", second, " have shapes ", shapeText(x), " and ",
             shapeText(y), "; they must have the same number of elements");
}

MatmulLaunch::MatmulLaunch(const KernelCall &call)
    : a(operandAt(call, 0)), b(operandAt(call, 1)), bias(operandAt(call, 2)), c(operandAt(call, 3)),
      transposeA(integerParameter(call, "transpose_a")),
      transposeB(integerParameter(call, "transpose_b")),
      accumulate(integerParameter(call, "accumulate")) {
  requireRank(call, "a", a, 2);
  requireRank(call, "b", b, 2);
  requireRank(call, "c", c, 2);
  rows = c.shape[0];
  columns = c.shape[1];
  inner = a.shape[transposeA ? 0 : 1];
  requireShape(call, "a", a,
               transposeA ? std::initializer_list<int64_t>{inner, rows}
                          : std::initializer_list<int64_t>{rows, inner});
  requireShape(call, "b", b,
               transposeB ? std::initializer_list<int64_t>{columns, inner}
                          : std::initializer_list<int64_t>{inner, columns});
  if (bias.present())
    requireShape(call, "bias", bias, {columns});
}

AttentionLaunch::AttentionLaunch(const KernelCall &call) {
  causal = call.kernel.starts_with("square");
  gradient = call.kernel.ends_with("_grad");
  size_t next = 0;
  auto take = [&] { return operandAt(call, next++); };
  if (gradient)
    dout = take();
  q = take();
  k = take();
  v = take();
  if (gradient) {
    o = take();
    lse = take();
    ranges = take();
    dq = take();
    dk = take();
    dv = take();
  } else {
    ranges = take();
    o = take();
    lse = take();
  }
  requireRank(call, "q", q, 2);
  requireRank(call, "k", k, 2);
  requireRank(call, "ranges", ranges, 2);
  qRows = q.shape[0];
  kvRows = k.shape[0];
  headDim = integerParameter(call, "head_dim");
  if (headDim < 1 || q.shape[1] % headDim || k.shape[1] % headDim)
    failCall(call, "head_dim ", headDim, " with q ", shapeText(q), " and k ", shapeText(k),
             "; it must divide their columns");
  heads = q.shape[1] / headDim;
  kvHeads = k.shape[1] / headDim;
  if (kvHeads < 1 || heads % kvHeads)
    failCall(call, heads, " query heads and ", kvHeads,
             " kv heads; the first must be a multiple of the second");
  auto scaleIt = call.floats.find("scale");
  if (scaleIt == call.floats.end())
    failCall(call, "parameter scale is missing; give it a value");
  scale = float(scaleIt->second);
  rangeCapacity = ranges.shape[0];
  requireShape(call, "v", v, {kvRows, k.shape[1]});
  requireShape(call, "ranges", ranges, {rangeCapacity, causal ? 3 : 4});
  requireShape(call, "o", o, {qRows, q.shape[1]});
  requireShape(call, "lse", lse, {qRows, heads});
  if (gradient) {
    requireShape(call, "dout", dout, {qRows, q.shape[1]});
    requireShape(call, "dq", dq, {qRows, q.shape[1]});
    requireShape(call, "dk", dk, {kvRows, k.shape[1]});
    requireShape(call, "dv", dv, {kvRows, k.shape[1]});
  }
}

bool AttentionLaunch::range(int64_t index, AttentionRange &out) const {
  if (index >= rangeCapacity)
    return false;
  const int32_t *entry = ranges.as<int32_t>() + index * ranges.shape[1];
  if (entry[0] < 0)
    return false;
  out = causal ? AttentionRange{entry[0], entry[2], entry[1], entry[2]}
               : AttentionRange{entry[0], entry[1], entry[2], entry[3]};
  if (out.qRows < 0 || out.kvRow < 0 || out.kvRows < 0 || out.qRow + out.qRows > qRows ||
      out.kvRow + out.kvRows > kvRows)
    failInternal("attention range ", index, " covers q rows ", out.qRow, " + ", out.qRows, " of ",
                 qRows, " and kv rows ", out.kvRow, " + ", out.kvRows, " of ", kvRows);
  return true;
}

EmbeddingLaunch::EmbeddingLaunch(const KernelCall &call)
    : dy(operandAt(call, 0)), order(operandAt(call, 1)), segments(operandAt(call, 2)),
      rowOffset(operandAt(call, 3)), dw(operandAt(call, 4)),
      accumulate(integerParameter(call, "accumulate")) {
  requireRank(call, "dy", dy, 2);
  requireRank(call, "dw", dw, 2);
  rows = dy.shape[0];
  width = dy.shape[1];
  vocabulary = dw.shape[0];
  requireShape(call, "embedding_order", order, {rows});
  requireRank(call, "embedding_segments", segments, 2);
  segmentCapacity = segments.shape[0];
  requireShape(call, "embedding_segments", segments, {segmentCapacity, 3});
  requireShape(call, "dw", dw, {vocabulary, width});
}

bool EmbeddingLaunch::segment(int64_t index, int64_t &row, int64_t &begin, int64_t &end) const {
  if (index >= segmentCapacity)
    return false;
  const int32_t *entry = segments.as<int32_t>() + index * 3;
  if (entry[0] < 0)
    return false;
  row = entry[0] - (rowOffset.present() ? *rowOffset.as<int32_t>() : 0);
  if (row < 0 || row >= vocabulary)
    row = -1;
  begin = entry[1];
  end = entry[2];
  if (begin < 0 || end < begin || end > rows)
    failInternal("embedding segment ", index, " covers positions ", begin, " to ", end, " of ",
                 rows);
  for (int64_t i = begin; i < end; ++i)
    if (order.as<int32_t>()[i] < 0 || order.as<int32_t>()[i] >= rows)
      failInternal("embedding_order position ", i, " holds row ", order.as<int32_t>()[i], " of ",
                   rows);
  return true;
}

PermuteLaunch::PermuteLaunch(const KernelCall &call)
    : x(operandAt(call, 0)), permutation(operandAt(call, 1)), y(operandAt(call, 2)),
      inverse(integerParameter(call, "inverse")) {
  requireSameElements(call, 0, 2);
  requireRank(call, "slot_permutation", permutation, 1);
  slots = permutation.shape[0];
  if (x.dtype != y.dtype || slots < 1 || x.elements() % slots)
    failCall(call, slots, " slots of ", dtypeName(x.dtype), " ", shapeText(x), " to ",
             dtypeName(y.dtype), " ", shapeText(y),
             "; the dtypes must agree and the slots divide the elements");
  slotBytes = x.bytes() / size_t(slots);
}

void PermuteLaunch::move(int64_t index, int64_t &from, int64_t &to) const {
  int64_t other = permutation.as<int32_t>()[index];
  if (other < 0 || other >= slots)
    failInternal("slot_permutation entry ", index, " is ", other, " of ", slots, " slots");
  from = inverse ? index : other;
  to = inverse ? other : index;
}

RowLaunch::RowLaunch(const KernelCall &call)
    : rows(integerParameter(call, "rows")), blockRows(integerParameter(call, "block_rows")),
      columnSums(uint64_t(integerParameter(call, "column_sums"))) {
  if (rows < 0 || blockRows < 1)
    failCall(call, "rows ", rows, " in blocks of ", blockRows,
             "; rows are not negative and a block has at least 1");
  blocks = (rows + blockRows - 1) / blockRows;
  for (size_t i = 0; i < 64; ++i)
    if (isColumnSum(i) && (operandAt(call, i).dtype != DType::F32 || !operandAt(call, i).present()))
      failCall(call, "column sum ", i, " is ", dtypeName(operandAt(call, i).dtype),
               "; column sums are f32");
}
