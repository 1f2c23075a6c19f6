#include "compiler/ModelConfig.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <charconv>
#include <cmath>
#include <optional>

using namespace mlir;
using namespace sftc;
namespace json = llvm::json;

/// Positions, token ids and row numbers are i32 everywhere.
static constexpr int64_t kLargestSize = std::numeric_limits<int32_t>::max();
static constexpr int64_t kMostLayers = 10000;
/// Deeper nesting is no config.json, and the JSON parser is recursive.
static constexpr unsigned kDeepestNesting = 64;

/// Top-level keys that do not change the graph.
static constexpr StringLiteral kIrrelevantKeys[] = {
    // Where the file comes from.
    "_name_or_path", "_commit_hash", "transformers_version", "transformers.js_config", "auto_map",
    "is_llama_config", "name_or_path",
    // Generation.
    "use_cache", "cache_implementation", "is_decoder", "max_length", "max_new_tokens", "min_length",
    "do_sample", "early_stopping", "num_beams", "temperature", "top_k", "top_p", "typical_p",
    "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "bad_words_ids",
    "num_return_sequences", "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id",
    // Ids of special tokens: the data says which tokens stand where and which are trained.
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id",
    "unk_token_id",
    // What PyTorch's modules return and how they are run.
    "output_attentions", "output_hidden_states", "output_scores", "return_dict", "torchscript",
    "use_bfloat16", "chunk_size_feed_forward", "attn_implementation", "_attn_implementation",
    "_attn_implementation_autoset", "gradient_checkpointing",
    // Heads for classification.
    "id2label", "label2id", "num_labels", "problem_type", "classifier_dropout", "finetuning_task",
    "task_specific_params",
    // The file is f32; --precision decides how it is trained.
    "dtype", "torch_dtype",
    // Weights come from the checkpoint; sft-run --random-weights reads this from `sft.config`.
    "initializer_range"};

namespace {

/// The text of one config.json: where each key stands, and the errors in it.
class Document {
public:
  Document(StringRef file, StringRef text, MLIRContext &context)
      : file(StringAttr::get(&context, file)), text(text), unknown(UnknownLoc::get(&context)) {
    findKeys();
  }

  /// An error at a key ("rope_scaling.factor"), or at the nearest object that is there.
  InFlightDiagnostic error(StringRef path) {
    hasErrors = true;
    return emitError(locate(path));
  }
  /// An error of the whole file.
  InFlightDiagnostic error() {
    hasErrors = true;
    return emitError(unknown);
  }
  InFlightDiagnostic errorAt(unsigned line, unsigned column) {
    hasErrors = true;
    return emitError(FileLineColLoc::get(file, line, column));
  }
  InFlightDiagnostic warning(StringRef path) { return emitWarning(locate(path)); }

  bool failed() const { return hasErrors; }
  StringRef getFile() const { return file.getValue(); }
  unsigned getDepth() const { return depth; }
  ArrayRef<std::string> getRepeatedKeys() const { return repeatedKeys; }

private:
  /// Notes the place of every key. Works on any text, since it runs before the parser.
  void findKeys();
  size_t endOfString(size_t begin) const;
  Location locate(StringRef path) const;

  StringAttr file;
  StringRef text;
  Location unknown;
  llvm::StringMap<size_t> offsets;
  SmallVector<std::string> repeatedKeys;
  unsigned depth = 0;
  bool hasErrors = false;
};

/// Reads one object key by key and remembers which keys were asked for. A key that is null counts
/// as absent. What is wrong is reported, and reading goes on with a harmless value.
class ObjectReader {
public:
  ObjectReader(Document &document, const json::Object &object, std::string prefix = "")
      : document(document), object(object), prefix(std::move(prefix)) {}

  std::string pathOf(StringRef key) const { return prefix + key.str(); }
  const json::Value *find(StringRef key);
  /// A whole number from 1 to `largest`; required where there is no default.
  int64_t getSize(StringRef key, std::optional<int64_t> standard = {},
                  int64_t largest = kLargestSize);
  /// A finite number above 0.
  double getPositive(StringRef key, std::optional<double> standard = {});
  bool getBool(StringRef key, bool standard);
  /// A string that must be one of `choices`.
  std::string getChoice(StringRef key, StringRef what, std::optional<StringRef> standard,
                        ArrayRef<StringRef> choices);
  /// Refuses any value but `neutral`, with which the key changes nothing.
  void expectNumber(StringRef key, double neutral);
  void expectFalse(StringRef key);
  void reportUnusedKeys(ArrayRef<StringLiteral> irrelevant);

private:
  const json::Value *require(StringRef key, bool optional);
  void wrongType(StringRef key, const json::Value &value, StringRef expected);

