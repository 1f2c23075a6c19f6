#include "runtime/data/JsonlReader.h"
#include "runtime/base/Error.h"
#include "runtime/base/MappedFile.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

namespace sft {

namespace {

constexpr std::string_view byteOrderMark = "\xEF\xBB\xBF";
constexpr int64_t ignoredLabel = -100;

enum Field { InputIds, LossMask, Labels, PositionIds, AttentionMask, FieldCount, Unknown };
constexpr std::array<std::string_view, FieldCount> fieldNames = {"input_ids", "loss_mask", "labels",
                                                                 "position_ids", "attention_mask"};

/// Where a line stands and how far the JSON parser has read in it.
struct Place {
  const std::string &path;
  int64_t line;
  const char *begin, *end;
  const char *cursor;

  template <typename... Args> [[noreturn]] void failAt(int64_t column, const Args &...what) const {
    fail(path, ":", line, ":", column, ": error: ", what...);
  }
  /// Fails at the value that the parser has just handed out. The parser has read its last character
  /// or, for a number, the one after it.
  template <typename... Args> [[noreturn]] void failHere(const Args &...what) const {
    const char *at = cursor - 1;
    bool string = *at == '"';
    while (!string && at > begin &&
           std::string_view("+-.0123456789eE").find(at[-1]) != std::string_view::npos)
      --at;
    failAt(at - begin + 1, what...);
  }
};

/// Feeds the JSON parser and tells the place how far it has read.
struct TrackedIterator {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  const char *at;
  Place *place;

  reference operator*() const { return *at; }
  TrackedIterator &operator++() {
    place->cursor = ++at;
    return *this;
  }
  bool operator==(const TrackedIterator &other) const { return at == other.at; }
};

/// Takes the parser's events for one line. The line is an object, its fields are arrays of numbers.
class LineHandler {
public:
  LineHandler(Place &place, int64_t vocabSize, int64_t number,
              std::map<std::string, int64_t> &ignoredKeys)
      : place_(place), vocabSize_(vocabSize), ignoredKeys_(ignoredKeys) {
    sample_.number = number;
  }

  bool null() {
    if (depth_ == 1 && field_ != Unknown) {
      present_[field_] = false;
      return true;
    }
    return other("null");
  }
  bool boolean(bool value) {
    if (!isElement())
      return other("a boolean");
    if (field_ == InputIds || field_ == Labels || field_ == PositionIds)
      return other("a boolean");
    field_ == LossMask ? addWeight(value) : addInteger(value);
    return true;
  }
  bool number_integer(int64_t value) { return number(value); }
  bool number_unsigned(uint64_t value) {
    if (value > uint64_t(std::numeric_limits<int64_t>::max()))
      return number_float(double(value), std::to_string(value));
    return number(int64_t(value));
  }
  bool number_float(double value, const std::string &text) {
    if (!isElement())
      return other("a number");
    if (field_ != LossMask)
      place_.failHere("expected an integer (sample ", sample_.number, ", ", fieldNames[field_], "[",
                      index(), "]): ", text.substr(0, 60));
    addWeight(value);
    return true;
  }
  bool string(std::string &) { return other("a string"); }
  bool binary(std::vector<uint8_t> &) { return other("binary data"); }

