//===- PlanChecks.h - what the parts of verifyPlan share -----------------------===//
//
// Not for use outside runtime/plan. Nothing here trusts an index or a size of the plan.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_PLAN_PLANCHECKS_H
#define RUNTIME_PLAN_PLANCHECKS_H

#include "runtime/base/Error.h"
#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sft {

/// A plan and the problems found in it so far.
class PlanChecks {
public:
  explicit PlanChecks(const fb::PlanT &plan) : plan(plan) {}

  const fb::PlanT &plan;
  std::vector<std::string> problems;

  /// Adds one line. A badly damaged plan would fill the screen, so the list ends after
  /// kMaxProblems.
  template <typename... Args> void report(const Args &...args) {
    if (problems.size() < kMaxProblems)
      problems.push_back(concat(args...));
    else if (problems.size() == kMaxProblems)
      problems.push_back("further problems are not listed");
  }

  /// Reports an index that does not lie in [0, size); `what` names the list.
  bool inRange(const std::string &where, const char *what, int64_t index, size_t size) {
    if (index >= 0 && uint64_t(index) < size)
      return true;
    report("index out of range (", where, "): ", what, " ", index, "; the plan has ", size);
    return false;
  }
  /// The buffer, or null after a report.
  const fb::BufferT *buffer(const std::string &where, int64_t index) {
    return inRange(where, "buffer", index, plan.buffers.size()) ? plan.buffers[size_t(index)].get()
                                                                : nullptr;
  }
  void location(const std::string &where, uint32_t index) {
    if (index != 0)
      inRange(where, "location", index, plan.locations.size());
  }

  /// Ranks in a group over the axes; reports unknown or repeated axes (which count as 1).
  int64_t groupSize(const std::string &where, const std::vector<std::string> &axes);

  /// Reports a value of an enumeration that this build does not know.
  template <typename Enum> bool known(const std::string &where, const char *what, Enum value) {
    if (uint64_t(value) <= uint64_t(Enum::MAX))
      return true;
    report("unknown ", what, " (", where, "): ", uint64_t(value), "; at most ",
           uint64_t(Enum::MAX));
    return false;
  }

  /// Product of the sizes; nothing when a size is negative or the product passes 2^62.
  static std::optional<int64_t> elements(const std::vector<int64_t> &shape);
  /// Bytes of a buffer; nothing when they cannot be told.
  static std::optional<int64_t> bytes(const fb::BufferT &buffer);
  /// Reports another number of elements than the wanted one; unknowable sizes have been reported
  /// before.
  void wantElements(const std::string &where, const fb::BufferT *buffer,
                    std::optional<int64_t> wanted);

private:
  static constexpr size_t kMaxProblems = 100;
};

/// "[4, 5]"
std::string shapeText(const std::vector<int64_t> &shape);

/// What is inside programs: instructions, kernels' operands and parameters, collectives, repeats
/// and events.
void checkPrograms(PlanChecks &checks);

/// The body of a generated kernel: operands, and operations that refer to earlier values.
void checkRowBody(PlanChecks &checks, const std::string &where, const fb::RowBodyT &body);

/// A launch of a generated kernel over `rows` rows: buffers fit the accesses, `columnSums` marks
/// the column-sum operands.
void checkRowLaunch(PlanChecks &checks, const std::string &where, const fb::RowBodyT &body,
                    const std::vector<const fb::BufferT *> &operands, int64_t rows,
                    int64_t columnSums);

} // namespace sft

#endif // RUNTIME_PLAN_PLANCHECKS_H
