//===- BuildBackward.cpp - @train and @evaluate of @forward --------------------------===//

#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace sftc {
#define GEN_PASS_DEF_BUILDBACKWARD
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace sftc;

namespace {

/// Builds the gradient of the sum of `seed` times the returned values behind the ops of a function.
class Backward {
public:
  explicit Backward(func::FuncOp function)
      : function_(function), return_(cast<func::ReturnOp>(function.getBody().front().getTerminator())), builder_(return_) {}

  LogicalResult run(Value seed) {
    if (return_.getNumOperands() != 1)
      return function_.emitError() << "@forward returns " << return_.getNumOperands() << " values; it returns the token losses alone";
    SmallVector<Operation *> ops;
    for (Operation &op : function_.getBody().front().without_terminator())
      ops.push_back(&op);
    needed_ = valuesThatReachAParameter(ops);
    gradients_[return_.getOperand(0)] = seed;
    backward_.insert(seed);
    for (Operation *op : llvm::reverse(ops))
      if (failed(visit(op)))
        return failure();
    return success();
  }

private:
  /// Values whose gradient matters: those computed from a parameter.
  static llvm::DenseSet<Value> valuesThatReachAParameter(ArrayRef<Operation *> ops) {
    llvm::DenseSet<Value> needed;
    for (Operation *op : ops)
      if (isa<ReadOp>(op) || llvm::any_of(op->getOperands(), [&](Value v) { return needed.contains(v); }))
        needed.insert(op->result_begin(), op->result_end());
    return needed;
  }

  LogicalResult visit(Operation *op) {
    SmallVector<Value> resultGradients;
    bool any = false;
    for (Value result : op->getResults()) {
      resultGradients.push_back(gradients_.lookup(result));
      any |= bool(resultGradients.back());
    }
    if (!any || llvm::none_of(op->getResults(), [&](Value v) { return needed_.contains(v); }))
      return success();
    if (auto read = dyn_cast<ReadOp>(op)) {
      markBackward(AccumulateGradientOp::create(builder_, op->getLoc(), resultGradients[0], read.getSymbolAttr()));
      return success();
    }
    auto differentiable = dyn_cast<Differentiable>(op);
    if (!differentiable)
      return op->emitError() << op->getName() << " lies between a parameter and the loss but has no gradient";
    // Further results (row statistics) are there for gradient ops; gradients through them are not built.
    for (unsigned i = 1; i < resultGradients.size(); ++i)
      if (resultGradients[i])
        return op->emitError() << "the loss depends on result " << i << " of " << op->getName() << ", through which no gradient is built";

    Operation *before = return_->getPrevNode();
    SmallVector<Value> operandGradients;
    differentiable.buildGradient(builder_, resultGradients, operandGradients);
    // Ops that do not depend on a gradient repeat the forward half; unmarked, CSE merges them with it.
    for (Operation *made = before->getNextNode(); made != return_; made = made->getNextNode())
      if (llvm::any_of(made->getOperands(), [&](Value v) { return backward_.contains(v); }))
        markBackward(made);
    for (auto [operand, gradient] : llvm::zip(op->getOperands(), operandGradients))
      if (gradient && needed_.contains(operand))
        add(operand, gradient);
    return success();
  }

  /// A value that is used several times collects the sum of its gradients.
  void add(Value value, Value gradient) {
    Value &total = gradients_[value];
    if (!total) {
      total = gradient;
      return;
    }
    auto sum = AddOp::create(builder_, gradient.getLoc(), total, gradient);
    markBackward(sum);
    total = sum;
  }

  void markBackward(Operation *op) {
    op->setAttr(kBackwardAttr, builder_.getUnitAttr());
    backward_.insert(op->result_begin(), op->result_end());
  }

  func::FuncOp function_;
  func::ReturnOp return_;
  OpBuilder builder_;
  llvm::DenseSet<Value> needed_;
  llvm::DenseSet<Value> backward_; ///< values that depend on a gradient
  llvm::DenseMap<Value, Value> gradients_;
};

struct BuildBackwardPass : public sftc::impl::BuildBackwardBase<BuildBackwardPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>("forward");
    if (!forward || !llvm::hasSingleElement(forward.getBody())) {
      module.emitError() << "has no function @forward with one block; `sftc import` writes one";
      return signalPassFailure();
    }
    Value seed;
    auto train = cast<func::FuncOp>(forward->clone());
    module.insert(forward->getIterator(), train);
    for (unsigned i = 0; i < train.getNumArguments(); ++i) {
      auto table = train.getArgAttrOfType<StringAttr>(i, kTableAttr);
      if (table && table.getValue() == "weights")
        seed = train.getArgument(i);
    }
    if (!seed) {
      forward.emitError() << "has no argument with " << kTableAttr << " = \"weights\", the share of each target in the loss";
      return signalPassFailure();
    }
    train.setName("train");
    forward.setName("evaluate");
    if (failed(Backward(train).run(seed)))
      return signalPassFailure();
    eraseDeadOps(train);
  }

  /// Gradient builders make gradients by every operand; those that nobody wants go again.
  static void eraseDeadOps(func::FuncOp function) {
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front().without_terminator())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }
};

} // namespace
