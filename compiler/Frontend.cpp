#include "compiler/Frontend.h"
#include "compiler/ModelConfig.h"
#include "dialects/sft/SftOps.h"

#include "mlir/IR/Verifier.h"

#include <cmath>

using namespace mlir;
using namespace sftc;

namespace {

/// Builds the graph of a LlamaForCausalLM. Modules are named as in transformers without the leading
/// "model."; ops and parameters carry these names as locations.
class LlamaBuilder {
public:
  LlamaBuilder(const ModelConfig &config, MLIRContext &context)
      : config(config), builder(&context), floatType(builder.getF32Type()),
        module(ModuleOp::create(named("model"))) {}

  OwningOpRef<ModuleOp> build();

private:
  Location named(const Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }
  /// Number of elements of a dimension.
  int64_t sizeOf(StringRef role) const;

  void createForward();
  void createRotaryTable();
  /// Declares a parameter before the function and reads it.
  Value parameter(StringRef owner, StringRef kind, ArrayRef<StringRef> roles,
                  ArrayRef<StringRef> aliases = {});
  Value read(ParameterOp parameter);
  Value linear(StringRef name, Value input, StringRef outRole, StringRef inRole, bool bias);
  Value norm(StringRef name, Value input);
  Value attention(const std::string &layer, Value input);
  Value mlp(const std::string &layer, Value input);
  /// Projects onto the vocabulary, with the embedding table if they are tied.
  Value head(Value input, ParameterOp embedding);

  const ModelConfig &config;
  OpBuilder builder;
  FloatType floatType;
  OwningOpRef<ModuleOp> module;
  func::FuncOp forward;
  Value tokens, positions, documents, targets;
  Value cosine, sine;
};

} // namespace

int64_t LlamaBuilder::sizeOf(StringRef role) const {
  if (role == "vocabulary")
    return config.vocabulary;
  if (role == "heads")
    return config.heads * config.headDim;
  if (role == "kv_heads")
    return config.kvHeads * config.headDim;
  return role == "ffn" ? config.ffn : config.hidden;
}

void LlamaBuilder::createForward() {
  auto intRows = RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
  auto floatRows = RankedTensorType::get({ShapedType::kDynamic}, floatType);
  builder.setInsertionPointToEnd(module->getBody());
  forward = func::FuncOp::create(
      builder, named("forward"), "forward",
      builder.getFunctionType({intRows, intRows, intRows, intRows, floatRows}, {floatRows}));
  Block *entry = forward.addEntryBlock();
  static constexpr StringRef tables[] = {"tokens", "positions", "documents", "targets", "weights"};
  for (auto [i, table] : llvm::enumerate(tables)) {
    forward.setArgAttr(i, kTableAttr, builder.getStringAttr(table));
    forward.setArgAttr(i, kRolesAttr, builder.getStrArrayAttr({"tokens"}));
    entry->getArgument(i).setLoc(named(table));
  }
  tokens = entry->getArgument(0);
  positions = entry->getArgument(1);
  documents = entry->getArgument(2);
  targets = entry->getArgument(3);
  builder.setInsertionPointToEnd(entry);
}

void LlamaBuilder::createRotaryTable() {
  const RotaryConfig &rotary = config.rotary;
  SmallVector<NamedAttribute> parameters;
  auto addFloat = [&](StringRef name, double value) {
    parameters.push_back(builder.getNamedAttr(name, builder.getF64FloatAttr(value)));
  };
  parameters.push_back(builder.getNamedAttr("rope_type", builder.getStringAttr(rotary.type)));
  addFloat("theta", rotary.theta);
  if (rotary.type != "default")
    addFloat("factor", rotary.factor);
  if (rotary.type == "llama3") {
    addFloat("low_freq_factor", rotary.lowFreqFactor);
    addFloat("high_freq_factor", rotary.highFreqFactor);
    parameters.push_back(
        builder.getNamedAttr("original_max_position_embeddings",
                             builder.getI64IntegerAttr(rotary.originalMaxPositions)));
  }
  auto table =
      RotaryTableOp::create(builder, named("rotary_emb"), uint64_t(config.maxPositions),
                            uint64_t(config.headDim), builder.getDictionaryAttr(parameters));
  cosine = table.getCosine();
  sine = table.getSine();
}

Value LlamaBuilder::parameter(StringRef owner, StringRef kind, ArrayRef<StringRef> roles,
                              ArrayRef<StringRef> aliases) {
  std::string name = (owner + "." + kind).str();
  std::string checkpoint = owner == "lm_head" ? name : "model." + name;
  SmallVector<int64_t> shape;
  for (StringRef role : roles)
    shape.push_back(sizeOf(role));
  ArrayAttr aliasAttr = aliases.empty() ? ArrayAttr() : builder.getStrArrayAttr(aliases);
  OpBuilder before(forward);
  // Weight decay is for matrices.
  auto op =
      ParameterOp::create(before, named(name), checkpoint, RankedTensorType::get(shape, floatType),
                          builder.getStrArrayAttr(roles), checkpoint, aliasAttr, roles.size() == 2);
  return read(op);
}

