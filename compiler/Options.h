//===- Options.h - what sftc compile is told ---------------------------------------===//
#ifndef COMPILER_OPTIONS_H
#define COMPILER_OPTIONS_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <utility>
#include <vector>

namespace sftc {

/// Options of one compilation; the defaults are those of the command line.
struct CompileOptions {
  std::string mesh;                 ///< "tp=1,cp=2,dp=1"; axes that are not named have size 1
  int64_t tokens = 0;               ///< real tokens of a pack, at most; must be given
  std::string precision = "fp32";
  std::string target = "cpu";
  std::string target_cpu = "native";
  std::string cp_method = "auto";   ///< auto, gather
  std::string token_order = "auto"; ///< auto, contiguous, zigzag
  std::string pad_rule = "derived"; ///< derived, none, nemo
  int64_t max_documents = 0;        ///< of one pack; 0: tokens / 32, at least 16
  std::string command_line;         ///< kept in the plan, so that messages can ask for recompiling
};

/// The levels at which sftc can stop and print.
enum class EmitLevel { Sft, Training, Sharded, Fused, PlanText, Plan };

/// Options after checking.
struct ResolvedOptions {
  std::vector<std::pair<std::string, int64_t>> mesh; ///< tp, cp, dp, pp
  std::string cp_method;                             ///< none, gather
  std::string token_order;                           ///< global, contiguous, zigzag
  int64_t max_documents = 0;
};

/// Checks the options; on failure one error at `location` that names option, value and the nearest valid choice.
mlir::FailureOr<ResolvedOptions> resolveOptions(const CompileOptions &options, EmitLevel level, mlir::Location location);

} // namespace sftc

#endif // COMPILER_OPTIONS_H
