//===- FactorRule.h - factor strings, parsed ------------------------------------------===//
#ifndef DIALECTS_SFT_FACTORRULE_H
#define DIALECTS_SFT_FACTORRULE_H

#include "mlir/IR/Operation.h"

#include <string>

namespace sftc {

/// One dimension in a factor string.
struct DimensionFactor {
  std::string name;     ///< the factor that may be cut: the only one, or the first of a compound
  std::string compound; ///< "g r d" for `(g r d)`, empty for a single factor
  bool fixed = false;   ///< `name!`: never cut here
};

/// The factor string of one op: for every operand, then every result, its dimensions.
struct FactorRule {
  llvm::SmallVector<llvm::SmallVector<DimensionFactor>> operands, results;

  /// Parses the op's string and checks it against the op's operands and results: as many dimensions as the value has, and the
  /// same size wherever a factor occurs. Fails after a diagnostic.
  static mlir::FailureOr<FactorRule> get(mlir::Operation *op);
  /// The value's dimensions; `index` counts operands, then results.
  llvm::ArrayRef<DimensionFactor> value(unsigned index) const {
    return index < operands.size() ? operands[index] : results[index - operands.size()];
  }
};

/// All operands, then all results.
llvm::SmallVector<mlir::Value> operandsAndResults(mlir::Operation *op);

} // namespace sftc

#endif // DIALECTS_SFT_FACTORRULE_H
