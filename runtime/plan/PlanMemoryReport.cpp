#include "runtime/plan/PlanMemoryReport.h"

#include "runtime/base/DType.h"
#include "runtime/base/Error.h"
#include "runtime/plan/KernelSignature.h"

#include <algorithm>
#include <map>

using namespace sft;

namespace {

uint64_t alignUp(uint64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

/// A range of bytes and the buffer it belongs to. Addresses count through all transient arenas.
struct Range {
  uint64_t begin = 0, end = 0;
  uint32_t buffer = 0;
};

/// Disjoint ranges of live bytes.
class LiveBytes {
public:
  void erase(uint64_t begin, uint64_t end) {
    splitAt(begin);
    splitAt(end);
    auto stop = ranges_.lower_bound(end);
    for (auto it = ranges_.lower_bound(begin); it != stop; it = ranges_.erase(it))
      bytes_ -= it->second.end - it->second.begin;
  }
  /// The whole range belongs to its buffer from now on.
  void assign(const Range &range) {
    erase(range.begin, range.end);
    insert(range);
  }
  /// Only those bytes that are not live yet.
  void assignMissing(const Range &range) {
    auto next = ranges_.lower_bound(range.begin);
    uint64_t at = range.begin;
    if (next != ranges_.begin())
      at = std::max(at, std::prev(next)->second.end);
    while (at < range.end) {
      uint64_t end = next == ranges_.end() ? range.end : std::min(range.end, next->first);
      insert({at, end, range.buffer});
      if (end == range.end)
        return;
      at = next->second.end;
      ++next;
    }
  }
  void assignMissing(const LiveBytes &other) {
    for (const auto &[begin, range] : other.ranges_)
      assignMissing(range);
  }
  uint64_t bytes() const { return bytes_; }
  /// Bytes of the aligned blocks that hold a live byte.
  uint64_t alignedBytes() const {
    uint64_t sum = 0, covered = 0;
    for (const auto &[begin, range] : ranges_) {
      uint64_t first = std::max(covered, begin / kBufferAlignment * kBufferAlignment);
      covered = std::max(covered, alignUp(range.end));
      sum += covered - first;
    }
    return sum;
  }
  std::vector<LiveBuffer> byBuffer(const fb::PlanT &plan) const {
    std::map<uint32_t, uint64_t> sums;
    for (const auto &[begin, range] : ranges_)
      sums[range.buffer] += range.end - range.begin;
    std::vector<LiveBuffer> buffers;
    for (auto [buffer, bytes] : sums)
      buffers.push_back({plan.buffers[buffer]->name, bytes});
    std::sort(buffers.begin(), buffers.end(), [](const auto &a, const auto &b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
    });
    return buffers;
  }

private:
  void insert(const Range &range) {
    if (range.begin == range.end)
      return;
    ranges_[range.begin] = range;
    bytes_ += range.end - range.begin;
  }
  void splitAt(uint64_t at) {
    auto next = ranges_.lower_bound(at);
    if (next == ranges_.begin())
      return;
    Range &range = std::prev(next)->second;
    if (range.end <= at)
      return;
    ranges_[at] = {at, range.end, range.buffer};
    range.end = at;
  }

  std::map<uint64_t, Range> ranges_; ///< by begin
  uint64_t bytes_ = 0;
};

bool isTransient(const fb::ArenaT &arena) {
  return arena.class_ == fb::BufferClass::Activation || arena.class_ == fb::BufferClass::Workspace;
}

/// What one instruction does to one operand.
struct Effect {
  bool reads = false, writes = false;
};

/// Transient bytes that are live at each instruction of a program, for one value of its arguments.
class Liveness {
public:
  Liveness(const fb::PlanT &plan, int64_t rank, bool first, bool last)
      : plan_(plan), first_(first), last_(last) {
    uint64_t base = 0;
    std::vector<uint64_t> bases;
    for (const auto &arena : plan.arenas) {
      bases.push_back(base);
      base += alignUp(arena->bytes);
    }
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const fb::BufferT &buffer = *plan.buffers[i];
      Range range = {0, 0, uint32_t(i)};
      if (isTransient(*plan.arenas[buffer.arena])) {
        range.begin = bases[buffer.arena] + bufferOffset(plan, buffer, rank);
        range.end = range.begin + bufferBytes(buffer);
      }
      ranges_.push_back(range); // empty for a buffer that is always there
    }
  }

  /// Walks the program backwards from what is live at its end; returns what is live at its
  /// beginning.
  LiveBytes run(const fb::ProgramT &program, const LiveBytes &atEnd) {
    LiveBytes live = atEnd;
    for (uint32_t result : program.results)
      live.assign(ranges_[result]);
    walk(program.instructions, "", live);
    return live;
  }

  /// Runs once to find the peak and once more to see what is live there.
  ProgramPeak findPeak(const fb::ProgramT &program, const LiveBytes &atEnd) {
    peak_.program = program.name;
    run(program, atEnd);
    found_ = true;
    run(program, atEnd);
    return peak_;
  }

private:
  using Block = std::vector<std::unique_ptr<fb::InstructionT>>;

  bool runs(const fb::InstructionT &instruction) const {
    switch (instruction.when) {
    case fb::When::Always:
      return true;
    case fb::When::First:
      return first_;
    case fb::When::NotFirst:
      return !first_;
    case fb::When::Last:
      return last_;
    }
    return true;
  }

  void walk(const Block &block, const std::string &prefix, LiveBytes &live) {
    for (size_t i = block.size(); i-- > 0;) {
      const fb::InstructionT &instruction = *block[i];
      std::string name = concat(prefix, i);
      if (!runs(instruction))
        continue;
      if (instruction.kind != fb::InstructionKind::Repeat) {
        step(instruction, name, live);
        continue;
      }
      // What the body reads before writing it is live at the end of the round before; two passes
      // reach the fixpoint. Zero rounds leave alone what is live behind the loop.
      LiveBytes behind = live;
      for (int pass = 0; pass < 2; ++pass) {
        walk(instruction.body, name + ".", live);
        live.assignMissing(behind);
      }
    }
  }

  void step(const fb::InstructionT &instruction, const std::string &name, LiveBytes &live) {
    std::vector<Range> reads, writes;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      if (instruction.operands[i]->absent)
        continue;
      Effect effect = effectOn(instruction, i);
      const Range &range = ranges_[instruction.operands[i]->buffer];
      if (effect.reads)
        reads.push_back(range);
      if (effect.writes)
        writes.push_back(range);
    }
    if (instruction.workspace >= 0)
      writes.push_back(ranges_[size_t(instruction.workspace)]);

    for (const Range &range : writes)
      live.assignMissing(range);
    for (const Range &range : reads)
      live.assignMissing(range);
    notePeak(instruction, name, live);

    for (const Range &range : writes)
      live.erase(range.begin, range.end);
    for (const Range &range : reads)
      live.assign(range);
  }

