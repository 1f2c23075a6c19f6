#include "runtime/session/Flops.h"

namespace sft {

FlopCount countFlops(const fb::PlanT &plan, const fb::ProgramT &program) {
  FlopCount count;
  for (const auto &instruction : program.instructions) {
    if (instruction->kind != fb::InstructionKind::Launch)
      continue;
    const std::string &kernel = plan.kernels[instruction->kernel]->name;
    auto shape = [&](size_t operand) -> const std::vector<int64_t> & {
      return plan.buffers[instruction->operands[operand]->buffer]->shape;
    };
    if (kernel == "matmul") {
      int64_t transposed = 0;
      for (const auto &parameter : instruction->parameters)
        if (parameter->name == "transpose_a")
          transposed = parameter->i;
      double m = double(shape(3)[0]), n = double(shape(3)[1]),
             k = double(shape(0)[transposed ? 0 : 1]);
      count.per_pack += 2 * m * n * k;
    } else if (kernel ==
               "square") { // the rectangles' pairs belong to the same documents and columns
      count.per_pair += 4 * double(shape(0)[1]);
    } else if (kernel == "square_grad") {
      count.per_pair += 8 * double(shape(1)[1]);
    }
  }
  return count;
}

} // namespace sft