  Document &document;
  const json::Object &object;
  std::string prefix;
  llvm::StringSet<> asked;
};

} // namespace

static std::string toText(const json::Value &value) {
  // The JSON printer gives fractions 17 digits.
  if (std::optional<double> number = value.getAsNumber(); number && !value.getAsInteger()) {
    char digits[32];
    return {digits, std::to_chars(digits, std::end(digits), *number).ptr};
  }
  std::string result;
  llvm::raw_string_ostream(result) << value;
  constexpr size_t longest = 60;
  return result.size() <= longest ? result : result.substr(0, longest) + "...";
}

/// The candidate that is at most a few typing errors away, or nothing.
static StringRef nearest(StringRef value, ArrayRef<StringRef> candidates) {
  StringRef best;
  unsigned least = std::max<unsigned>(2, value.size() / 3) + 1;
  for (StringRef candidate : candidates)
    if (unsigned distance = value.edit_distance(candidate, true, least); distance < least) {
      least = distance;
      best = candidate;
    }
  return best;
}

/// "nearest X; supported: X, Y".
static std::string supportedText(StringRef value, ArrayRef<StringRef> choices) {
  std::string result;
  if (StringRef best = nearest(value, choices); !best.empty() && choices.size() > 1)
    result = ("nearest \"" + best + "\", ").str();
  return result + "supported: \"" + llvm::join(choices, "\", \"") + "\"";
}

//===----------------------------------------------------------------------===//
// Document
//===----------------------------------------------------------------------===//

size_t Document::endOfString(size_t begin) const {
  size_t i = begin + 1;
  for (; i < text.size() && text[i] != '"'; ++i)
    if (text[i] == '\\')
      ++i;
  return i;
}

void Document::findKeys() {
  // Prefix of the keys of each open object; lists have none, so keys inside them are not noted.
  SmallVector<std::optional<std::string>> open;
  std::optional<std::string> pending;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '"': {
      size_t end = endOfString(i);
      size_t next = text.find_first_not_of(" \t\r\n", end + 1);
      if (next != StringRef::npos && text[next] == ':' && !open.empty() && open.back()) {
        std::string path = *open.back() + text.slice(i + 1, end).str();
        pending = path + ".";
        if (!offsets.try_emplace(path, i).second)
          repeatedKeys.push_back(path);
      }
      i = end;
      break;
    }
    case '{':
      open.push_back(open.empty() ? std::string() : pending);
      pending.reset();
      break;
    case '[':
      open.push_back(std::nullopt);
      pending.reset();
      break;
    case '}':
    case ']':
      if (!open.empty())
        open.pop_back();
      break;
    case ',':
      pending.reset();
      break;
    default:
      break;
    }
    depth = std::max<unsigned>(depth, open.size());
  }
}

Location Document::locate(StringRef path) const {
  auto it = offsets.find(path);
  while (it == offsets.end() && path.contains('.')) {
    path = path.rsplit('.').first;
    it = offsets.find(path);
  }
  size_t offset = it == offsets.end() ? text.find('{') : it->second;
  StringRef before = text.take_front(offset);
  unsigned line = before.count('\n') + 1;
  size_t lineStart = before.rfind('\n');
  unsigned column = offset - (lineStart == StringRef::npos ? 0 : lineStart + 1) + 1;
  return FileLineColLoc::get(file, line, column);
}

//===----------------------------------------------------------------------===//
// ObjectReader
//===----------------------------------------------------------------------===//

const json::Value *ObjectReader::find(StringRef key) {
  asked.insert(key);
  const json::Value *value = object.get(key);
  return value && value->kind() != json::Value::Null ? value : nullptr;
}

const json::Value *ObjectReader::require(StringRef key, bool optional) {
  const json::Value *value = find(key);
  if (!value && !optional)
    document.error(pathOf(key)) << "missing key (" << pathOf(key) << ") in " << document.getFile();
  return value;
}

void ObjectReader::wrongType(StringRef key, const json::Value &value, StringRef expected) {
  document.error(pathOf(key)) << "wrong type (" << pathOf(key) << "): " << toText(value)
                              << "; expected " << expected;
}

int64_t ObjectReader::getSize(StringRef key, std::optional<int64_t> standard, int64_t largest) {
  const json::Value *value = require(key, standard.has_value());
  if (!value)
    return standard.value_or(1);
  if (!value->getAsNumber()) {
    wrongType(key, *value, "a whole number");
    return 1;
  }
  std::optional<int64_t> size = value->getAsInteger();
  if (size && *size >= 1 && *size <= largest)
    return *size;
  document.error(pathOf(key)) << "size out of range (" << pathOf(key) << "): " << toText(*value)
                              << "; a whole number from 1 to " << largest;
  return 1;
}

