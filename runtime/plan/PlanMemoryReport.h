//===- PlanMemoryReport.h - what a rank needs, and when it needs most ----------===//
//
// Takes a plan that verifyPlan accepts. Arenas of class Activation and Workspace are transient:
// what they hold lives from its first write to its last use inside one program. All other arenas
// live as long as the run.
//
// Liveness is computed over bytes, not buffers, so that views of one another, slices and in-place
// results are counted once: backwards through the instructions, a read makes bytes live and a write
// ends them. (Bytes written before they are read, or never read again, count at the instruction
// that writes them.) Results of a program live to its end. Bytes that `train` or an update reads
// before writing them live to the end of `train`. A repeat may run any number of times, also none.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_PLAN_PLANMEMORYREPORT_H
#define RUNTIME_PLAN_PLANMEMORYREPORT_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sft {

/// Allocations inside an arena begin at multiples of this many bytes.
inline constexpr uint64_t kBufferAlignment = 64;

/// Bytes of transient memory that are live for the sake of one buffer; bytes shared by several
/// buffers go to one of them.
struct LiveBuffer {
  std::string name;
  uint64_t bytes = 0;
};

/// The instruction of one program at which most transient bytes are live.
struct ProgramPeak {
  std::string program;
  /// Index in the program, "12"; inside a repeat "12.3"; empty for a program without instructions.
  std::string instruction;
  std::string kernel;   ///< its kernel, or the kind of collective
  std::string location; ///< "file:line:column", or empty
  uint64_t bytes = 0;   ///< live during the instruction, its operands and workspace included
  /// The same in whole blocks of kBufferAlignment, which no placement can go below.
  uint64_t lower_bound = 0;
  std::vector<LiveBuffer> live; ///< largest first; adds up to `bytes`
};

struct MemoryReport {
  int64_t ranks = 1;                                    ///< of the mesh
  std::vector<std::pair<std::string, uint64_t>> arenas; ///< name and bytes on every rank
  uint64_t total = 0;                ///< bytes that the runtime reserves on a rank: all arenas
  uint64_t persistent = 0;           ///< of the arenas that live as long as the run
  uint64_t activations = 0;          ///< of arenas of class Activation
  uint64_t workspace = 0;            ///< of arenas of class Workspace
  std::vector<ProgramPeak> programs; ///< one for each program, in plan order

  /// Transient bytes reserved; to be compared with peak()->lower_bound.
  uint64_t transient() const { return activations + workspace; }
  /// The program that needs most; null for a plan without programs.
  const ProgramPeak *peak() const;
};

/// The report for one rank: the ranks differ only in where their slices lie. Throws for a rank
/// outside the mesh.
MemoryReport reportMemory(const fb::PlanT &plan, int64_t rank = 0);

/// Bytes of a buffer on one rank.
uint64_t bufferBytes(const fb::BufferT &buffer);

/// Offset in its arena of the part that `rank` holds.
uint64_t bufferOffset(const fb::PlanT &plan, const fb::BufferT &buffer, int64_t rank);

/// "file:line:column", or empty for location 0.
std::string locationText(const fb::PlanT &plan, uint32_t location);

/// Kernel of a launch, "all_gather", "reduce_scatter", "all_reduce", "all_to_all" or "repeat".
std::string instructionName(const fb::PlanT &plan, const fb::InstructionT &instruction);

} // namespace sft

#endif // RUNTIME_PLAN_PLANMEMORYREPORT_H
