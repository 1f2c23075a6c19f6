//===- Dump.h - the numbers of a step as files -----------------------------------===//
//
// What an outside judge compares (tools/scripts/compare_dump.py): per step a folder with
//   loss.json                  {"step", "loss" (null: nothing was trained), "grad_norm",
//   "trained_tokens"} token_loss.safetensors     cross entropy of each token as a target,
//   f32[length of the sample], 0 where not trained; the name is
//                              the sample's number in eight decimal digits
//   gradients.safetensors      before clipping, summed over ranks and packs, checkpoint names,
//   global shapes weights.safetensors        after the update
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_SESSION_DUMP_H
#define RUNTIME_SESSION_DUMP_H

#include "runtime/session/Session.h"

#include <optional>
#include <string>

namespace sft {

/// Writes loss.json and token_loss.safetensors into `folder`, made if needed. `gradNorm` is left
/// out when absent.
void dumpLosses(const Session &session, const std::string &folder, int64_t step,
                std::optional<double> loss, std::optional<double> gradNorm, int64_t trainedTokens);
/// Writes gradients.safetensors: between Session::accumulate and Session::update.
void dumpGradients(const Session &session, const std::string &folder);
/// Writes weights.safetensors.
void dumpWeights(const Session &session, const std::string &folder);

} // namespace sft

#endif // RUNTIME_SESSION_DUMP_H
