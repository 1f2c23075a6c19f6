//===- Training.h - the run of sft-run --------------------------------------------===//
#ifndef TOOLS_SFTRUN_TRAINING_H
#define TOOLS_SFTRUN_TRAINING_H

#include "tools/sft-run/Options.h"

namespace sft {

/// Checks everything, trains, evaluates and exports; returns the exit code: 0, or 3 when the run
/// stopped early.
int runTraining(const RunOptions &options);

} // namespace sft

#endif // TOOLS_SFTRUN_TRAINING_H
