//===- PlanFile.h - reading and writing plan files -----------------------------===//
//
// Layout: a 64-byte header, then the FlatBuffers payload of plan.fbs.
//   0  8 bytes  magic "SFTPLAN\n"
//   8  u16 major, u16 minor     version of the format
//   12 u32 header bytes (64)
//   16 u64 payload bytes
//   24 u128 XXH3 of the payload (low, high)
//   40 zeros
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_PLAN_PLANFILE_H
#define RUNTIME_PLAN_PLANFILE_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sft {

inline constexpr uint16_t kPlanMajor = 1;
inline constexpr uint16_t kPlanMinor = 0;

/// A plan in memory and what the header said.
struct PlanFile {
  fb::PlanT plan;
  uint16_t major = 0, minor = 0;
  std::string hash; ///< 32 hexadecimal digits: XXH3-128 of the payload
};

/// Header and payload of a plan.
std::vector<uint8_t> serializePlan(const fb::PlanT &plan);

/// Writes through a temporary name and a rename.
void writePlan(const std::string &path, const std::vector<uint8_t> &bytes);

/// Reads and checks everything once: magic, version, length, hash, FlatBuffers structure, then verifyPlan. Throws one error
/// that lists all problems. After it the rest of the runtime checks nothing again.
PlanFile readPlan(const std::string &path);
/// The same from memory; `name` stands for the file in messages.
PlanFile readPlan(const std::string &name, const uint8_t *bytes, size_t size);

/// Only the header: for `sft-plan version`.
void readPlanVersion(const std::string &path, uint16_t &major, uint16_t &minor);

/// What is wrong inside a structurally sound plan (indices, bounds, kernels and their signatures, slices, groups); empty when
/// nothing is.
std::vector<std::string> verifyPlan(const fb::PlanT &plan);

} // namespace sft

#endif // RUNTIME_PLAN_PLANFILE_H
