#include "runtime/base/Error.h"
#include "runtime/data/Data.h"

#include <algorithm>
#include <utility>

namespace sft {

namespace {

void checkLayout(const TokenLayout &layout) {
  int64_t chunks = int64_t(layout.ranks) * layout.slots();
  if (layout.ranks < 1 || layout.padded_tokens < 0 || layout.padded_tokens % chunks != 0)
    failInternal("token layout does not divide: ", layout.padded_tokens, " rows over ", chunks,
                 " chunks");
}

/// A table that is a list of rows, filled up with -1.
class ListTable {
public:
  ListTable(const std::string &kind, void *out, size_t bytes)
      : kind_(kind), next_(static_cast<int32_t *>(out)), end_(next_ + bytes / sizeof(int32_t)) {}
  template <typename... Values> void add(Values... values) {
    if (size_t(end_ - next_) < sizeof...(values))
      failInternal("table too small (", kind_, ")");
    ((*next_++ = int32_t(values)), ...);
  }
  void close() { std::fill(next_, end_, -1); }

private:
  const std::string &kind_;
  int32_t *next_, *end_;
};

/// Copies the rank's rows, slot after slot.
template <typename T>
void fillRows(const std::string &kind, const std::vector<T> &source, const TokenLayout &layout,
              int rank, void *out, size_t bytes) {
  if (bytes != size_t(layout.rows()) * sizeof(T) || int64_t(source.size()) != layout.padded_tokens)
    failInternal("table size (", kind, "): ", bytes, " bytes for ", layout.rows(), " rows");
  T *next = static_cast<T *>(out);
  for (int slot = 0; slot < layout.slots(); ++slot)
    next = std::copy_n(source.begin() + layout.slotBegin(rank, slot), layout.slotRows(), next);
}

void fillSquares(const PackRows &rows, const TokenLayout &layout, int rank, ListTable table) {
  for (int slot = 0; slot < layout.slots(); ++slot) {
    int64_t begin = layout.slotBegin(rank, slot), end = begin + layout.slotRows();
    int64_t toLocal = slot * layout.slotRows() - begin;
    for (int64_t part = begin, next; part < end && rows.documents[size_t(part)] >= 0; part = next) {
      next = part;
      while (next < end && rows.documents[size_t(next)] == rows.documents[size_t(part)])
        ++next;
      table.add(part + toLocal, part, next - part);
    }
  }
  table.close();
}

void fillRectangles(const PackRows &rows, const TokenLayout &layout, int rank, ListTable table) {
  for (int slot = 0; slot < layout.slots(); ++slot) {
    int64_t begin = layout.slotBegin(rank, slot), end = begin + layout.slotRows();
    if (begin == end || rows.documents[size_t(begin)] < 0)
      continue;
    int32_t document = rows.documents[size_t(begin)];
    int64_t first = begin, last = begin;
    while (first > 0 && rows.documents[size_t(first - 1)] == document)
      --first;
    while (last < end && rows.documents[size_t(last)] == document)
      ++last;
    if (first < begin)
      table.add(slot * layout.slotRows(), last - begin, first, begin - first);
  }
  table.close();
}

/// The rank's real rows, sorted by token and then by row.
struct EmbeddingOrder {
  std::vector<int32_t> tokens; ///< of the rank's rows
  std::vector<int32_t> order;  ///< local rows

  EmbeddingOrder(const PackRows &rows, const TokenLayout &layout, int rank)
      : tokens(size_t(layout.rows())) {
    std::vector<int32_t> documents(tokens.size());
    fillRows("tokens", rows.tokens, layout, rank, tokens.data(), tokens.size() * sizeof(int32_t));
    fillRows("documents", rows.documents, layout, rank, documents.data(),
             documents.size() * sizeof(int32_t));
    order.reserve(tokens.size());
    for (size_t row = 0; row < tokens.size(); ++row)
      if (documents[row] >= 0)
        order.push_back(int32_t(row));
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return std::pair(tokens[size_t(a)], a) < std::pair(tokens[size_t(b)], b);
    });
  }
};

void fillEmbeddingOrder(const EmbeddingOrder &embedding, ListTable table) {
  for (int32_t row : embedding.order)
    table.add(row);
  table.close();
}

