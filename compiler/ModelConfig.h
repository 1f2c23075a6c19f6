//===- ModelConfig.h - what a Hugging Face config.json says ---------------------===//
#ifndef COMPILER_MODELCONFIG_H
#define COMPILER_MODELCONFIG_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"

#include <string>

namespace sftc {

/// Rotary embedding; what a type does not use stays 0.
struct RotaryConfig {
  std::string type; ///< default, linear or llama3
  double theta = 0;
  double factor = 0;
  double lowFreqFactor = 0;
  double highFreqFactor = 0;
  int64_t originalMaxPositions = 0;
};

/// A checked configuration of a LlamaForCausalLM. All sizes are positive and fit together.
struct ModelConfig {
  std::string text; ///< config.json as it is
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t maxPositions = 0;
  double epsilon = 0;
  bool tied = false;
  bool attentionBias = false;
  bool mlpBias = false;
  RotaryConfig rotary;
};

/// Reads `path`: a folder with config.json, or the file itself. Every key is consumed, known to be
/// irrelevant to the graph, or reported by a warning; whatever would change numbers and is not
/// supported is an error. All errors of a file are reported, each at its key.
mlir::FailureOr<ModelConfig> readModelConfig(llvm::StringRef path, mlir::MLIRContext &context);

} // namespace sftc

#endif // COMPILER_MODELCONFIG_H