double ObjectReader::getPositive(StringRef key, std::optional<double> standard) {
  const json::Value *value = require(key, standard.has_value());
  if (!value)
    return standard.value_or(1);
  std::optional<double> number = value->getAsNumber();
  if (!number) {
    wrongType(key, *value, "a number");
    return 1;
  }
  if (std::isfinite(*number) && *number > 0)
    return *number;
  document.error(pathOf(key)) << "number out of range (" << pathOf(key) << "): " << toText(*value)
                              << "; a finite number above 0";
  return 1;
}

bool ObjectReader::getBool(StringRef key, bool standard) {
  const json::Value *value = find(key);
  if (!value)
    return standard;
  if (std::optional<bool> flag = value->getAsBoolean())
    return *flag;
  wrongType(key, *value, "true or false");
  return standard;
}

std::string ObjectReader::getChoice(StringRef key, StringRef what,
                                    std::optional<StringRef> standard,
                                    ArrayRef<StringRef> choices) {
  const json::Value *value = require(key, standard.has_value());
  if (!value)
    return standard.value_or("").str();
  std::optional<StringRef> choice = value->getAsString();
  if (!choice) {
    wrongType(key, *value, "a string");
    return "";
  }
  if (llvm::is_contained(choices, *choice))
    return choice->str();
  document.error(pathOf(key)) << "unknown " << what << " (" << pathOf(key)
                              << "): " << toText(*value) << "; " << supportedText(*choice, choices);
  return "";
}

void ObjectReader::expectNumber(StringRef key, double neutral) {
  const json::Value *value = find(key);
  if (!value)
    return;
  std::optional<double> number = value->getAsNumber();
  if (!number)
    wrongType(key, *value, "a number");
  else if (*number != neutral)
    document.error(pathOf(key)) << "not supported (" << pathOf(key) << "): " << toText(*value)
                                << "; only " << toText(neutral)
                                << ", since ignoring it would change the numbers";
}

void ObjectReader::expectFalse(StringRef key) {
  if (getBool(key, false))
    document.error(pathOf(key))
        << "not supported (" << pathOf(key)
        << "): true; only false, since ignoring it would change the numbers";
}

void ObjectReader::reportUnusedKeys(ArrayRef<StringLiteral> irrelevant) {
  SmallVector<StringRef> known(irrelevant.begin(), irrelevant.end());
  for (StringRef key : asked.keys())
    known.push_back(key);
  llvm::sort(known);
  SmallVector<StringRef> unused;
  for (const auto &entry : object)
    if (!llvm::is_contained(known, StringRef(entry.first)))
      unused.push_back(entry.first);
  llvm::sort(unused);
  for (StringRef key : unused) {
    InFlightDiagnostic warning = document.warning(pathOf(key));
    warning << "unused key (" << pathOf(key) << "): " << toText(*object.get(key))
            << "; it changes nothing";
    if (StringRef best = nearest(key, known); !best.empty())
      warning << ", nearest known key: " << best;
  }
}

//===----------------------------------------------------------------------===//
// LlamaForCausalLM
//===----------------------------------------------------------------------===//

static void readArchitecture(ObjectReader &reader, Document &document) {
  static constexpr StringRef supported[] = {"LlamaForCausalLM"};
  const json::Value *value = reader.find("architectures");
  if (value) {
    const json::Array *list = value->getAsArray();
    std::optional<StringRef> name;
    if (list && list->size() == 1)
      name = list->front().getAsString();
    if (!name)
      document.error("architectures")
          << "wrong type (architectures): " << toText(*value) << "; expected a list of one name";
    else if (*name != supported[0])
      document.error("architectures")
          << "unknown architecture (architectures): " << toText(list->front()) << "; "
          << supportedText(*name, supported);
  }
  // Without `architectures` the type of the model has to say it.
  std::optional<StringRef> standard;
  if (value)
    standard = "llama";
  reader.getChoice("model_type", "architecture", standard, {"llama"});
}

/// A number that may stand at the top or among the rotary parameters; both must agree.
template <typename T, typename Read>
static T readEither(ObjectReader &top, ObjectReader *nested, StringRef key, Document &document,
                    Read read) {
  bool hasTop = top.find(key), hasNested = nested && nested->find(key);
  if (!hasTop || !hasNested)
    return read(nested && !hasTop ? *nested : top);
  T atTop = read(top), inside = read(*nested);
  if (atTop != inside)
    document.error(key) << "conflict (" << key << "): " << toText(atTop) << ", but "
                        << nested->pathOf(key) << " is " << toText(inside) << "; keep one of them";
  return inside;
}

