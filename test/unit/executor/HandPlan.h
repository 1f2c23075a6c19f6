//===- HandPlan.h - small plans made by hand -----------------------------------------===//
#ifndef TEST_UNIT_EXECUTOR_HANDPLAN_H
#define TEST_UNIT_EXECUTOR_HANDPLAN_H

#include "test/unit/plan/PlanFixture.h"

namespace sft {

/// A plan with one arena, in which every buffer gets a place of its own. Instructions go to the
/// program made last.
class HandPlan : public PlanBuilder {
public:
  explicit HandPlan(const std::vector<std::pair<std::string, uint32_t>> &mesh = {{"cp", 1}}) {
    for (const auto &[name, size] : mesh) {
      plan.mesh.push_back(std::make_unique<fb::MeshAxisT>());
      plan.mesh.back()->name = name;
      plan.mesh.back()->size = size;
    }
    arena("memory", fb::BufferClass::Activation, 0);
    location("", 0);
  }

  uint32_t buffer(const std::string &name, std::vector<int64_t> shape,
                  fb::DType dtype = fb::DType::F32) {
    uint64_t offset = plan.arenas[0]->bytes;
    plan.arenas[0]->bytes += (elements(shape) * 4 + 63) / 64 * 64;
    return PlanBuilder::buffer(name, dtype, std::move(shape), 0, offset);
  }

  /// Part of `whole`, from one of its elements on.
  uint32_t view(const std::string &name, uint32_t whole, uint64_t element,
                std::vector<int64_t> shape) {
    return PlanBuilder::buffer(name, plan.buffers[whole]->dtype, std::move(shape), 0,
                               plan.buffers[whole]->offset + 4 * element);
  }

  /// A rank's share of `whole`, along its first dimension.
  uint32_t slice(uint32_t whole, std::vector<int64_t> shape, std::vector<std::string> axes) {
    const fb::BufferT &buffer = *plan.buffers[whole];
    uint64_t stride = elements(shape) * 4;
    return PlanBuilder::buffer(buffer.name + ".slice", buffer.dtype, std::move(shape), 0,
                               buffer.offset, std::move(axes), stride);
  }

  uint32_t location(const std::string &file, uint32_t line) {
    plan.locations.push_back(std::make_unique<fb::LocationT>());
    plan.locations.back()->file = file;
    plan.locations.back()->line = line;
    plan.locations.back()->column = 3;
    return uint32_t(plan.locations.size() - 1);
  }

  /// A library kernel, by name; an operand of -1 is absent.
  fb::InstructionT &launch(const std::string &name, const std::vector<int64_t> &operands) {
    for (uint32_t i = 0; i < plan.kernels.size(); ++i)
      if (plan.kernels[i]->name == name && !plan.kernels[i]->body)
        return PlanBuilder::launch(block(), i, operands);
    return PlanBuilder::launch(block(), kernel(name), operands);
  }

  fb::InstructionT &collective(fb::CollectiveKind kind, uint32_t input, uint32_t output,
                               std::vector<std::string> axes) {
    return PlanBuilder::collective(block(), kind, std::move(axes), input, output);
  }

  Block &block() { return plan.programs.back()->instructions; }

  static void number(fb::InstructionT &instruction, const std::string &name, double value) {
    instruction.parameters.push_back(std::make_unique<fb::Parameter_T>());
    instruction.parameters.back()->name = name;
    instruction.parameters.back()->kind = fb::ValueKind::Float;
    instruction.parameters.back()->f = value;
  }

private:
  static uint64_t elements(const std::vector<int64_t> &shape) {
    uint64_t product = 1;
    for (int64_t size : shape)
      product *= uint64_t(size);
    return product;
  }
};

} // namespace sft

#endif // TEST_UNIT_EXECUTOR_HANDPLAN_H