Value LlamaBuilder::read(ParameterOp parameter) {
  return ReadOp::create(builder, parameter.getLoc(), parameter.getType(), parameter.getSymName());
}

Value LlamaBuilder::linear(StringRef name, Value input, StringRef outRole, StringRef inRole,
                           bool bias) {
  Value weight = parameter(name, "weight", {outRole, inRole});
  Value biasValue = bias ? parameter(name, "bias", {outRole}) : Value();
  return MatmulOp::create(builder, named(name), input, weight, biasValue, /*transpose_a=*/false,
                          /*transpose_b=*/true);
}

Value LlamaBuilder::norm(StringRef name, Value input) {
  Value weight = parameter(name, "weight", {"hidden"});
  return RmsNormOp::create(builder, named(name), input, weight, llvm::APFloat(config.epsilon))
      .getResult();
}

Value LlamaBuilder::attention(const std::string &layer, Value input) {
  std::string name = layer + ".self_attn";
  Value q = linear(name + ".q_proj", input, "heads", "hidden", config.attentionBias);
  Value k = linear(name + ".k_proj", input, "kv_heads", "hidden", config.attentionBias);
  Value v = linear(name + ".v_proj", input, "kv_heads", "hidden", config.attentionBias);
  q = RotaryOp::create(builder, named(name + ".q_rotary"), q, positions, cosine, sine,
                       /*inverse=*/false);
  k = RotaryOp::create(builder, named(name + ".k_rotary"), k, positions, cosine, sine,
                       /*inverse=*/false);
  llvm::APFloat scale(1.0 / std::sqrt(double(config.headDim)));
  Value mixed = AttentionOp::create(builder, named(name), q, k, v, positions, documents, positions,
                                    documents, uint64_t(config.headDim), scale)
                    .getResult();
  return linear(name + ".o_proj", mixed, "hidden", "heads", config.attentionBias);
}

Value LlamaBuilder::mlp(const std::string &layer, Value input) {
  std::string name = layer + ".mlp";
  Value gate = linear(name + ".gate_proj", input, "ffn", "hidden", config.mlpBias);
  Value up = linear(name + ".up_proj", input, "ffn", "hidden", config.mlpBias);
  Value gated = SiluGateOp::create(builder, named(name + ".act_fn"), gate, up);
  return linear(name + ".down_proj", gated, "hidden", "ffn", config.mlpBias);
}

Value LlamaBuilder::head(Value input, ParameterOp embedding) {
  if (!config.tied)
    return linear("lm_head", input, "vocabulary", "hidden", /*bias=*/false);
  return MatmulOp::create(builder, named("lm_head"), input, read(embedding), Value(),
                          /*transpose_a=*/false, /*transpose_b=*/true);
}

OwningOpRef<ModuleOp> LlamaBuilder::build() {
  (*module)->setAttr(kConfigAttr, builder.getStringAttr(config.text));
  (*module)->setAttr(kVocabSizeAttr, builder.getI64IntegerAttr(config.vocabulary));
  createForward();
  createRotaryTable();

  SmallVector<StringRef, 1> aliases;
  if (config.tied)
    aliases.push_back("lm_head.weight");
  Value table = parameter("embed_tokens", "weight", {"vocabulary", "hidden"}, aliases);
  auto embedding = cast<ParameterOp>(
      SymbolTable::lookupSymbolIn(*module, table.getDefiningOp<ReadOp>().getSymbolAttr()));
  Value stream = EmbeddingOp::create(builder, named("embed_tokens"), tokens, table, Value());
  for (int64_t i = 0; i < config.layers; ++i) {
    std::string layer = "layers." + std::to_string(i);
    Value mixed = attention(layer, norm(layer + ".input_layernorm", stream));
    stream = AddOp::create(builder, named(layer + ".self_attn.residual"), stream, mixed);
    Value transformed = mlp(layer, norm(layer + ".post_attention_layernorm", stream));
    stream = AddOp::create(builder, named(layer + ".mlp.residual"), stream, transformed);
  }
  Value logits = head(norm("norm", stream), embedding);
  Value loss = CrossEntropyOp::create(builder, named("loss"), logits, targets);
  func::ReturnOp::create(builder, named("loss"), loss);
  return std::move(module);
}

OwningOpRef<ModuleOp> sftc::importModel(StringRef path, MLIRContext &context) {
  context.loadDialect<SftDialect, func::FuncDialect>();
  FailureOr<ModelConfig> config = readModelConfig(path, context);
  if (failed(config))
    return {};
  OwningOpRef<ModuleOp> module = LlamaBuilder(*config, context).build();
  if (failed(verify(*module)))
    return {};
  return module;
}
