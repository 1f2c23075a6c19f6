#include "runtime/data/Data.h"
#include "test/unit/TestFiles.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace sft {
namespace {

using Ints = std::vector<int32_t>;

/// Documents whose ids count up over all of them; every token but the first of a document is
/// trained.
Dataset datasetOf(const std::vector<int64_t> &lengths) {
  Dataset dataset;
  int32_t id = 0;
  for (int64_t length : lengths) {
    Sample sample;
    for (int64_t i = 0; i < length; ++i) {
      sample.input_ids.push_back(id++);
      sample.weights.push_back(i > 0);
    }
    dataset.samples.push_back(sample);
  }
  return dataset;
}

Pack wholePack(const Dataset &dataset) {
  Pack pack;
  pack.documents.resize(dataset.samples.size());
  std::iota(pack.documents.begin(), pack.documents.end(), 0);
  return pack;
}

TokenLayout layoutOf(int64_t paddedTokens, int ranks, bool zigzag, int64_t maxDocuments = 64) {
  return {.padded_tokens = paddedTokens,
          .ranks = ranks,
          .zigzag = zigzag,
          .max_documents = maxDocuments};
}

Ints table(const std::string &kind, const PackRows &rows, const TokenLayout &layout, int rank,
           int64_t entries, bool whole = false) {
  Ints out(size_t(entries), 12345);
  fillTable(kind, whole, rows, layout, rank, out.data(), out.size() * sizeof(int32_t));
  return out;
}
Ints rowTable(const std::string &kind, const PackRows &rows, const TokenLayout &layout, int rank) {
  return table(kind, rows, layout, rank, layout.rows());
}
Ints squares(const PackRows &rows, const TokenLayout &layout, int rank) {
  return table("squares", rows, layout, rank, 3 * squaresCapacity(layout));
}
Ints rectangles(const PackRows &rows, const TokenLayout &layout, int rank) {
  return table("rectangles", rows, layout, rank, 4 * rectanglesCapacity(layout));
}

TEST(LayOutPack, PaddingTargetsAndShares) {
  Dataset dataset = datasetOf({3, 1, 2});
  dataset.samples[0].weights = {0, 0, 0.5f};
  PackRows rows = layOutPack(dataset, {{2, 0, 1}}, 4, layoutOf(8, 1, false));
  EXPECT_EQ(rows.tokens, (Ints{4, 5, 0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(rows.positions, (Ints{0, 1, 0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(rows.documents, (Ints{0, 0, 1, 1, 1, 2, -1, -1}));
  EXPECT_EQ(rows.targets, (Ints{5, -1, -1, 2, -1, -1, -1, -1}));
  EXPECT_EQ(rows.weights, (std::vector<float>{0.25f, 0, 0, 0.125f, 0, 0, 0, 0}));
  EXPECT_EQ(rows.sample_index, (std::vector<int64_t>{2, 2, 0, 0, 0, 1, -1, -1}));
  EXPECT_EQ(rows.sample_token, (Ints{0, 1, 0, 1, 2, 0, 0, 0}));
}

TEST(LayOutPack, WithoutTrainedTokenNothingIsNaN) {
  Dataset dataset = datasetOf({3});
  dataset.samples[0].weights = {0, 0, 0};
  PackRows rows = layOutPack(dataset, wholePack(dataset), 0, layoutOf(4, 1, false));
  EXPECT_EQ(rows.weights, (std::vector<float>(4, 0)));
  EXPECT_EQ(rows.targets, (Ints(4, -1)));
}

TEST(LayOutPack, RefusesWhatDoesNotFit) {
  Dataset dataset = datasetOf({3, 3});
  test::expectError([&] { layOutPack(dataset, wholePack(dataset), 1, layoutOf(5, 1, false)); },
                    {"longer than its 5 rows"});
  test::expectError([&] { layOutPack(dataset, wholePack(dataset), 1, layoutOf(6, 1, false, 1)); },
                    {"2 documents where 1 fit"});
  test::expectError([&] { layOutPack(dataset, wholePack(dataset), 1, layoutOf(6, 2, true)); },
                    {"6 rows over 4 chunks"});
}

// huggingface/transformers #36607: shifting after the cut loses one target per rank.
TEST(FillTable, NoTargetIsLostAtACut) {
  Dataset dataset = datasetOf({8});
  for (int ranks : {1, 2, 4, 8})
    for (bool zigzag : {false, true}) {
      if (zigzag && ranks == 8)
        continue; // 16 chunks need 16 rows
      TokenLayout layout = layoutOf(8, ranks, zigzag);
      PackRows rows = layOutPack(dataset, wholePack(dataset), 7, layout);
      std::vector<std::pair<int32_t, int32_t>> pairs;
      for (int rank = 0; rank < ranks; ++rank) {
        Ints tokens = rowTable("tokens", rows, layout, rank),
             targets = rowTable("targets", rows, layout, rank);
        for (size_t i = 0; i < tokens.size(); ++i)
          if (targets[i] >= 0)
            pairs.emplace_back(tokens[i], targets[i]);
      }
      std::sort(pairs.begin(), pairs.end());
      ASSERT_EQ(pairs.size(), 7u) << ranks;
      for (int32_t i = 0; i < 7; ++i)
        EXPECT_EQ(pairs[size_t(i)], std::pair(i, i + 1));
    }
}

// NVIDIA-BioNeMo/bionemo-recipes #1449: zigzag order and document ends.
TEST(FillTable, TargetsAreShiftedInsideDocumentsBeforeTheCut) {
  Dataset one = datasetOf({8});
  TokenLayout layout = layoutOf(8, 2, true);
  PackRows rows = layOutPack(one, wholePack(one), 7, layout);
  EXPECT_EQ(rowTable("tokens", rows, layout, 0), (Ints{0, 1, 6, 7}));
  EXPECT_EQ(rowTable("targets", rows, layout, 0), (Ints{1, 2, 7, -1}));
  EXPECT_EQ(rowTable("targets", rows, layout, 1), (Ints{3, 4, 5, 6}));

  Dataset two = datasetOf({3, 3});
  TokenLayout single = layoutOf(6, 1, false);
  EXPECT_EQ(rowTable("targets", layOutPack(two, wholePack(two), 4, single), single, 0),
            (Ints{1, 2, -1, 4, 5, -1}));
}

// NVIDIA/Megatron-LM #5243: positions of packed documents under a cut. (There each document is cut
// by itself, here the pack is.)
TEST(FillTable, PositionsAreThoseOfTheRowsDocument) {
  Dataset dataset = datasetOf({4, 4});
  dataset.samples[1].position_ids = {100, 101, 102, 103};
  TokenLayout layout = layoutOf(8, 2, true);
  PackRows rows = layOutPack(dataset, wholePack(dataset), 6, layout);
  EXPECT_EQ(rowTable("positions", rows, layout, 0), (Ints{0, 1, 102, 103}));
  EXPECT_EQ(rowTable("positions", rows, layout, 1), (Ints{2, 3, 100, 101}));

  Dataset longer = datasetOf({4, 12});
  TokenLayout wide = layoutOf(16, 2, true);
  PackRows wideRows = layOutPack(longer, wholePack(longer), 14, wide);
  EXPECT_EQ(rowTable("positions", wideRows, wide, 0), (Ints{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(rowTable("positions", wideRows, wide, 1), (Ints{0, 1, 2, 3, 4, 5, 6, 7}));
}

// PrimeIntellect-ai/prime-rl #2392: boundaries rebuilt after the cut began at 1024 instead of 0.
TEST(FillTable, LocalBoundariesBeginAtZero) {
  TokenLayout layout = layoutOf(2048, 2, false, 2);
  Dataset one = datasetOf({2048});
  PackRows rows = layOutPack(one, wholePack(one), 1, layout);
  EXPECT_EQ(squares(rows, layout, 0), (Ints{0, 0, 1024, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(rectangles(rows, layout, 0), (Ints{-1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(squares(rows, layout, 1), (Ints{0, 1024, 1024, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(rectangles(rows, layout, 1), (Ints{0, 1024, 0, 1024, -1, -1, -1, -1}));

  Dataset two = datasetOf({1500, 548});
  rows = layOutPack(two, wholePack(two), 1, layout);
  EXPECT_EQ(squares(rows, layout, 1), (Ints{0, 1024, 476, 476, 1500, 548, -1, -1, -1}));
  EXPECT_EQ(rectangles(rows, layout, 1), (Ints{0, 476, 0, 1024, -1, -1, -1, -1}));
}

TEST(FillTable, ZigzagSlotsHaveTheirOwnRectangles) {
  Dataset dataset = datasetOf({5, 3});
  TokenLayout layout = layoutOf(8, 2, true, 2);
  PackRows rows = layOutPack(dataset, wholePack(dataset), 1, layout);
  // Rank 0 holds rows 0 1 | 6 7, rank 1 rows 2 3 | 4 5.
  EXPECT_EQ(squares(rows, layout, 0), (Ints{0, 0, 2, 2, 6, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(rectangles(rows, layout, 0), (Ints{2, 2, 5, 1, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(squares(rows, layout, 1), (Ints{0, 2, 2, 2, 4, 1, 3, 5, 1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(rectangles(rows, layout, 1), (Ints{0, 2, 0, 2, 2, 1, 0, 4, -1, -1, -1, -1}));
}

// SandAI-org/MagiAttention #9: padding larger than a rank's share.
TEST(FillTable, RanksOfPaddingHaveEmptyTables) {
  TokenLayout layout = layoutOf(32, 4, false, 2);
  Dataset dataset = datasetOf({9});
  PackRows rows = layOutPack(dataset, wholePack(dataset), 8, layout);
  for (int rank : {2, 3}) {
    EXPECT_EQ(squares(rows, layout, rank), Ints(9, -1));
    EXPECT_EQ(rectangles(rows, layout, rank), Ints(8, -1));
    EXPECT_EQ(rowTable("targets", rows, layout, rank), Ints(8, -1));
    EXPECT_EQ(rowTable("documents", rows, layout, rank), Ints(8, -1));
    EXPECT_EQ(rowTable("embedding_order", rows, layout, rank), Ints(8, -1));
    EXPECT_EQ(table("embedding_segments", rows, layout, rank, 24), Ints(24, -1));
  }
  PackRows empty = layOutPack(dataset, {}, 8, layout); // a rank without a pack
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(squares(empty, layout, rank), Ints(9, -1));
}

/// Squares and rectangles must cover exactly the pairs of the definition of attention, once: the
/// same document (not padding) and position(q) >= position(kv), with q a row of the rank and kv a
/// row of the whole pack.
void checkCoverage(const PackRows &rows, const TokenLayout &layout) {
  int64_t total = layout.padded_tokens;
  Ints kvPositions = table("positions", rows, layout, 0, total, true),
       kvDocuments = table("documents", rows, layout, 0, total, true);
  for (int rank = 0; rank < layout.ranks; ++rank) {
    std::vector<int> cover(size_t(layout.rows() * total), 0);
    Ints squareList = squares(rows, layout, rank), rectangleList = rectangles(rows, layout, rank);
    size_t at = 0;
    for (; squareList[at] >= 0; at += 3)
      for (int64_t i = 0; i < squareList[at + 2]; ++i)
        for (int64_t j = 0; j <= i; ++j)
          ++cover.at(size_t((squareList[at] + i) * total + squareList[at + 1] + j));
    for (; at < squareList.size(); ++at)
      ASSERT_EQ(squareList[at], -1);
    at = 0;
    for (; rectangleList[at] >= 0; at += 4)
      for (int64_t i = 0; i < rectangleList[at + 1]; ++i)
        for (int64_t j = 0; j < rectangleList[at + 3]; ++j)
          ++cover.at(size_t((rectangleList[at] + i) * total + rectangleList[at + 2] + j));
    for (; at < rectangleList.size(); ++at)
      ASSERT_EQ(rectangleList[at], -1);
    Ints positions = rowTable("positions", rows, layout, rank),
         documents = rowTable("documents", rows, layout, rank);
    for (int64_t q = 0; q < layout.rows(); ++q)
      for (int64_t kv = 0; kv < total; ++kv) {
        bool sees = documents[size_t(q)] >= 0 && documents[size_t(q)] == kvDocuments[size_t(kv)] &&
                    positions[size_t(q)] >= kvPositions[size_t(kv)];
        ASSERT_EQ(cover[size_t(q * total + kv)], int(sees))
            << "rank " << rank << " row " << q << " kv " << kv;
      }
  }
}

TEST(FillTable, SquaresAndRectanglesCoverAttentionOnce) {
  std::mt19937 random(7);
  int64_t cases = 0;
  for (int ranks : {1, 2, 3, 4, 8})
    for (bool zigzag : {false, true})
      for (int trial = 0; trial < 12; ++trial) {
        std::vector<int64_t> lengths(1 + random() % 8);
        for (int64_t &length : lengths)
          length = 1 + random() % 50;
        Dataset dataset = datasetOf(lengths);
        for (Sample &sample : dataset.samples)
          if (random() % 3 == 0)
            for (size_t i = 0; i < sample.input_ids.size(); ++i)
              sample.position_ids.push_back(int32_t(100 + 3 * i));
        int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t(0)),
                multiple = 2 * ranks;
        // Least padding, and enough of it that whole ranks hold nothing else.
        int64_t extra = trial % 3 == 0 ? tokens : 0;
        int64_t padded = (tokens + extra + multiple - 1) / multiple * multiple;
        TokenLayout layout = layoutOf(padded, ranks, zigzag, int64_t(lengths.size()));
        SCOPED_TRACE(testing::Message()
                     << "ranks " << ranks << " zigzag " << zigzag << " trial " << trial);
        checkCoverage(layOutPack(dataset, wholePack(dataset), 1, layout), layout);
        if (HasFatalFailure())
          return;
        ++cases;
      }
  EXPECT_EQ(cases, 120);
}

// NVIDIA/TransformerEngine #1930: a real length of 7 was rounded down to 6.
TEST(FillTable, EveryLengthIsCoveredToItsLastToken) {
  for (int64_t length = 1; length <= 16; ++length)
    for (int ranks : {2, 4})
      for (bool zigzag : {false, true}) {
        Dataset dataset = datasetOf({4, length});
        TokenLayout layout = layoutOf((4 + length + 7) / 8 * 8, ranks, zigzag, 2);
        checkCoverage(layOutPack(dataset, wholePack(dataset), 1, layout), layout);
      }
}

TEST(FillTable, EmbeddingOrderIsSortedAndStable) {
  Dataset dataset = datasetOf({5, 4});
  dataset.samples[0].input_ids = {7, 0, 7, 3, 0};
  dataset.samples[1].input_ids = {3, 3, 9, 0};
  TokenLayout layout = layoutOf(12, 1, false);
  PackRows rows = layOutPack(dataset, wholePack(dataset), 1, layout);
  EXPECT_EQ(rowTable("embedding_order", rows, layout, 0),
            (Ints{1, 4, 8, 3, 5, 6, 0, 2, 7, -1, -1, -1}));
  Ints segments = table("embedding_segments", rows, layout, 0, 36);
  segments.resize(15);
  EXPECT_EQ(segments, (Ints{0, 0, 3, 3, 3, 6, 7, 6, 8, 9, 8, 9, -1, -1, -1}));

  TokenLayout cut = layoutOf(12, 3, true); // rank 0 holds rows 0 1 | 10 11, rank 2 rows 4 5 | 6 7
  EXPECT_EQ(rowTable("embedding_order", rows, cut, 0), (Ints{1, 0, -1, -1}));
  EXPECT_EQ(rowTable("embedding_order", rows, cut, 2), (Ints{0, 1, 2, 3}));
}

TEST(FillTable, SlotPermutationUndoesAnAllGather) {
  for (int ranks : {1, 2, 3, 4, 8})
    for (bool zigzag : {false, true}) {
      TokenLayout layout = layoutOf(48, ranks, zigzag);
      Dataset dataset = datasetOf({48});
      PackRows rows = layOutPack(dataset, wholePack(dataset), 1, layout);
      Ints gathered;
      for (int rank = 0; rank < ranks; ++rank) {
        Ints part = rowTable("tokens", rows, layout, rank);
        gathered.insert(gathered.end(), part.begin(), part.end());
      }
      Ints permutation = table("slot_permutation", rows, layout, 0, ranks * layout.slots(), true);
      Ints restored;
      for (int32_t slot : permutation)
        restored.insert(restored.end(), gathered.begin() + slot * layout.slotRows(),
                        gathered.begin() + (slot + 1) * layout.slotRows());
      EXPECT_EQ(restored, rows.tokens) << ranks << zigzag;
    }
  TokenLayout four = layoutOf(8, 4, true);
  EXPECT_EQ(table("slot_permutation", PackRows(), four, 0, 8), (Ints{0, 2, 4, 6, 7, 5, 3, 1}));
}

TEST(FillTable, WholeTablesAreInGlobalOrder) {
  Dataset dataset = datasetOf({5, 3});
  TokenLayout layout = layoutOf(8, 2, true);
  PackRows rows = layOutPack(dataset, wholePack(dataset), 4, layout);
  for (int rank : {0, 1}) {
    EXPECT_EQ(table("positions", rows, layout, rank, 8, true), rows.positions);
    Ints list = table("squares", rows, layout, rank, 9, true);
    EXPECT_EQ(list, (Ints{0, 0, 5, 5, 5, 3, -1, -1, -1}));
  }
  std::vector<float> weights(8);
  fillTable("weights", true, rows, layout, 1, weights.data(), 32);
  EXPECT_EQ(weights, rows.weights);
}

TEST(FillTable, WrongSizesAndNamesAreErrors) {
  Dataset dataset = datasetOf({2, 2});
  TokenLayout layout = layoutOf(4, 1, false);
  PackRows rows = layOutPack(dataset, wholePack(dataset), 1, layout);
  test::expectError([&] { table("tokens", rows, layout, 0, 3); },
                    {"table size (tokens)", "4 rows"});
  test::expectError([&] { table("squares", rows, layout, 0, 5); }, {"table too small (squares)"});
  test::expectError([&] { table("embedding_order", rows, layout, 0, 3); },
                    {"table too small (embedding_order)"});
  test::expectError([&] { table("token", rows, layout, 0, 4); },
                    {"unknown table (plan): token;", "tokens, positions"});
}

} // namespace
} // namespace sft