  /// Walking backwards, `>=` names the first of equal instructions.
  void notePeak(const fb::InstructionT &instruction, const std::string &name,
                const LiveBytes &during) {
    if (found_) {
      if (name == peak_.instruction && during.bytes() == peak_.bytes) {
        peak_.lower_bound = during.alignedBytes();
        peak_.live = during.byBuffer(plan_);
      }
    } else if (during.bytes() >= peak_.bytes) {
      peak_.instruction = name;
      peak_.kernel = instructionName(plan_, instruction);
      peak_.location = locationText(plan_, instruction.location);
      peak_.bytes = during.bytes();
    }
  }

  Effect effectOn(const fb::InstructionT &instruction, size_t operand) const {
    if (instruction.kind == fb::InstructionKind::Collective)
      return {operand == 0, operand == 1};
    const fb::KernelT &kernel = *plan_.kernels[instruction.kernel];
    if (kernel.body) {
      bool loads =
          std::any_of(kernel.body->ops.begin(), kernel.body->ops.end(), [&](const auto &op) {
            return op->op == "load" && op->attribute == int32_t(operand);
          });
      bool output = kernel.body->operands[operand]->output;
      return {!output || loads, output};
    }
    const OperandSignature &signature = findKernel(kernel.name)->operands[operand];
    return {signature.in && !(signature.out && overwrites(instruction)), signature.out};
  }

  /// A launch whose in-out operand is only written: its kernel has the parameter `accumulate`,
  /// which says so.
  bool overwrites(const fb::InstructionT &instruction) const {
    const KernelSignature &signature = *findKernel(plan_.kernels[instruction.kernel]->name);
    auto isAccumulate = [](const auto &parameter) { return parameter.name == "accumulate"; };
    if (std::none_of(signature.parameters.begin(), signature.parameters.end(), isAccumulate))
      return false;
    for (const auto &parameter : instruction.parameters)
      if (isAccumulate(*parameter))
        return parameter->i == 0 || (parameter->i == 2 && first_);
    return true; // the default is 0
  }

