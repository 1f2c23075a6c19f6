//===- Options.h - the command line of sft-run -----------------------------------===//
#ifndef TOOLS_SFTRUN_OPTIONS_H
#define TOOLS_SFTRUN_OPTIONS_H

#include "runtime/data/Data.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sft {

struct RunOptions {
  std::string plan;
  std::string weights;
  std::optional<uint64_t> random_weights;
  std::vector<std::string> data, eval_data;
  std::string output, dump;

  std::optional<int64_t> steps, epochs, stop_after, global_batch, eval_every;
  uint64_t seed = 0;
  OverLong over_long = OverLong::Error;
  Packing packing = Packing::FirstFitDecreasing;

  std::string optimizer = "adamw", schedule = "cosine";
  double lr = 1e-5, min_lr = 0, weight_decay = 0.01, beta1 = 0.9, beta2 = 0.999, eps = 1e-8,
         clip = 1;
  std::optional<int64_t> warmup_steps;

  int threads = 0;
  double timeout = 0;
  bool reference = false, compare = false, quiet = false, json = false;

  std::vector<std::string> command_line;

  bool trains() const { return !steps || *steps > 0; }
};

/// Fills `options`; a value is the exit code to end with at once (after --help or --version).
/// Throws sft::Error(Usage).
std::optional<int> parseOptions(int argc, char **argv, RunOptions &options);

} // namespace sft

#endif // TOOLS_SFTRUN_OPTIONS_H
