#include "runtime/data/JsonlReader.h"
#include "test/unit/TestFiles.h"

namespace sft {
namespace {

using test::expectError;

class JsonlReader : public testing::Test {
protected:
  test::TemporaryFolder folder_;
  std::map<std::string, int64_t> ignoredKeys_;

  std::vector<Sample> read(std::string_view text, int64_t vocabSize = 320) {
    std::vector<Sample> samples;
    ignoredKeys_.clear();
    readJsonl(folder_.write("data.jsonl", text), vocabSize, 0, ignoredKeys_,
              [&](int64_t, Sample &&sample) { samples.push_back(std::move(sample)); });
    return samples;
  }
  /// Expects an error whose message begins with the file and `place` ("LINE:COLUMN").
  void expectErrorAt(std::string_view text, const std::string &place,
                     std::initializer_list<std::string> parts) {
    SCOPED_TRACE(std::string(text.substr(0, 200)));
    try {
      read(text);
    } catch (const Error &error) {
      std::string start = folder_.path("data.jsonl") + ":" + place + ": error: ";
      EXPECT_EQ(std::string(error.what()).substr(0, start.size()), start) << error.what();
    }
    expectError([&] { read(text); }, parts);
  }
};

const std::string good = R"({"input_ids": [5, 6, 7], "loss_mask": [0, 1, 1]})"
                         "\n";

TEST_F(JsonlReader, MaskAndLabelsSayTheSame) {
  std::vector<Sample> samples =
      read(R"({"input_ids": [5, 6, 7], "loss_mask": [1, 0, 0.5]})"
           "\n"
           R"({"labels": [5, -100, 7], "input_ids": [5, 6, 7]})"
           "\n"
           R"({"input_ids": [5, 6, 7], "loss_mask": [true, false, true]})");
  ASSERT_EQ(samples.size(), 3u);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(samples[i].number, i);
    EXPECT_EQ(samples[i].input_ids, (std::vector<int32_t>{5, 6, 7}));
    EXPECT_TRUE(samples[i].position_ids.empty());
  }
  // The first token of a document is never a target.
  EXPECT_EQ(samples[0].weights, (std::vector<float>{0, 0, 0.5f}));
  EXPECT_EQ(samples[1].weights, (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(samples[2].weights, (std::vector<float>{0, 0, 1}));
}

TEST_F(JsonlReader, PositionsAttentionMaskAndUnknownKeys) {
  std::vector<Sample> samples = read(
      R"({"id": "a", "messages": [{"input_ids": [1], "n": [[1.5]]}], "input_ids": [1, 2], "loss_mask": [0, 1], )"
      R"("position_ids": [3, 9], "attention_mask": [1, 1]})"
      "\n"
      R"({"id": 7, "input_ids": [], "loss_mask": null, "labels": [], "position_ids": null})");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].position_ids, (std::vector<int32_t>{3, 9}));
  EXPECT_TRUE(samples[1].input_ids.empty());
  EXPECT_EQ(ignoredKeys_, (std::map<std::string, int64_t>{{"id", 2}, {"messages", 1}}));
}

// huggingface/datasets #8241: a byte-order mark changed what was read.
TEST_F(JsonlReader, ByteOrderMarkOnlyAtTheStart) {
  EXPECT_EQ(read("\xEF\xBB\xBF" + good)[0].input_ids, read(good)[0].input_ids);
  EXPECT_EQ(read(good + good).size(), 2u);
  expectErrorAt(good + "\xEF\xBB\xBF" + good, "2:1",
                {"byte order mark of UTF-8", "byte offset " + std::to_string(good.size())});
  std::string little = "\xFF\xFE", big = "\xFE\xFF";
  for (char c : good) {
    little += {c, '\0'};
    big += {'\0', c};
  }
  expectErrorAt(little, "1:1", {"byte offset 0", "UTF-16", "little endian"});
  expectErrorAt(big, "1:1", {"byte offset 0", "UTF-16", "big endian"});
  expectErrorAt(little.substr(2), "1:1", {"UTF-16", "little endian"});
  expectErrorAt(big.substr(2), "1:1", {"UTF-16", "big endian"});
}

// wbolster/jsonlines #53: splitting at Unicode line separators cut valid records.
TEST_F(JsonlReader, LinesEndAtLineFeedAlone) {
  std::string text = "{\"text\": \"\xE2\x80\xA8 \xE2\x80\xA9 \xC2\x85 \\u000b \\u0000\", "
                     "\"input_ids\": [1], \"loss_mask\": [0]}\n";
  EXPECT_EQ(read(text + text + "\r\n").size(), 2u);
  EXPECT_EQ(read(R"({"input_ids": [1], "loss_mask": [0]})"
                 "\r\n"
                 R"({"input_ids": [1], "loss_mask": [0]})"
                 "\r\n")
                .size(),
            2u);
  expectErrorAt(R"({"text": "\ud800"})", "1:17", {"surrogate"});
}

TEST_F(JsonlReader, BlankLinesOnlyAtTheEnd) {
  EXPECT_EQ(read(good + "\n  \n\t\n").size(), 1u);
  EXPECT_EQ(read("").size(), 0u);
  expectErrorAt(good + "\n \n" + good, "2:1", {"blank line"});
}

// NVIDIA-NeMo/Automodel #1694: a cut line; the message must say where it is.
TEST_F(JsonlReader, MalformedJsonNamesLineAndColumn) {
  std::string cut = R"({"input_ids": [5, 6)";
  expectErrorAt(good + good + cut + "\n" + good, "3:" + std::to_string(cut.size() + 1),
                {"not valid JSON (sample 2)"});
  expectErrorAt(R"({"input_ids" [5]})", "1:14", {"not valid JSON"});
  expectErrorAt(good + R"({"input_ids": [5], "loss_mask": [1e999]})", "2:38",
                {"not valid JSON", "1e999"});
  expectErrorAt(R"({"input_ids": [5], "loss_mask": [0]} {})", "1:38", {"not valid JSON"});
  expectErrorAt("{\"a\": \"\xFF\"}", "1:8", {"not valid JSON", "UTF-8"});
}

TEST_F(JsonlReader, DeepNestingBelowAnUnknownKey) {
  std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(read("{\"x\": " + deep + ", \"input_ids\": [1], \"loss_mask\": [0]}").size(), 1u);
}

TEST_F(JsonlReader, WrongStructure) {
  expectErrorAt("[1]", "1:1", {"expected an object", "an array"});
  expectErrorAt(" 12 ", "1:2", {"expected an object", "a number"});
  expectErrorAt("\"x\"", "1:3", {"expected an object", "a string"});
  expectErrorAt(R"({"input_ids": 5})", "1:15",
                {"expected an array of numbers", "input_ids", "a number"});
  expectErrorAt(R"({"input_ids": {"a": 1}})", "1:15",
                {"expected an array of numbers", "an object"});
  expectErrorAt(R"({"input_ids": [[1]]})", "1:16", {"expected an array of numbers", "an array"});
  expectErrorAt(R"({"input_ids": [1, null]})", "1:22", {"expected an array of numbers", "null"});
  expectErrorAt(R"({"input_ids": [true]})", "1:19", {"expected an array of numbers", "a boolean"});
  expectErrorAt(R"({"input_ids": ["1"]})", "1:18", {"expected an array of numbers", "a string"});
  expectErrorAt(R"({"input_ids": [1, 2.0]})", "1:19",
                {"expected an integer", "input_ids[1]", "2.0"});
  expectErrorAt(R"({"input_ids": [1], "input_ids": [2]})", "1:30", {"key twice", "input_ids"});
}

TEST_F(JsonlReader, MissingOrContradictingKeys) {
  expectErrorAt(R"({"loss_mask": [0]})", "1:1", {"no input_ids"});
  expectErrorAt(R"({"input_ids": null, "loss_mask": [0]})", "1:1", {"no input_ids"});
  expectErrorAt(R"({"input_ids": [1]})", "1:1", {"no loss_mask and no labels"});
  expectErrorAt(R"({"input_ids": [1], "loss_mask": [0], "labels": [1]})", "1:1",
                {"both loss_mask and labels"});
  expectErrorAt(good + R"({"input_ids": [1, 2], "loss_mask": [0]})", "2:1",
                {"lengths differ", "sample 1", "2 input_ids", "1 loss_mask"});
  expectErrorAt(R"({"input_ids": [1, 2], "labels": [1, 2, -100]})", "1:1",
                {"2 input_ids", "3 labels"});
  expectErrorAt(R"({"input_ids": [1, 2], "labels": [1, 2], "position_ids": [0]})", "1:1",
                {"2 input_ids", "1 position_ids"});
  expectErrorAt(R"({"input_ids": [1, 2], "labels": [1, 2], "attention_mask": [1]})", "1:1",
                {"1 attention_mask"});
}

TEST_F(JsonlReader, WrongValues) {
  expectErrorAt(R"({"input_ids": [1, 2], "loss_mask": [0, -1]})", "1:40",
                {"bad weight", "loss_mask[1]", "-1"});
  expectErrorAt(R"({"input_ids": [1, 2], "loss_mask": [0, 1e39]})", "1:40",
                {"bad weight", "1e+39"});
  expectErrorAt(R"({"input_ids": [1, 2, 3], "labels": [-100, 3, -100]})", "1:1",
                {"sample 0, position 1", "3 where input_ids has 2", "unshifted"});
  expectErrorAt(R"({"input_ids": [1, 2], "labels": [-100, -1]})", "1:1", {"position 1", "-1"});
  expectErrorAt(R"({"input_ids": [1, 2], "position_ids": [4, 4]})", "1:43",
                {"increase strictly", "position 1", "at least 5"});
  expectErrorAt(R"({"input_ids": [1, 2], "position_ids": [-1, 4]})", "1:40",
                {"increase strictly", "-1"});
  expectErrorAt(R"({"input_ids": [1, 2], "position_ids": [0, 2147483648]})", "1:43",
                {"2147483648"});
  expectErrorAt(R"({"input_ids": [1, 2], "attention_mask": [0, 1]})", "1:42",
                {"masked token", "attention_mask[0]"});
}

// allenai/open-instruct #1862: the limit is the embedding's rows.
TEST_F(JsonlReader, TokenIdsAreRowsOfTheEmbedding) {
  EXPECT_EQ(read(R"({"input_ids": [319, 0], "loss_mask": [0, 1]})")[0].input_ids[0], 319);
  for (std::string id : {"320", "-1", "-100", "2147483648", "9223372036854775807"})
    expectErrorAt(good + R"({"input_ids": [1, )" + id + R"(], "loss_mask": [0, 1]})", "2:19",
                  {"token id outside the vocabulary", "sample 1, position 1", id + ";", "320 rows",
                   "0 to 319"});
  expectErrorAt(R"({"input_ids": [18446744073709551615]})", "1:16",
                {"expected an integer", "18446744073709551615"});
  expectErrorAt(R"({"input_ids": [18446744073709551616]})", "1:16",
                {"expected an integer", "18446744073709551616"});
}

TEST_F(JsonlReader, FilesThatCannotBeRead) {
  auto readPath = [&](const std::string &path) {
    readJsonl(path, 320, 0, ignoredKeys_, [](int64_t, Sample &&) {});
  };
  expectError([&] { readPath(folder_.path("absent.jsonl")); },
              {"cannot open file", "absent.jsonl", "No such file"});
  expectError([&] { readPath(folder_.path()); }, {"not a regular file", folder_.path()});
}

} // namespace
} // namespace sft
