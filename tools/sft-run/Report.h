//===- Report.h - what a run says and writes --------------------------------------===//
#ifndef TOOLS_SFTRUN_REPORT_H
#define TOOLS_SFTRUN_REPORT_H

#include "tools/sft-run/Options.h"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace sft {

using Json = nlohmann::ordered_json;

/// The output folder: metrics.jsonl, one object a line, and run.json.
class RunFolder {
public:
  /// An empty folder name: nothing is written. Refuses a folder that holds another run or cannot be
  /// written into, and makes nothing yet.
  explicit RunFolder(const std::string &folder);
  /// Makes the folder, once everything else has been checked.
  void make();
  bool present() const { return !folder_.empty(); }
  const std::string &path() const { return folder_; }
  /// Appends a line to metrics.jsonl, opened by the first. Floats are printed with the fewest
  /// digits that read back to the same bits.
  void metric(const Json &line);
  /// Replaces run.json.
  void writeRun(const Json &json);

private:
  std::string folder_;
  std::ofstream metrics_;
};

/// Progress for people, on standard error: one line that is rewritten on a terminal, lines
/// otherwise.
class Progress {
public:
  Progress(bool quiet, int64_t total);
  ~Progress();
  /// A line of its own.
  void say(const std::string &text);
  void step(int64_t step, std::optional<double> loss, double tokensPerSecond, double lr);

private:
  void endLine();

  bool quiet_, terminal_, open_ = false;
  int64_t total_;
  std::chrono::steady_clock::time_point begin_;
};

/// Most memory that this process had resident, in bytes (VmHWM); 0 where the system does not say.
int64_t residentPeakBytes();

} // namespace sft

#endif // TOOLS_SFTRUN_REPORT_H
