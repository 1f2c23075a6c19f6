#include "tools/sft-run/Report.h"

#include "runtime/base/Error.h"

#include <cstdio>
#include <filesystem>
#include <sstream>
#include <unistd.h>

namespace sft {

/// Whether the folder, or the nearest one above it that is there, can be written into.
static bool isWritable(const std::filesystem::path &folder) {
  std::error_code error;
  std::filesystem::path nearest = std::filesystem::absolute(folder, error);
  while (!std::filesystem::exists(nearest, error) && nearest != nearest.parent_path())
    nearest = nearest.parent_path();
  return std::filesystem::is_directory(nearest, error) && access(nearest.c_str(), W_OK) == 0;
}

RunFolder::RunFolder(const std::string &folder) : folder_(folder) {
  if (folder_.empty())
    return;
  std::error_code error;
  if (std::filesystem::exists(folder_ + "/metrics.jsonl", error))
    fail("the folder holds another run (--output): ", folder_,
         "; choose another folder or move this one away");
  if (!isWritable(folder_))
    fail("cannot write into the folder (--output): ", folder_, "; choose another folder");
}

void RunFolder::make() {
  if (folder_.empty())
    return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error)
    fail("cannot write into the folder (--output): ", folder_, "; choose another folder");
}

void RunFolder::metric(const Json &line) {
  if (folder_.empty())
    return;
  std::string path = folder_ + "/metrics.jsonl";
  if (!metrics_.is_open())
    metrics_.open(path);
  metrics_ << line.dump() << '\n';
  if (!metrics_.flush())
    fail("cannot write (", path, "); free space or choose another --output");
}

void RunFolder::writeRun(const Json &json) {
  if (folder_.empty())
    return;
  std::string path = folder_ + "/run.json";
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  if (!file.flush())
    fail("cannot write (", path, "); free space or choose another --output");
}

Progress::Progress(bool quiet, int64_t total)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO)), total_(total),
      begin_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { endLine(); }

void Progress::endLine() {
  if (open_)
    std::fputc('\n', stderr);
  open_ = false;
}

void Progress::say(const std::string &text) {
  if (quiet_)
    return;
  endLine();
  std::fprintf(stderr, "%s\n", text.c_str());
}

void Progress::step(int64_t step, std::optional<double> loss, double tokensPerSecond, double lr) {
  if (quiet_)
    return;
  double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  int64_t left = int64_t(elapsed / double(step) * double(total_ - step) + 0.5);
  char lossText[32] = "none";
  if (loss)
    std::snprintf(lossText, sizeof lossText, "%.4f", *loss);
  std::fprintf(stderr,
               "%sstep %lld/%lld  loss %s  %.0f tokens/s  lr %.3g  ETA %lld:%02lld:%02lld%s",
               terminal_ ? "\r\033[K" : "", static_cast<long long>(step),
               static_cast<long long>(total_), lossText, tokensPerSecond, lr,
               static_cast<long long>(left / 3600), static_cast<long long>(left / 60 % 60),
               static_cast<long long>(left % 60), terminal_ ? "" : "\n");
  open_ = terminal_;
}

int64_t residentPeakBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.rfind("VmHWM:", 0) == 0)
      return std::stoll(line.substr(6)) * 1024;
  return 0;
}

} // namespace sft