static RotaryConfig readRotary(ObjectReader &top, Document &document) {
  RotaryConfig rotary;
  // transformers 5 writes `rope_parameters`; before, there were `rope_scaling` and `rope_theta`.
  const json::Value *parameters = top.find("rope_parameters"), *scaling = top.find("rope_scaling");
  if (parameters && scaling && *parameters != *scaling)
    document.error("rope_scaling") << "conflict (rope_scaling): " << toText(*scaling)
                                   << ", but rope_parameters is there, too; keep one of them";
  StringRef key = parameters ? "rope_parameters" : "rope_scaling";
  std::optional<ObjectReader> nested;
  if (const json::Value *value = parameters ? parameters : scaling) {
    const json::Object *object = value->getAsObject();
    if (!object) {
      document.error(key) << "wrong type (" << key << "): " << toText(*value)
                          << "; expected an object";
      return rotary;
    }
    for (const auto &entry : *object)
      if (entry.second.getAsObject()) {
        document.error((key + "." + StringRef(entry.first)).str())
            << "not supported (" << key << "." << StringRef(entry.first)
            << "): " << toText(entry.second) << "; rotary parameters are the same for all layers";
        return rotary;
      }
    nested.emplace(document, *object, (key + ".").str());
  }
  ObjectReader *inside = nested ? &*nested : nullptr;

  rotary.theta = readEither<double>(top, inside, "rope_theta", document, [](ObjectReader &reader) {
    return reader.getPositive("rope_theta", 10000.0);
  });
  top.expectNumber("partial_rotary_factor", 1);
  top.expectFalse("rope_interleaved");
  rotary.type = "default";
  if (!inside)
    return rotary;
  inside->expectNumber("partial_rotary_factor", 1);

  static constexpr StringRef types[] = {"default", "linear", "llama3"};
  auto readType = [&](StringRef typeKey, StringRef standard) {
    return inside->getChoice(typeKey, "rope type", standard, types);
  };
  std::string oldType = readType("type", "default");
  rotary.type = readType("rope_type", oldType);
  if (inside->find("type") && !oldType.empty() && !rotary.type.empty() && oldType != rotary.type)
    document.error(inside->pathOf("type"))
        << "conflict (" << inside->pathOf("type") << "): \"" << oldType << "\", but "
        << inside->pathOf("rope_type") << " is \"" << rotary.type << "\"; keep one of them";
  if (rotary.type.empty()) // Unknown: which keys it would use is unknown, too.
    return rotary;
  if (rotary.type != "default")
    rotary.factor = inside->getPositive("factor");
  if (rotary.type == "llama3") {
    rotary.lowFreqFactor = inside->getPositive("low_freq_factor");
    rotary.highFreqFactor = inside->getPositive("high_freq_factor");
    if (rotary.highFreqFactor <= rotary.lowFreqFactor && !document.failed())
      document.error(inside->pathOf("high_freq_factor"))
          << "number out of range (" << inside->pathOf("high_freq_factor")
          << "): " << toText(rotary.highFreqFactor) << "; above low_freq_factor "
          << toText(rotary.lowFreqFactor);
    StringRef original = "original_max_position_embeddings";
    // Some families have it at the top.
    rotary.originalMaxPositions =
        readEither<int64_t>(top, inside, original, document,
                            [&](ObjectReader &reader) { return reader.getSize(original); });
  }
  inside->reportUnusedKeys({});
  return rotary;
}

/// The divisor of `number` that is nearest to `wanted`.
static int64_t nearestDivisor(int64_t number, int64_t wanted) {
  for (int64_t step = 0; step < number; ++step)
    for (int64_t candidate : {wanted - step, wanted + step})
      if (candidate > 0 && candidate <= number && number % candidate == 0)
        return candidate;
  return number;
}

