//===- PlanMemory.cpp - places of transient buffers -------------------------------------------===//

#include "dialects/plan/PlanOps.h"
#include "passes/Passes.h"

#include "llvm/ADT/EquivalenceClasses.h"

#include <random>

namespace sftc {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {

/// Memory that one or several buffers use one after another, from instruction `begin` to `end` (both included).
struct Block {
  int64_t bytes = 0, begin = 0, end = 0, offset = -1;
  SmallVector<plan::AllocOp> buffers;
  bool liveWith(const Block &other) const { return begin <= other.end && other.begin <= end; }
};

/// Lifetimes of the transient buffers of a program, outputs merged with the inputs whose place they may take.
std::vector<Block> findBlocks(plan::ProgramOp program) {
  llvm::DenseMap<Value, Block> blocks;
  SmallVector<Value> order;
  int64_t time = 0;
  auto touch = [&](Value buffer) {
    auto alloc = buffer.getDefiningOp<plan::AllocOp>();
    if (!alloc)
      return;
    auto [it, isNew] = blocks.try_emplace(buffer);
    if (isNew) {
      it->second.begin = time;
      it->second.bytes = plan::alignedSize(plan::byteSize(buffer));
      it->second.buffers.push_back(alloc);
      order.push_back(buffer);
    }
    it->second.end = time;
  };
  SmallVector<std::pair<int64_t, plan::LaunchOp>> launches;
  for (Operation &op : program.getBody().front()) {
    if (!isa<plan::LaunchOp, plan::CollectiveOp>(op))
      continue;
    for (Value operand : op.getOperands())
      touch(operand);
    if (auto launch = dyn_cast<plan::LaunchOp>(op))
      launches.push_back({time, launch});
    ++time;
  }
  for (auto &[buffer, block] : blocks)
    if (block.buffers.front().getIsResult())
      block.end = time;

  // An output that begins where an input of the same size ends may lie in its place.
  llvm::DenseMap<Value, Value> leader;
  auto find = [&](Value value) {
    while (leader.count(value))
      value = leader[value];
    return value;
  };
  for (auto [now, launch] : launches) {
    llvm::DenseSet<Value> taken;
    ArrayRef<int64_t> aliases = launch.getAliases();
    for (size_t i = 0; i + 1 < aliases.size(); i += 2) {
      Value output = launch.getArguments()[aliases[i]], input = launch.getArguments()[aliases[i + 1]];
      if (!blocks.count(output) || !blocks.count(input) || leader.count(output) || taken.contains(input))
        continue;
      Block &from = blocks[find(input)], &to = blocks[output];
      if (from.end != now || to.begin != now || from.bytes != to.bytes)
        continue;
      leader[output] = find(input);
      from.end = to.end;
      from.buffers.append(to.buffers);
      taken.insert(input);
    }
  }
  std::vector<Block> result;
  for (Value buffer : order)
    if (!leader.count(buffer))
      result.push_back(blocks[buffer]);
  return result;
}

/// Most bytes live at once: no placement needs less.
int64_t lowerBound(const std::vector<Block> &blocks) {
  std::map<int64_t, int64_t> change;
  for (const Block &block : blocks) {
    change[block.begin] += block.bytes;
    change[block.end + 1] -= block.bytes;
  }
  int64_t live = 0, most = 0;
  for (auto [time, bytes] : change)
    most = std::max(most, live += bytes);
  return most;
}

/// Places blocks in the given order, each in the smallest gap that fits between those that are live with it. Returns the end.
int64_t place(std::vector<Block> &blocks, ArrayRef<unsigned> order, int64_t giveUpAt) {
  SmallVector<unsigned> placed; // by offset
  int64_t end = 0;
  for (unsigned index : order) {
    Block &block = blocks[index];
    int64_t free = 0, best = -1, bestGap = std::numeric_limits<int64_t>::max();
    for (unsigned other : placed) {
      if (!blocks[other].liveWith(block))
        continue;
      int64_t gap = blocks[other].offset - free;
      if (gap >= block.bytes && gap < bestGap) {
        best = free;
        bestGap = gap;
      }
      free = std::max(free, blocks[other].offset + blocks[other].bytes);
    }
    block.offset = best >= 0 ? best : free;
    end = std::max(end, block.offset + block.bytes);
    if (end >= giveUpAt)
      return end;
    placed.insert(llvm::upper_bound(placed, index, [&](unsigned a, unsigned b) { return blocks[a].offset < blocks[b].offset; }), index);
  }
  return end;
}

/// Tries several orders and keeps the best.
int64_t placeWell(std::vector<Block> &blocks) {
  int64_t bound = lowerBound(blocks), best = std::numeric_limits<int64_t>::max();
  std::vector<Block> bestBlocks = blocks;
  SmallVector<unsigned> order(llvm::to_vector(llvm::seq<unsigned>(0, blocks.size())));
  auto attempt = [&](ArrayRef<unsigned> candidate) {
    int64_t end = place(blocks, candidate, best);
    if (end >= best)
      return false;
    best = end;
    bestBlocks = blocks;
    return true;
  };
  using Key = std::function<double(const Block &)>;
  const Key keys[] = {[](const Block &b) { return double(b.bytes); },
                      [](const Block &b) { return double(b.end - b.begin); },
                      [](const Block &b) { return double(b.bytes) * double(b.end - b.begin + 1); },
                      [](const Block &b) { return -double(b.begin); }};
  SmallVector<unsigned> bestOrder = order;
  for (const Key &key : keys) {
    SmallVector<unsigned> candidate(order);
    llvm::stable_sort(candidate, [&](unsigned a, unsigned b) { return key(blocks[a]) > key(blocks[b]); });
    if (attempt(candidate))
      bestOrder = candidate;
  }
  // Local search: move a few blocks forward in the best order. Deterministic, and bounded in work.
  std::minstd_rand random(1);
  int64_t rounds = blocks.empty() ? 0 : std::min<int64_t>(400, 40000000 / int64_t(blocks.size() * blocks.size()));
  for (int64_t round = 0; round < rounds && best > bound; ++round) {
    SmallVector<unsigned> candidate(bestOrder);
    for (int moves = 1 + random() % 4; moves > 0; --moves) {
      size_t from = random() % candidate.size(), to = random() % (from + 1);
      std::rotate(candidate.begin() + to, candidate.begin() + from, candidate.begin() + from + 1);
    }
    if (attempt(candidate))
      bestOrder = candidate;
  }
  blocks = std::move(bestBlocks);
  return blocks.empty() ? 0 : best;
}

struct PlanMemoryPass : public sftc::impl::PlanMemoryBase<PlanMemoryPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder builder(&getContext());
    int64_t arena = 0;
    for (auto program : module.getOps<plan::ProgramOp>()) {
      std::vector<Block> blocks = findBlocks(program);
      int64_t bytes = placeWell(blocks), bound = lowerBound(blocks);
      arena = std::max(arena, bytes);
      for (Block &block : blocks)
        for (plan::AllocOp buffer : block.buffers)
          buffer.setOffset(block.offset);
      std::string message;
      llvm::raw_string_ostream(message) << "memory: program " << program.getSymName() << " needs " << bytes << " transient bytes; at most "
                                        << bound << " are live at once";
      emitRemark(program.getLoc()) << message;
    }
    builder.setInsertionPointToStart(module.getBody());
    plan::ArenaOp::create(builder, module.getLoc(), "transient", "activation", uint64_t(arena));
  }
};

} // namespace
