#include "runtime/data/Data.h"
#include "test/unit/TestFiles.h"

#include <numeric>

namespace sft {
namespace {

using test::expectError;

class DatasetTest : public testing::Test {
protected:
  test::TemporaryFolder folder_;
  DatasetOptions options_{.tokens = 64, .vocab_size = 320, .max_positions = 1000};

  /// One line: `prompt` untrained tokens, then `answer` trained ones.
  static std::string line(int64_t prompt, int64_t answer) {
    std::string ids, mask;
    for (int64_t i = 0; i < prompt + answer; ++i) {
      ids += (i ? "," : "") + std::to_string(i % 320);
      mask += (i ? "," : "") + std::string(i < prompt ? "0" : "1");
    }
    return "{\"input_ids\": [" + ids + "], \"loss_mask\": [" + mask + "]}\n";
  }
  Dataset read(const std::string &text, bool keepUntrained = false) {
    return readDataset({folder_.write("data.jsonl", text)}, options_, keepUntrained);
  }
  static std::vector<int64_t> numbers(const Dataset &dataset) {
    std::vector<int64_t> numbers;
    for (const Sample &sample : dataset.samples)
      numbers.push_back(sample.number);
    return numbers;
  }
};

TEST_F(DatasetTest, NumbersRunOverAllFiles) {
  std::string a = folder_.write("a.jsonl", line(1, 3) + line(4, 0) + line(2, 2));
  std::string b = folder_.write("b.jsonl", line(1, 1));
  Dataset dataset = readDataset({a, b}, options_, false);
  EXPECT_EQ(numbers(dataset), (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(dataset.counts.lines, 4);
  EXPECT_EQ(dataset.counts.samples, 3);
  EXPECT_EQ(dataset.counts.untrained, 1);
  EXPECT_EQ(dataset.counts.tokens, 10);
  EXPECT_EQ(dataset.counts.trained_tokens, 6);
}

// sapientinc/HRM-Text #11: answers that are all empty; empty documents are of the same kind.
TEST_F(DatasetTest, EmptyAnswersAndEmptyDocumentsAreCounted) {
  std::string text =
      line(3, 0) + line(3, 2) + line(0, 0) + line(5, 0) + line(1, 0) + line(0, 1) + line(2, 1);
  Dataset dataset = read(text);
  EXPECT_EQ(numbers(dataset), (std::vector<int64_t>{1, 6}));
  EXPECT_EQ(dataset.counts.lines, 7);
  EXPECT_EQ(dataset.counts.empty, 1);
  EXPECT_EQ(dataset.counts.untrained, 4); // one token alone cannot be a target
  Dataset kept = read(text, true);
  EXPECT_EQ(numbers(kept), (std::vector<int64_t>{0, 1, 3, 4, 5, 6}));
  EXPECT_EQ(kept.counts.untrained, 4);
  EXPECT_EQ(kept.counts.trained_tokens, 3);
  EXPECT_TRUE(read(line(3, 0) + line(4, 0) + line(5, 0)).samples.empty());
}

// NVIDIA-NeMo/RL #169: over-long samples need an explicit policy and must be named.
TEST_F(DatasetTest, OverLongSamplesFollowThePolicy) {
  std::string text;
  for (int64_t i = 0; i < 10; ++i)
    text += i == 2 ? line(5, 60) : i == 5 ? line(5, 1059) : i == 7 ? line(5, 100059) : line(10, 54);
  expectError([&] { read(text); },
              {"data.jsonl:3:1: error: sample too long (sample 2): 65 tokens; at most 64",
               "tokens of a pack", "drop or truncate"});

  options_.over_long = OverLong::Drop;
  Dataset dropped = read(text);
  EXPECT_EQ(numbers(dropped), (std::vector<int64_t>{0, 1, 3, 4, 6, 8, 9}));
  EXPECT_EQ(dropped.counts.dropped, 3);
  EXPECT_EQ(dropped.counts.dropped_samples, (std::vector<int64_t>{2, 5, 7}));
  EXPECT_EQ(dropped.counts.tokens, 7 * 64);

  options_.over_long = OverLong::Truncate;
  Dataset truncated = read(text);
  EXPECT_EQ(truncated.samples.size(), 10u);
  EXPECT_EQ(truncated.counts.truncated, 3);
  EXPECT_EQ(truncated.counts.truncated_samples, (std::vector<int64_t>{2, 5, 7}));
  EXPECT_EQ(truncated.counts.tokens, 10 * 64);
  EXPECT_EQ(truncated.counts.trained_tokens, 7 * 54 + 3 * 59);
  for (const Sample &sample : truncated.samples)
    EXPECT_EQ(sample.weights.size(), 64u);
}

// NVIDIA-NeMo/Speech #8025: a prompt longer than the limit leaves no trained token after
// truncation.
TEST_F(DatasetTest, TruncationThatLosesTheAnswerIsUntrained) {
  options_.over_long = OverLong::Truncate;
  Dataset dataset = read(line(5, 10) + line(70, 10) + line(5, 10) + line(5, 10));
  EXPECT_EQ(numbers(dataset), (std::vector<int64_t>{0, 2, 3}));
  EXPECT_EQ(dataset.counts.truncated_samples, (std::vector<int64_t>{1}));
  EXPECT_EQ(dataset.counts.untrained, 1);
  EXPECT_EQ(dataset.counts.trained_tokens, 30);
}

TEST_F(DatasetTest, PositionsStayInsideTheModel) {
  options_.max_positions = 10;
  EXPECT_EQ(read(line(5, 5)).samples.size(), 1u);
  expectError([&] { read(line(5, 6)); },
              {":1:1: error: sample too long", "11 tokens; at most 10", "positions of the model"});
  std::string own = R"({"input_ids": [1, 2, 3], "loss_mask": [0, 1, 1], "position_ids": [0, 8, )";
  EXPECT_EQ(read(own + "9]}").samples[0].position_ids.back(), 9);
  expectError([&] { read(own + "10]}"); },
              {"data.jsonl:1:1: error: position outside the model (sample 0): 10", "below 10"});
  options_.over_long = OverLong::Truncate;
  options_.tokens = 2;
  EXPECT_EQ(read(own + "10]}").samples[0].position_ids, (std::vector<int32_t>{0, 8}));
}

TEST_F(DatasetTest, HashIsOfTheContents) {
  std::string spaced = "{ \"loss_mask\" : [0, 1.0],\t\"input_ids\":[1,2], \"id\": 3 }\r\n";
  std::string plain = R"({"input_ids": [1, 2], "loss_mask": [0, 1]})";
  uint64_t hash = read(plain).hash;
  EXPECT_EQ(read(spaced).hash, hash);
  std::vector<uint64_t> hashes = {hash};
  for (std::string other : {R"({"input_ids": [1, 3], "loss_mask": [0, 1]})",
                            R"({"input_ids": [1, 2], "loss_mask": [0, 2]})",
                            R"({"input_ids": [1, 2], "loss_mask": [0, 1], "position_ids": [0, 2]})",
                            R"({"input_ids": [1, 2, 2], "loss_mask": [0, 1, 1]})"})
    hashes.push_back(read(other).hash);
  hashes.push_back(read(plain + "\n" + plain).hash);
  hashes.push_back(read("").hash);
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

} // namespace
} // namespace sft
