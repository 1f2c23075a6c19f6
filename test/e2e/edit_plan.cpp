// Writes a plan with one thing in it changed, for tests that need a wrong plan: sft_edit_plan IN.plan OUT.plan EDIT.
//
// The result has a right header and passes all checks of a plan, unless that is what the edit is about.
#include "runtime/base/Error.h"
#include "runtime/plan/PlanFile.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <map>

using namespace sft;
using Instructions = std::vector<std::unique_ptr<fb::InstructionT>>;

namespace {

Instructions &train(fb::PlanT &plan) {
  for (auto &program : plan.programs)
    if (program->name == "train")
      return program->instructions;
  fail("no program (train)");
}

bool launches(const fb::PlanT &plan, const fb::InstructionT &instruction, const char *kernel) {
  return instruction.kind == fb::InstructionKind::Launch && plan.kernels[instruction.kernel]->name == kernel;
}

bool reduces(const fb::InstructionT &instruction) {
  return instruction.kind == fb::InstructionKind::Collective && instruction.collective == fb::CollectiveKind::ReduceScatter;
}

fb::Parameter_T *parameter(fb::InstructionT &instruction, const char *name) {
  for (auto &entry : instruction.parameters)
    if (entry->name == name)
      return entry.get();
  return nullptr;
}

/// An edit that finds nothing to change would be a test of nothing.
void require(int64_t changed) {
  if (!changed)
    fail("nothing to edit; a context-parallel plan with zigzag order has all that the edits change");
}

/// Launches of permute_slots take the inverse permutation: with two ranks or more, slots change places.
void swapSlots(fb::PlanT &plan, int64_t which) {
  int64_t changed = 0;
  for (auto &instruction : train(plan))
    if (launches(plan, *instruction, "permute_slots") && parameter(*instruction, "inverse")->i == which)
      parameter(*instruction, "inverse")->i = 1 - which, ++changed;
  require(changed);
}

/// Leaves out the reductions of the gradients.
void dropGradientReduction(fb::PlanT &plan) {
  require(int64_t(std::erase_if(train(plan), [](auto &it) { return reduces(*it) && it->when == fb::When::Last; })));
}

/// The gradients of keys and values are not summed over the ranks.
void maximumForSum(fb::PlanT &plan) {
  int64_t changed = 0;
  for (auto &instruction : train(plan))
    if (reduces(*instruction) && instruction->when != fb::When::Last)
      instruction->reduction = fb::Reduction::Max, ++changed;
  require(changed);
}

/// Every gradient is added once more: with cp = 2, scaled by cp.
void scaleGradients(fb::PlanT &plan) {
  Instructions &instructions = train(plan), result;
  int64_t changed = 0;
  for (auto &instruction : instructions) {
    result.push_back(std::move(instruction));
    fb::Parameter_T *accumulate = parameter(*result.back(), "accumulate");
    if (!accumulate || accumulate->i != 2)
      continue;
    result.push_back(std::make_unique<fb::InstructionT>(*result.back()));
    parameter(*result.back(), "accumulate")->i = 1;
    ++changed;
  }
  instructions = std::move(result);
  require(changed);
}

/// Leaves out every launch of a kernel of the program train.
void dropLaunches(fb::PlanT &plan, const char *kernel) {
  require(int64_t(std::erase_if(train(plan), [&](auto &it) { return launches(plan, *it, kernel); })));
}

const std::map<std::string, std::function<void(fb::PlanT &)>> edits = {
    {"nothing", [](fb::PlanT &) {}},
    {"swap-slots", [](fb::PlanT &plan) { swapSlots(plan, 0); }},
    {"swap-slots-backward", [](fb::PlanT &plan) { swapSlots(plan, 1); }},
    {"drop-gradient-reduction", dropGradientReduction},
    {"maximum-for-sum", maximumForSum},
    {"scale-gradients", scaleGradients},
    {"drop-rectangle", [](fb::PlanT &plan) { dropLaunches(plan, "rectangle"); }},
    {"drop-rectangle-grad", [](fb::PlanT &plan) { dropLaunches(plan, "rectangle_grad"); }},
    {"foreign-cpu", [](fb::PlanT &plan) { plan.target->features.push_back("xop"); }},
    {"foreign-target", [](fb::PlanT &plan) { plan.target->kind = "abacus"; }},
    {"foreign-kernel", [](fb::PlanT &plan) { plan.kernels[0]->signature_hash ^= 1; }},
    {"buffer-outside-arena", [](fb::PlanT &plan) { plan.buffers.back()->offset = uint64_t(1) << 40; }},
};

} // namespace

int main(int argc, char **argv) {
  try {
    auto edit = argc == 4 ? edits.find(argv[3]) : edits.end();
    if (edit == edits.end()) {
      std::cerr << "sft_edit_plan IN.plan OUT.plan EDIT, where EDIT is one of:";
      for (const auto &[name, function] : edits)
        std::cerr << ' ' << name;
      std::cerr << '\n';
      return 2;
    }
    fb::PlanT plan = std::move(readPlan(argv[1]).plan);
    edit->second(plan);
    writePlan(argv[2], serializePlan(plan));
    return 0;
  } catch (const Error &error) {
    std::cerr << "sft_edit_plan: error: " << error.what() << '\n';
    return 1;
  }
}
