#include "compiler/Options.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir;
using namespace sftc;

/// "--token-order: zigzog; choices are auto, contiguous, zigzag".
static LogicalResult checkChoice(Location location, StringRef option, StringRef value, ArrayRef<StringRef> choices) {
  if (llvm::is_contained(choices, value))
    return success();
  StringRef nearest = *llvm::min_element(choices, [&](StringRef a, StringRef b) { return value.edit_distance(a) < value.edit_distance(b); });
  InFlightDiagnostic diagnostic = emitError(location) << "unknown value (" << option << "): " << value << "; did you mean " << nearest
                                                      << "? Choices: ";
  llvm::interleaveComma(choices, diagnostic);
  return diagnostic;
}

/// As many as a plan may have.
static constexpr int64_t kMaxRanks = int64_t(1) << 20;

static FailureOr<std::vector<std::pair<std::string, int64_t>>> parseMesh(StringRef text, Location location) {
  std::vector<std::pair<std::string, int64_t>> mesh = {{"tp", 1}, {"cp", 1}, {"dp", 1}, {"pp", 1}};
  SmallVector<StringRef> items;
  text.split(items, ',', -1, /*KeepEmpty=*/false);
  llvm::SmallDenseSet<StringRef> seen;
  for (StringRef item : items) {
    auto [name, sizeText] = item.split('=');
    auto axis = llvm::find_if(mesh, [name = name.trim()](const auto &each) { return each.first == name; });
    int64_t size = 0;
    if (axis == mesh.end())
      return emitError(location) << "unknown mesh axis (--mesh): " << name << "; axes are tp, cp, dp and pp, as in --mesh cp=2,dp=2";
    if (sizeText.trim().getAsInteger(10, size) || size < 1)
      return emitError(location) << "size of a mesh axis is not a positive number (--mesh): " << item << "; write for example " << name
                                 << "=2";
    if (!seen.insert(axis->first).second)
      return emitError(location) << "mesh axis is given twice (--mesh): " << name << "; name it once";
    axis->second = size;
  }
  int64_t ranks = 1;
  for (const auto &[name, size] : mesh) {
    if (size > kMaxRanks / ranks)
      return emitError(location) << "mesh has too many ranks (--mesh): " << text << "; at most " << kMaxRanks;
    ranks *= size;
  }
  return mesh;
}

FailureOr<ResolvedOptions> sftc::resolveOptions(const CompileOptions &options, EmitLevel level, Location location) {
  ResolvedOptions resolved;
  auto mesh = parseMesh(options.mesh, location);
  if (failed(mesh))
    return failure();
  resolved.mesh = *mesh;
  auto size = [&](StringRef axis) {
    return llvm::find_if(resolved.mesh, [&](const auto &each) { return each.first == axis; })->second;
  };
  if (size("pp") > 1)
    return emitError(location) << "pipeline parallelism is not there yet (--mesh): pp=" << size("pp") << "; take pp=1";
  if (size("tp") > 1 && level != EmitLevel::Training && level != EmitLevel::Sharded)
    return emitError(location) << "tensor parallelism can be partitioned but not run yet (--mesh): tp=" << size("tp")
                               << "; take tp=1, or --emit sharded to see the collectives";
  if (options.tokens < 1)
    return emitError(location) << "a pack needs at least one token (--tokens): " << options.tokens << "; give for example --tokens 8192";
  if (options.tokens > (int64_t(1) << 30))
    return emitError(location) << "a pack is too long (--tokens): " << options.tokens << "; the most is " << (int64_t(1) << 30);
  if (options.max_documents < 0)
    return emitError(location) << "a pack holds at least one document (--max-documents): " << options.max_documents << "; leave it out for tokens / 32";
  if (options.precision == "bf16")
    return emitError(location) << "precision is not there yet (--precision): bf16; take fp32";
  if (options.target != "cpu")
    return emitError(location) << "target is not there (--target): " << options.target << "; take cpu";
  for (StringRef method : {"alltoall", "ring", "hybrid"})
    if (options.cp_method == method)
      return emitError(location) << "context-parallel method is not there yet (--cp-method): " << method << "; take gather";
  if (options.token_order == "balanced")
    return emitError(location) << "token order is not there yet (--token-order): balanced; take zigzag";
  if (failed(checkChoice(location, "--precision", options.precision, {"fp32"})) ||
      failed(checkChoice(location, "--cp-method", options.cp_method, {"auto", "gather"})) ||
      failed(checkChoice(location, "--token-order", options.token_order, {"auto", "contiguous", "zigzag"})) ||
      failed(checkChoice(location, "--pad-rule", options.pad_rule, {"derived", "none", "nemo"})))
    return failure();
  bool cut = size("cp") > 1;
  resolved.cp_method = cut ? "gather" : "none";
  resolved.token_order = !cut ? "global" : options.token_order == "auto" ? "zigzag" : options.token_order;
  resolved.max_documents = options.max_documents ? options.max_documents : std::max<int64_t>(16, options.tokens / 32);
  resolved.max_documents = std::min(resolved.max_documents, options.tokens);
  return resolved;
}