/// What the sizes must be to each other.
static void checkSizes(const ModelConfig &config, bool hasHeadDim, Document &document) {
  int64_t heads = config.heads;
  if (!hasHeadDim && config.hidden % heads != 0) {
    int64_t below = config.hidden / heads * heads;
    InFlightDiagnostic error = document.error("hidden_size");
    error << "hidden size is no multiple of num_attention_heads " << heads
          << " (hidden_size): " << config.hidden << "; give head_dim, or the nearest: ";
    if (below > 0)
      error << below << " or ";
    error << below + heads;
  } else if (config.headDim % 2 != 0) {
    StringRef key = hasHeadDim ? "head_dim" : "hidden_size";
    InFlightDiagnostic error = document.error(key);
    error << "head size is odd (" << key << "): " << config.headDim
          << "; rotary embedding turns pairs, nearest: ";
    if (config.headDim > 1)
      error << config.headDim - 1 << " or ";
    error << config.headDim + 1;
  } else if (heads > kLargestSize / config.headDim) {
    document.error("num_attention_heads")
        << "size out of range (num_attention_heads): " << heads << " heads of " << config.headDim
        << "; at most " << kLargestSize / config.headDim;
  }
  if (heads % config.kvHeads != 0)
    document.error("num_key_value_heads") << "does not divide num_attention_heads " << heads
                                          << " (num_key_value_heads): " << config.kvHeads
                                          << "; nearest: " << nearestDivisor(heads, config.kvHeads);
}

static ModelConfig readLlama(const json::Object &object, Document &document) {
  ModelConfig config;
  ObjectReader reader(document, object);
  readArchitecture(reader, document);
  if (document.failed()) // The keys of another architecture mean something else.
    return config;

  config.vocabulary = reader.getSize("vocab_size");
  config.hidden = reader.getSize("hidden_size");
  config.ffn = reader.getSize("intermediate_size");
  config.layers = reader.getSize("num_hidden_layers", {}, kMostLayers);
  config.heads = reader.getSize("num_attention_heads");
  config.kvHeads = reader.getSize("num_key_value_heads", config.heads);
  bool hasHeadDim = reader.find("head_dim");
  config.headDim = reader.getSize("head_dim", std::max<int64_t>(1, config.hidden / config.heads));
  config.maxPositions = reader.getSize("max_position_embeddings");
  // Defaults of transformers' LlamaConfig.
  config.epsilon = reader.getPositive("rms_norm_eps", 1e-6);
  config.tied = reader.getBool("tie_word_embeddings", false);
  config.attentionBias = reader.getBool("attention_bias", false);
  config.mlpBias = reader.getBool("mlp_bias", false);
  reader.getChoice("hidden_act", "activation", "silu", {"silu"});

  reader.expectNumber("pretraining_tp", 1);
  for (StringRef key : {"attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop"})
    reader.expectNumber(key, 0);
  for (StringRef key : {"is_encoder_decoder", "add_cross_attention"})
    reader.expectFalse(key);
  if (const json::Value *value = reader.find("quantization_config"))
    document.error("quantization_config")
        << "not supported (quantization_config): " << toText(*value)
        << "; weights are float32, float16 or bfloat16";

  if (!document.failed())
    checkSizes(config, hasHeadDim, document);
  config.rotary = readRotary(reader, document);
  reader.reportUnusedKeys(kIrrelevantKeys);
  return config;
}

FailureOr<ModelConfig> sftc::readModelConfig(StringRef path, MLIRContext &context) {
  SmallString<128> file(path);
  if (llvm::sys::fs::is_directory(path))
    llvm::sys::path::append(file, "config.json");
  auto buffer =
      llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    emitError(UnknownLoc::get(&context))
        << "cannot read the model (" << file.str() << "): " << buffer.getError().message()
        << "; give a folder with config.json, or the file itself";
    return failure();
  }
  StringRef text = (*buffer)->getBuffer();
  Document document(file, text, context);
  if (document.getDepth() > kDeepestNesting) {
    document.error() << "no config.json (" << file.str() << "): nested " << document.getDepth()
                     << " levels deep; at most " << kDeepestNesting;
    return failure();
  }
  llvm::Expected<json::Value> root = json::parse(text);
  if (!root) {
    // The place is only in the message: "[line:column, byte=offset]: what".
    std::string message = toString(root.takeError());
    StringRef rest(message);
    unsigned line = 1, column = 1;
    if (rest.consume_front("[") && !rest.consumeInteger(10, line) && rest.consume_front(":") &&
        !rest.consumeInteger(10, column))
      rest = rest.split("]: ").second;
    document.errorAt(line, std::max(1u, column)) << "malformed JSON: " << rest;
    return failure();
  }
  const json::Object *object = root->getAsObject();
  if (!object) {
    document.errorAt(1, 1) << "no config.json: " << toText(*root) << "; expected an object";
    return failure();
  }
  // JSON keeps the last of two equal keys; the other would be dropped without a word.
  for (const std::string &key : document.getRepeatedKeys())
    document.error(key) << "key stands twice (" << key << "); keep one";
  ModelConfig config = readLlama(*object, document);
  if (document.failed())
    return failure();
  config.text = text.str();
  return config;
}
