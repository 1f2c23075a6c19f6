#include "tools/sft-plan/Reports.h"

#include <cstdio>
#include <sstream>

using namespace sft;

namespace {

constexpr size_t kLiveLines = 20; ///< of the text form; the JSON form has all

Json peakJson(const ProgramPeak &peak) {
  Json live = Json::array();
  for (const LiveBuffer &buffer : peak.live)
    live.push_back({{"name", buffer.name}, {"bytes", buffer.bytes}});
  return {{"program", peak.program},
          {"instruction", peak.instruction},
          {"kernel", peak.kernel},
          {"location", peak.location},
          {"bytes", peak.bytes},
          {"lower_bound", peak.lower_bound},
          {"live", live}};
}

void printPeak(std::ostream &os, const ProgramPeak &peak) {
  os << "\nprogram " << peak.program << ": " << bytesText(peak.bytes) << " live";
  if (!peak.instruction.empty())
    os << " at instruction " << peak.instruction << " (" << peak.kernel << ")";
  if (!peak.location.empty())
    os << ", " << peak.location;
  os << '\n';
  for (size_t i = 0; i < peak.live.size() && i < kLiveLines; ++i)
    os << "  " << peak.live[i].name << ": " << bytesText(peak.live[i].bytes) << '\n';
  if (peak.live.size() > kLiveLines)
    os << "  and " << peak.live.size() - kLiveLines << " more (--json lists all)\n";
}

} // namespace

std::string sft::bytesText(uint64_t bytes) {
  std::string digits = std::to_string(bytes);
  for (size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, ",");
  if (bytes < 1024)
    return digits + " bytes";
  static constexpr const char *units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = double(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024; value /= 1024)
    ++unit;
  char text[32];
  std::snprintf(text, sizeof(text), " bytes (%.1f %s)", value, units[unit]);
  return digits + text;
}

Json sft::memoryJson(const fb::PlanT &plan, const MemoryReport &report) {
  Json perRank = Json::object();
  for (const auto &[arena, bytes] : report.arenas)
    perRank[arena] = bytes;
  perRank["total"] = report.total;
  Json programs = Json::array();
  for (const ProgramPeak &peak : report.programs)
    programs.push_back(peakJson(peak));
  const ProgramPeak *peak = report.peak();
  return {{"ranks", report.ranks},
          {"per_rank", perRank},
          {"peak", peak ? peakJson(*peak) : Json()},
          {"lower_bound", peak ? peak->lower_bound : 0},
          {"reserved", report.transient()},
          {"programs", programs}};
}

std::string sft::memoryText(const fb::PlanT &plan, const MemoryReport &report) {
  std::ostringstream os;
  os << "memory of every rank (" << report.ranks << (report.ranks == 1 ? " rank)\n" : " ranks)\n");
  for (const auto &[arena, bytes] : report.arenas)
    os << "  " << arena << ": " << bytesText(bytes) << '\n';
  os << "  total: " << bytesText(report.total) << '\n';
  const ProgramPeak *peak = report.peak();
  if (!peak)
    return os.str();
  os << "\ntransient memory (activations and workspace)\n"
     << "  reserved: " << bytesText(report.transient()) << '\n'
     << "  lower bound (most bytes live at once): " << bytesText(peak->lower_bound) << '\n';
  if (peak->lower_bound > 0) {
    char percent[32];
    std::snprintf(percent, sizeof(percent), "%.2f",
                  100.0 * (double(report.transient()) / double(peak->lower_bound) - 1.0));
    os << "  reserved above the lower bound: " << percent << " %\n";
  }
  for (const ProgramPeak &program : report.programs)
    printPeak(os, program);
  return os.str();
}