  bool start_object(size_t) {
    if (depth_ > 0)
      other("an object");
    ++depth_;
    return true;
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(size_t) {
    if (depth_ != 1)
      other("an array");
    ++depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool key(std::string &name) {
    if (depth_ != 1)
      return true;
    auto at = std::find(fieldNames.begin(), fieldNames.end(), name);
    field_ = at == fieldNames.end() ? Unknown : Field(at - fieldNames.begin());
    if (field_ == Unknown) {
      ++ignoredKeys_[name];
      return true;
    }
    if (seen_[field_])
      place_.failHere("key twice in one line (sample ", sample_.number, "): ", name);
    seen_[field_] = present_[field_] = true;
    return true;
  }
  bool parse_error(size_t position, const std::string &, const nlohmann::json::exception &error) {
    // "[json.exception...] parse error at line 1, column 12: WHAT", of which the place is ours to
    // say.
    std::string what = error.what();
    size_t begin = what.find("] ") + 2, column = what.find(", column ", begin);
    if (column != std::string::npos)
      begin = what.find(": ", column) + 2;
    constexpr size_t longest = 300;
    place_.failAt(int64_t(std::max<size_t>(position, 1)), "not valid JSON (sample ", sample_.number,
                  "): ", what.substr(begin, longest));
  }

  /// The line's sample, after the whole line has been read.
  Sample finish() {
    auto count = [&](Field field) { return field == Labels ? labels_.size() : values(field); };
    if (!present_[InputIds])
      place_.failAt(1, "no input_ids (sample ", sample_.number,
                    "); a line needs input_ids and loss_mask or labels");
    if (present_[LossMask] && present_[Labels])
      place_.failAt(1, "both loss_mask and labels (sample ", sample_.number, "); give one of them");
    if (!present_[LossMask] && !present_[Labels])
      place_.failAt(1, "no loss_mask and no labels (sample ", sample_.number,
                    "); give one of them");
    size_t tokens = sample_.input_ids.size();
    for (Field field : {LossMask, Labels, PositionIds, AttentionMask})
      if (present_[field] && count(field) != tokens)
        place_.failAt(1, "lengths differ (sample ", sample_.number, "): ", tokens, " input_ids, ",
                      count(field), " ", fieldNames[field], "; one entry a token");
    if (present_[Labels])
      takeLabels();
    if (tokens > 0)
      sample_.weights[0] = 0;
    return std::move(sample_);
  }

private:
  bool isElement() const { return depth_ == 2 && field_ != Unknown; }

  size_t values(Field field) const {
    switch (field) {
    case InputIds:
      return sample_.input_ids.size();
    case LossMask:
      return sample_.weights.size();
    case PositionIds:
      return sample_.position_ids.size();
    case AttentionMask:
      return attentionMask_;
    default:
      return labels_.size();
    }
  }
  size_t index() const { return values(field_); }

  /// A value that is not a number of a known field: fine below an unknown key, an error elsewhere.
  bool other(const char *what) {
    if (depth_ == 0)
      place_.failHere("expected an object (sample ", sample_.number, "): found ", what);
    if (field_ != Unknown)
      place_.failHere("expected an array of numbers (sample ", sample_.number, ", key ",
                      fieldNames[field_], "): found ", what);
    return true;
  }

  bool number(int64_t value) {
    if (!isElement())
      return other("a number");
    field_ == LossMask ? addWeight(double(value)) : addInteger(value);
    return true;
  }

  void addWeight(double value) {
    float weight = float(value);
    if (!(weight >= 0) || !std::isfinite(weight))
      place_.failHere("bad weight (sample ", sample_.number, ", loss_mask[", index(), "]): ", value,
                      "; weights are finite and at least 0");
    sample_.weights.push_back(weight);
  }

  void addInteger(int64_t value) {
    switch (field_) {
    case InputIds:
      if (value < 0 || value >= vocabSize_)
        place_.failHere("token id outside the vocabulary (sample ", sample_.number, ", position ",
                        index(), "): ", value, "; the embedding has ", vocabSize_,
                        " rows, so ids are 0 to ", vocabSize_ - 1);
      sample_.input_ids.push_back(int32_t(value));
      return;
    case Labels:
      labels_.push_back(value);
      return;
    case PositionIds: {
      int64_t least = sample_.position_ids.empty() ? 0 : int64_t(sample_.position_ids.back()) + 1;
      if (value < least || value > std::numeric_limits<int32_t>::max())
        place_.failHere("position_ids must increase strictly (sample ", sample_.number,
                        ", position ", index(), "): ", value, "; at least ", least);
      sample_.position_ids.push_back(int32_t(value));
      return;
    }
    default:
      if (value != 1)
        place_.failHere("masked token (sample ", sample_.number, ", attention_mask[", index(),
                        "]): ", value, "; samples hold no padding, leave such tokens out");
      ++attentionMask_;
    }
  }

  void takeLabels() {
    sample_.weights.resize(labels_.size());
    for (size_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i] != ignoredLabel && labels_[i] != sample_.input_ids[i])
        place_.failAt(1, "label differs from the token (sample ", sample_.number, ", position ", i,
                      "): ", labels_[i], " where input_ids has ", sample_.input_ids[i],
                      "; labels are unshifted, -100 means not trained");
      sample_.weights[i] = labels_[i] != ignoredLabel;
    }
  }

  Place &place_;
  int64_t vocabSize_;
  std::map<std::string, int64_t> &ignoredKeys_;
  Sample sample_;
  std::vector<int64_t> labels_;
  size_t attentionMask_ = 0; ///< entries read
  std::array<bool, FieldCount> seen_{}, present_{};
  Field field_ = Unknown;
  int depth_ = 0;
};

/// Refuses UTF-16 and UTF-32; returns the size of a UTF-8 byte order mark.
size_t checkEncoding(const std::string &path, std::string_view text) {
  std::string_view start = text.substr(0, 2);
  const char *encoding = nullptr;
  if (start == "\xFF\xFE" || (start.size() == 2 && start[0] != 0 && start[1] == 0))
    encoding = "UTF-16 or UTF-32, little endian";
  else if (start == "\xFE\xFF" || (start.size() == 2 && start[0] == 0))
    encoding = "UTF-16 or UTF-32, big endian";
  if (encoding)
    fail(path, ":1:1: error: wrong encoding (byte offset 0): ", encoding,
         "; write the file as UTF-8");
  return text.starts_with(byteOrderMark) ? byteOrderMark.size() : 0;
}

} // namespace

void readJsonl(const std::string &path, int64_t vocabSize, int64_t firstNumber,
               std::map<std::string, int64_t> &ignoredKeys, const TakeSample &take) {
  MappedFile file(path);
  std::string_view text(file.data(), file.size());
  size_t offset = checkEncoding(path, text);
  int64_t blankLine = 0;
  for (int64_t line = 1; offset < text.size(); ++line) {
    std::string_view content = text.substr(offset, text.find('\n', offset) - offset);
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) {
      blankLine = blankLine ? blankLine : line;
    } else {
      Place place{path, line, content.data(), content.data() + content.size(), content.data()};
      if (blankLine)
        fail(path, ":", blankLine,
             ":1: error: blank line; only the end of a file may have blank lines");
      // The JSON parser would skip a mark at the start of any line.
      if (content.starts_with(byteOrderMark))
        place.failAt(1, "byte order mark of UTF-8 inside the file (byte offset ", offset,
                     "); only the start of a file may have one");
      LineHandler handler(place, vocabSize, firstNumber++, ignoredKeys);
      nlohmann::json::sax_parse(TrackedIterator{place.begin, &place},
                                TrackedIterator{place.end, &place}, &handler);
      take(line, handler.finish());
    }
    offset += content.size() + 1;
  }
}

} // namespace sft