void fillEmbeddingSegments(const EmbeddingOrder &embedding, ListTable table) {
  auto tokenAt = [&](size_t i) { return embedding.tokens[size_t(embedding.order[i])]; };
  for (size_t begin = 0, end; begin < embedding.order.size(); begin = end) {
    end = begin + 1;
    while (end < embedding.order.size() && tokenAt(end) == tokenAt(begin))
      ++end;
    table.add(tokenAt(begin), begin, end);
  }
  table.close();
}

/// An all-gather delivers the slots of rank 0, then those of rank 1, ...: the inverse of
/// TokenLayout::slotBegin.
void fillSlotPermutation(const TokenLayout &layout, ListTable table) {
  int64_t chunks = int64_t(layout.ranks) * layout.slots();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    bool second = chunk >= layout.ranks;
    table.add(second ? 2 * (chunks - 1 - chunk) + 1 : chunk * layout.slots());
  }
  table.close();
}

} // namespace

int64_t squaresCapacity(const TokenLayout &layout) {
  return layout.slots() * layout.max_documents + 1;
}

int64_t rectanglesCapacity(const TokenLayout &layout) { return layout.slots() + 1; }

PackRows layOutPack(const Dataset &dataset, const Pack &pack, double weightSum,
                    const TokenLayout &layout) {
  checkLayout(layout);
  if (int64_t(pack.documents.size()) > layout.max_documents)
    failInternal("pack of ", pack.documents.size(), " documents where ", layout.max_documents,
                 " fit");
  size_t total = size_t(layout.padded_tokens);
  PackRows rows;
  rows.tokens.assign(total, 0);
  rows.positions.assign(total, 0);
  rows.documents.assign(total, -1);
  rows.targets.assign(total, -1);
  rows.weights.assign(total, 0);
  rows.sample_index.assign(total, -1);
  rows.sample_token.assign(total, 0);
  size_t row = 0;
  for (size_t document = 0; document < pack.documents.size(); ++document) {
    int64_t index = pack.documents[document];
    const Sample &sample = dataset.samples[size_t(index)];
    size_t length = sample.input_ids.size();
    if (length > total - row)
      failInternal("pack longer than its ", total, " rows");
    for (size_t i = 0; i < length; ++i, ++row) {
      rows.tokens[row] = sample.input_ids[i];
      rows.positions[row] = sample.position_ids.empty() ? int32_t(i) : sample.position_ids[i];
      rows.documents[row] = int32_t(document);
      rows.sample_index[row] = index;
      rows.sample_token[row] = int32_t(i);
      if (i + 1 < length && sample.weights[i + 1] > 0) {
        rows.targets[row] = sample.input_ids[i + 1];
        rows.weights[row] = float(sample.weights[i + 1] / weightSum);
      }
    }
  }
  return rows;
}

void fillTable(const std::string &kind, bool whole, const PackRows &rows,
               const TokenLayout &groupLayout, int rank, void *out, size_t bytes) {
  TokenLayout layout = groupLayout;
  if (whole) {
    // All rows in global order are the rows of a group of one rank.
    layout.ranks = 1;
    rank = 0;
  }
  checkLayout(layout);
  ListTable list(kind, out, bytes);
  if (kind == "tokens")
    fillRows(kind, rows.tokens, layout, rank, out, bytes);
  else if (kind == "positions")
    fillRows(kind, rows.positions, layout, rank, out, bytes);
  else if (kind == "documents")
    fillRows(kind, rows.documents, layout, rank, out, bytes);
  else if (kind == "targets")
    fillRows(kind, rows.targets, layout, rank, out, bytes);
  else if (kind == "weights")
    fillRows(kind, rows.weights, layout, rank, out, bytes);
  else if (kind == "squares")
    fillSquares(rows, layout, rank, list);
  else if (kind == "rectangles")
    fillRectangles(rows, layout, rank, list);
  else if (kind == "embedding_order")
    fillEmbeddingOrder(EmbeddingOrder(rows, layout, rank), list);
  else if (kind == "embedding_segments")
    fillEmbeddingSegments(EmbeddingOrder(rows, layout, rank), list);
  else if (kind == "slot_permutation")
    fillSlotPermutation(groupLayout, list);
  else
    fail("unknown table (plan): ", kind,
         "; this build fills tokens, positions, documents, targets, weights, squares, "
         "rectangles, embedding_order, embedding_segments and slot_permutation");
}

} // namespace sft
