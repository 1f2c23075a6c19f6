//===- Reports.h - what the commands of sft-plan print -------------------------===//
//
// Every report exists as JSON (keys: docs/plan-format.md) and as text made for a person from the
// same plan.
//
//===--------------------------------------------------------------------------===//
#ifndef TOOLS_SFT_PLAN_REPORTS_H
#define TOOLS_SFT_PLAN_REPORTS_H

#include "runtime/plan/PlanFile.h"
#include "runtime/plan/PlanMemoryReport.h"

#include <nlohmann/json.hpp>
#include <string>

namespace sft {

/// Keys stay in the order in which they are written.
using Json = nlohmann::ordered_json;

/// `sft-plan show`: everything a plan says, seen from one rank.
Json showJson(const PlanFile &file, int64_t rank);
std::string showText(const PlanFile &file, int64_t rank);

/// `sft-plan memory`.
Json memoryJson(const fb::PlanT &plan, const MemoryReport &report);
std::string memoryText(const fb::PlanT &plan, const MemoryReport &report);

/// "1,234,567 bytes (1.2 MiB)"
std::string bytesText(uint64_t bytes);

} // namespace sft

#endif // TOOLS_SFT_PLAN_REPORTS_H
