//===- Flops.h - arithmetic of a program -----------------------------------------===//
#ifndef RUNTIME_SESSION_FLOPS_H
#define RUNTIME_SESSION_FLOPS_H

#include "runtime/plan/plan_generated.h"

namespace sft {

/// Floating point operations of a program on one rank, an addition and a multiplication counted as
/// two.
struct FlopCount {
  double per_pack = 0; ///< matmuls: 2 M N K
  double per_pair =
      0; ///< attention, for each (row, row that it sees): 4 a column of q forward, 8 backward
};
FlopCount countFlops(const fb::PlanT &plan, const fb::ProgramT &program);

} // namespace sft

#endif // RUNTIME_SESSION_FLOPS_H
