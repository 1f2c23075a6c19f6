#include "runtime/base/Error.h"
#include "runtime/base/MappedFile.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/DurableFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

namespace sft {

namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

/// The limit of the format's own library: a header is parsed whole, so a hostile length must not be
/// believed.
constexpr uint64_t largestHeader = 100'000'000;
constexpr size_t lengthBytes = 8;

struct DTypeEntry {
  std::string_view name;
  DType dtype;
};
constexpr DTypeEntry dtypes[] = {{"F64", DType::F64},   {"F32", DType::F32}, {"F16", DType::F16},
                                 {"BF16", DType::BF16}, {"I64", DType::I64}, {"I32", DType::I32},
                                 {"U8", DType::U8}};

/// Takes the JSON parser's events. The header is {NAME: {dtype, shape, data_offsets},
/// "__metadata__": {KEY: STRING}}.
class HeaderHandler {
public:
  HeaderHandler(const std::string &path, std::map<std::string, TensorInfo> &tensors,
                std::map<std::string, std::string> &metadata)
      : path_(path), tensors_(tensors), metadata_(metadata) {}

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool number_float(double, const std::string &text) { return unexpected("number " + text); }
  bool binary(std::vector<uint8_t> &) { return unexpected("binary data"); }
  bool number_integer(int64_t value) { return unexpected("number " + std::to_string(value)); }
  bool number_unsigned(uint64_t value) {
    if (depth_ != 3)
      return unexpected("number " + std::to_string(value));
    if (field_ == "data_offsets")
      offsets_.push_back(value);
    else if (value <= uint64_t(std::numeric_limits<int64_t>::max()))
      tensor_.shape.push_back(int64_t(value));
    else
      return unexpected("number " + std::to_string(value));
    return true;
  }
  bool string(std::string &value) {
    if (depth_ == 2 && inMetadata_) {
      if (!metadata_.emplace(field_, value).second)
        fail("metadata key twice in the header (", path_, "): ", field_);
      return true;
    }
    if (depth_ != 2 || field_ != "dtype")
      return unexpected("a string");
    auto entry = std::find_if(std::begin(dtypes), std::end(dtypes),
                              [&](const DTypeEntry &e) { return e.name == value; });
    if (entry == std::end(dtypes))
      fail("unsupported dtype (", path_, ", tensor ", name_, "): ", value,
           "; F64, F32, F16, BF16, I64, I32 or U8");
    tensor_.dtype = entry->dtype;
    return true;
  }
  bool start_object(size_t) {
    if (depth_ > 1)
      return unexpected("an object");
    if (depth_ == 1) {
      tensor_ = {};
      offsets_.clear();
      seen_ = {};
    }
    ++depth_;
    return true;
  }
  bool end_object() {
    if (--depth_ == 1 && !inMetadata_)
      finishTensor();
    return true;
  }
  bool start_array(size_t) {
    if (depth_ != 2 || inMetadata_ || field_ == "dtype")
      return unexpected("an array");
    ++depth_;
    return true;
  }
  bool end_array() {
    --depth_;
    return true;
  }
  bool key(std::string &name) {
    if (depth_ == 1) {
      inMetadata_ = name == "__metadata__";
      if (inMetadata_ ? hasMetadata_ : tensors_.contains(name))
        fail("tensor twice in the header (", path_, "): ", name);
      hasMetadata_ |= inMetadata_;
      name_ = name;
      return true;
    }
    field_ = name;
    if (inMetadata_)
      return true;
    auto at = std::find(fields.begin(), fields.end(), name);
    if (at == fields.end())
      fail("unknown key in the header (", path_, ", tensor ", name_, "): ", name,
           "; dtype, shape and data_offsets");
    bool &seen = seen_[size_t(at - fields.begin())];
    if (seen)
      fail("key twice in the header (", path_, ", tensor ", name_, "): ", name);
    return seen = true;
  }
  bool parse_error(size_t position, const std::string &, const nlohmann::json::exception &error) {
    constexpr size_t longest = 300;
    fail("header is not valid JSON (", path_, ", byte ", lengthBytes + position,
         "): ", std::string(error.what()).substr(0, longest));
  }

private:
  static constexpr std::array<std::string_view, 3> fields = {"dtype", "shape", "data_offsets"};

  bool unexpected(const std::string &what) const {
    fail("malformed header (", path_, ", tensor ", name_, depth_ > 1 ? ", " + field_ : "",
         "): found ", what,
         "; an entry is {\"dtype\": STRING, \"shape\": [SIZES], \"data_offsets\": [BEGIN, END]}");
  }

  void finishTensor() {
    for (size_t i = 0; i < fields.size(); ++i)
      if (!seen_[i])
        fail("incomplete header (", path_, ", tensor ", name_, "): no ", fields[i]);
    if (offsets_.size() != 2)
      fail("malformed header (", path_, ", tensor ", name_, "): ", offsets_.size(),
           " data_offsets; begin and end");
    uint64_t needed = dtypeBytes(tensor_.dtype);
    bool overflow = false;
    for (int64_t size : tensor_.shape)
      overflow |= __builtin_mul_overflow(needed, uint64_t(size), &needed);
    auto [begin, end] = std::pair(offsets_[0], offsets_[1]);
    if (overflow || begin > end || end - begin != needed)
      fail("shape does not match the bytes (", path_, ", tensor ", name_, "): data_offsets ", begin,
           " to ", end, " declare ",
           begin > end ? "a negative number of" : std::to_string(end - begin),
           " bytes; the shape needs ",
           overflow ? "more than 64 bits count" : std::to_string(needed));
    tensor_.name = name_;
    tensor_.begin = begin;
    tensor_.end = end;
    tensors_.emplace(name_, std::move(tensor_));
  }