  const fb::PlanT &plan_;
  bool first_, last_;
  std::vector<Range> ranges_; ///< of every buffer
  ProgramPeak peak_;
  bool found_ = false;
};

/// Calls visit(first, last) for every value of a program's arguments.
template <typename Visit> void forEachInstance(const fb::ProgramT &program, Visit visit) {
  auto has = [&](const char *name) {
    return std::find(program.arguments.begin(), program.arguments.end(), name) !=
           program.arguments.end();
  };
  for (bool first : {true, false})
    for (bool last : {true, false})
      if ((first || has("first")) && (last || has("last")))
        visit(first, last);
}

} // namespace

const ProgramPeak *MemoryReport::peak() const {
  auto most = std::max_element(programs.begin(), programs.end(),
                               [](const auto &a, const auto &b) { return a.bytes < b.bytes; });
  return most == programs.end() ? nullptr : &*most;
}

MemoryReport sft::reportMemory(const fb::PlanT &plan, int64_t rank) {
  MemoryReport report;
  for (const auto &axis : plan.mesh)
    report.ranks *= axis->size;
  if (rank < 0 || rank >= report.ranks)
    fail("rank is not in the mesh (memory report): ", rank, "; 0 to ", report.ranks - 1);
  for (const auto &arena : plan.arenas) {
    report.arenas.emplace_back(arena->name, arena->bytes);
    report.total += arena->bytes;
    (arena->class_ == fb::BufferClass::Activation  ? report.activations
     : arena->class_ == fb::BufferClass::Workspace ? report.workspace
                                                   : report.persistent) += arena->bytes;
  }

  // Only evaluation leaves nothing for the programs after it and takes nothing from those before.
  LiveBytes between;
  for (const auto &program : plan.programs)
    if (program->name != "evaluate")
      forEachInstance(*program, [&](bool first, bool last) {
        between.assignMissing(Liveness(plan, rank, first, last).run(*program, LiveBytes()));
      });
  for (const auto &program : plan.programs) {
    ProgramPeak worst;
    worst.program = program->name;
    const LiveBytes atEnd = program->name == "train" ? between : LiveBytes();
    forEachInstance(*program, [&](bool first, bool last) {
      ProgramPeak peak = Liveness(plan, rank, first, last).findPeak(*program, atEnd);
      if (peak.bytes > worst.bytes || worst.instruction.empty())
        worst = peak;
    });
    report.programs.push_back(worst);
  }
  return report;
}

uint64_t sft::bufferBytes(const fb::BufferT &buffer) {
  uint64_t bytes = dtypeBytes(DType(buffer.dtype));
  for (int64_t size : buffer.shape)
    bytes *= uint64_t(size);
  return bytes;
}

uint64_t sft::bufferOffset(const fb::PlanT &plan, const fb::BufferT &buffer, int64_t rank) {
  // The rank's index inside its group counts in mesh order, fastest axis first.
  int64_t index = 0, stride = 1;
  for (const auto &axis : plan.mesh) {
    if (std::find(buffer.slice_axes.begin(), buffer.slice_axes.end(), axis->name) !=
        buffer.slice_axes.end()) {
      index += rank % axis->size * stride;
      stride *= axis->size;
    }
    rank /= axis->size;
  }
  return buffer.offset + uint64_t(index) * buffer.slice_stride;
}

std::string sft::locationText(const fb::PlanT &plan, uint32_t location) {
  if (location == 0 || location >= plan.locations.size())
    return "";
  const fb::LocationT &place = *plan.locations[location];
  if (place.file.empty())
    return place.name;
  return concat(place.file, ':', place.line, ':', place.column, place.name.empty() ? "" : " ", place.name);
}

std::string sft::instructionName(const fb::PlanT &plan, const fb::InstructionT &instruction) {
  if (instruction.kind == fb::InstructionKind::Launch)
    return plan.kernels[instruction.kernel]->name;
  if (instruction.kind == fb::InstructionKind::Repeat)
    return "repeat";
  switch (instruction.collective) {
  case fb::CollectiveKind::AllGather:
    return "all_gather";
  case fb::CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case fb::CollectiveKind::AllReduce:
    return "all_reduce";
  case fb::CollectiveKind::AllToAll:
    return "all_to_all";
  }
  return "collective";
}
