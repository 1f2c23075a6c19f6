#include "runtime/base/Error.h"
#include "runtime/data/Data.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sft {

double learningRate(const ScheduleOptions &options, int64_t step) {
  bool cosine = options.kind == "cosine", linear = options.kind == "linear";
  if (!cosine && !linear && options.kind != "constant")
    fail("unknown schedule (--lr-schedule): ", options.kind, "; constant, linear or cosine");
  if (step < options.warmup)
    return options.lr * double(step) / double(options.warmup);
  int64_t peak = std::max<int64_t>(options.warmup, 1);
  if ((!cosine && !linear) || options.total <= peak)
    return options.lr;
  double progress = std::clamp(double(step - peak) / double(options.total - peak), 0.0, 1.0);
  double share = linear ? 1 - progress : (1 + std::cos(std::numbers::pi * progress)) / 2;
  return options.min_lr + (options.lr - options.min_lr) * share;
}

} // namespace sft
