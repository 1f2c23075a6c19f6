#include "runtime/executor/Collectives.h"

#include "runtime/base/Error.h"

namespace sft {

namespace {

template <typename Body> class CollectiveStep : public BoundStep {
public:
  explicit CollectiveStep(Body body) : body_(std::move(body)) {}
  void run() override { body_(); }

private:
  Body body_;
};

template <typename Body> std::unique_ptr<BoundStep> makeStep(Body body) {
  return std::make_unique<CollectiveStep<Body>>(std::move(body));
}

} // namespace

std::unique_ptr<BoundStep> bindCollective(const fb::InstructionT &instruction,
                                          const TensorRef &input, const TensorRef &output,
                                          Communicator &group) {
  const void *in = input.data;
  void *out = output.data;
  DType dtype = input.dtype;
  size_t inBytes = input.bytes();
  int64_t inCount = input.elements(), outCount = output.elements();
  ReduceOperator op =
      instruction.reduction == fb::Reduction::Max ? ReduceOperator::Max : ReduceOperator::Sum;
  switch (instruction.collective) {
  case fb::CollectiveKind::AllGather:
    return makeStep([=, &group] { group.allGather(in, out, inBytes); });
  case fb::CollectiveKind::ReduceScatter:
    return makeStep([=, &group] { group.reduceScatter(in, out, outCount, dtype, op); });
  case fb::CollectiveKind::AllReduce:
    return makeStep([=, &group] { group.allReduce(in, out, inCount, dtype, op); });
  case fb::CollectiveKind::AllToAll: {
    size_t part = inBytes / size_t(group.size());
    return makeStep([=, &group] { group.allToAll(in, out, part); });
  }
  }
  failInternal("unknown collective kind ", int(instruction.collective));
}

} // namespace sft