  const std::string &path_;
  std::map<std::string, TensorInfo> &tensors_;
  std::map<std::string, std::string> &metadata_;
  int depth_ = 0;
  bool inMetadata_ = false, hasMetadata_ = false;
  std::string name_, field_;
  TensorInfo tensor_;
  std::vector<uint64_t> offsets_;
  std::array<bool, 3> seen_{};
};

/// Every byte of the data belongs to exactly one tensor.
void checkCoverage(const std::string &path, const std::map<std::string, TensorInfo> &tensors,
                   uint64_t dataBytes) {
  std::vector<const TensorInfo *> order;
  for (const auto &[name, tensor] : tensors) {
    if (tensor.end > dataBytes)
      fail("tensor beyond the end of the file (", path, ", tensor ", name, "): bytes ",
           tensor.begin, " to ", tensor.end, " of the data; the file has ", dataBytes,
           " (truncated?)");
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const TensorInfo *a, const TensorInfo *b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t covered = 0;
  const TensorInfo *previous = nullptr;
  for (const TensorInfo *tensor : order) {
    if (tensor->begin < covered)
      fail("tensors overlap (", path, "): ", previous->name, " ends at byte ", covered,
           " of the data, ", tensor->name, " begins at ", tensor->begin);
    if (tensor->begin > covered)
      fail("bytes without a tensor (", path, "): ", covered, " to ", tensor->begin,
           " of the data, before ", tensor->name);
    covered = tensor->end;
    previous = tensor;
  }
  if (covered != dataBytes)
    fail("bytes after the last tensor (", path, "): ", covered, " to ", dataBytes, " of the data");
}

uint64_t readHeaderLength(const std::string &path, const MappedFile &file) {
  if (file.size() < lengthBytes)
    fail("not a safetensors file (", path, "): ", file.size(), " bytes; at least ", lengthBytes);
  uint64_t length;
  std::memcpy(&length, file.data(), lengthBytes);
  uint64_t room = file.size() - lengthBytes;
  if (length > largestHeader || length > room || length < 2)
    fail("header length of a safetensors file (", path, "): ", length,
         " bytes declared; at least 2 and at most ", std::min(room, largestHeader), " (",
         room < largestHeader ? "the rest of the file" : "the limit", ")");
  if (file.data()[lengthBytes] != '{')
    fail("not a safetensors file (", path, "): byte ", lengthBytes,
         " is not \"{\", with which the header begins");
  return length;
}

std::string_view safetensorsName(DType dtype) {
  for (const DTypeEntry &entry : dtypes)
    if (entry.dtype == dtype)
      return entry.name;
  failInternal("dtype without a safetensors name: ", dtypeName(dtype));
}

} // namespace

int64_t TensorInfo::elements() const { return int64_t((end - begin) / dtypeBytes(dtype)); }

struct SafetensorsFile::Impl {
  std::string path;
  MappedFile file;
  std::map<std::string, TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
  const char *data = nullptr;

  explicit Impl(const std::string &name) : path(name), file(name) {
    uint64_t length = readHeaderLength(path, file);
    data = file.data() + lengthBytes + length;
    HeaderHandler handler(path, tensors, metadata);
    nlohmann::json::sax_parse(file.data() + lengthBytes, data, &handler);
    checkCoverage(path, tensors, file.size() - lengthBytes - length);
  }
};

SafetensorsFile::SafetensorsFile(const std::string &path) : impl_(std::make_unique<Impl>(path)) {}
SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile &&) noexcept = default;
const std::string &SafetensorsFile::path() const { return impl_->path; }
const std::map<std::string, TensorInfo> &SafetensorsFile::tensors() const { return impl_->tensors; }
const std::map<std::string, std::string> &SafetensorsFile::metadata() const {
  return impl_->metadata;
}
const void *SafetensorsFile::data(const TensorInfo &tensor) const {
  return impl_->data + tensor.begin;
}

void writeSafetensors(const std::string &path, const std::vector<TensorToWrite> &tensors,
                      const std::map<std::string, std::string> &metadata) {
  std::vector<std::pair<int64_t, size_t>> order; // (negated element size, place)
  for (size_t i = 0; i < tensors.size(); ++i)
    order.emplace_back(-int64_t(dtypeBytes(tensors[i].dtype)), i);
  std::sort(order.begin(), order.end());

  nlohmann::json header = nlohmann::json::object();
  std::map<std::string_view, size_t> names;
  std::vector<std::string_view> pieces(1);
  uint64_t offset = 0;
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  for (auto [width, place] : order) {
    const TensorToWrite &tensor = tensors[place];
    if (tensor.name == "__metadata__" || !names.emplace(tensor.name, place).second)
      failInternal("tensor name twice or reserved (", path, "): ", tensor.name);
    uint64_t bytes = dtypeBytes(tensor.dtype);
    for (int64_t size : tensor.shape)
      bytes *= uint64_t(size);
    header[tensor.name] = {{"dtype", safetensorsName(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
    pieces.emplace_back(static_cast<const char *>(tensor.data), bytes);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' '); // the data begin aligned
  uint64_t length = text.size();
  text.insert(0, reinterpret_cast<const char *>(&length), lengthBytes);
  pieces[0] = text;
  writeDurably(path, pieces);
}

} // namespace sft
