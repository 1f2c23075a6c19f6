//===- PropagateSharding.cpp - how every value lies on the mesh -------------------------===//

#include "passes/Passes.h"
#include "passes/parallel/FactorState.h"

namespace sftc {
#define GEN_PASS_DEF_PROPAGATESHARDING
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {

/// Carries axes between the values of one function until nothing changes.
class Propagation {
public:
  Propagation(ModuleOp module, func::FuncOp function) : module_(module), function_(function) {}

  LogicalResult run() {
    if (failed(seed()))
      return failure();
    SmallVector<std::pair<ShardingRule, FactorRule>> ops;
    WalkResult parsed = function_.walk([&](ShardingRule op) {
      FailureOr<FactorRule> rule = FactorRule::get(op);
      if (failed(rule))
        return WalkResult::interrupt();
      ops.push_back({op, *rule});
      return WalkResult::advance();
    });
    if (parsed.wasInterrupted())
      return failure();
    // Every round fixes at least one dimension, so this ends.
    for (bool changed = true; changed;) {
      changed = false;
      for (auto &[op, rule] : ops)
        changed |= visit(op, rule);
      for (auto &[op, rule] : llvm::reverse(ops))
        changed |= visit(op, rule);
    }
    auto mesh = module_->getAttrOfType<MeshAttr>(kMeshAttr);
    for (auto &[op, rule] : ops)
      if (failed(join(op, rule).verifyDivisible(mesh)))
        return failure();
    annotate();
    return success();
  }

private:
  LogicalResult seed() {
    for (BlockArgument argument : function_.getArguments())
      if (auto roles = function_.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), kRolesAttr)) {
        if (int64_t(roles.size()) != tensorType(argument).getRank())
          return function_.emitError() << "argument " << argument.getArgNumber() << " has " << roles.size() << " roles for "
                                       << tensorType(argument).getRank() << " dimensions";
        axes_[argument] = axesOfRoles(module_, roles);
      }
    SymbolTable symbols(module_);
    function_.walk([&](Operation *op) {
      Value value;
      FlatSymbolRefAttr symbol;
      if (auto read = dyn_cast<ReadOp>(op))
        std::tie(value, symbol) = std::make_tuple(read.getResult(), read.getSymbolAttr());
      else if (auto accumulate = dyn_cast<AccumulateGradientOp>(op))
        std::tie(value, symbol) = std::make_tuple(accumulate.getValue(), accumulate.getSymbolAttr());
      else
        return;
      if (auto parameter = symbols.lookup<ParameterOp>(symbol.getAttr()))
        axes_[value] = axesOfRoles(module_, parameter.getRoles());
    });
    return success();
  }

  DimensionAxes &axesOf(Value value) {
    DimensionAxes &axes = axes_[value];
    if (axes.empty())
      axes.assign(tensorType(value).getRank(), ArrayAttr::get(module_.getContext(), {}));
    return axes;
  }

  FactorState join(ShardingRule op, const FactorRule &rule) {
    FactorState state(op, rule);
    for (auto [index, value] : llvm::enumerate(operandsAndResults(op)))
      state.join(index, axesOf(value));
    return state;
  }

  bool visit(ShardingRule op, const FactorRule &rule) {
    FactorState state = join(op, rule);
    bool changed = false;
    for (auto [index, value] : llvm::enumerate(operandsAndResults(op))) {
      DimensionAxes wanted = state.dimensions(index, module_.getContext());
      DimensionAxes &known = axesOf(value);
      for (auto [dimension, axes] : llvm::enumerate(wanted)) {
        if (axes.empty() || !known[dimension].empty())
          continue;
        bool taken = llvm::any_of(known, [&](ArrayAttr other) {
          return llvm::any_of(axes, [&](Attribute axis) { return llvm::is_contained(other, axis); });
        });
        if (taken)
          continue;
        known[dimension] = axes;
        changed = true;
      }
    }
    return changed;
  }

  ShardingAttr shardingOf(Value value) {
    MLIRContext *context = module_.getContext();
    DimensionAxes &axes = axesOf(value);
    ArrayAttr none = ArrayAttr::get(context, {});
    return ShardingAttr::get(context, ArrayAttr::get(context, SmallVector<Attribute>(axes.begin(), axes.end())), none, none);
  }

  void annotate() {
    Builder builder(module_.getContext());
    for (BlockArgument argument : function_.getArguments())
      function_.setArgAttr(argument.getArgNumber(), kShardingsAttr, builder.getArrayAttr({shardingOf(argument)}));
    function_.walk([&](Operation *op) {
      if (op->getNumResults() == 0 || isa<func::FuncOp>(op))
        return;
      SmallVector<Attribute> shardings;
      for (Value result : op->getResults())
        shardings.push_back(shardingOf(result));
      op->setAttr(kShardingsAttr, builder.getArrayAttr(shardings));
    });
  }

  ModuleOp module_;
  func::FuncOp function_;
  llvm::DenseMap<Value, DimensionAxes> axes_;
};

struct PropagateShardingPass : public sftc::impl::PropagateShardingBase<PropagateShardingPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->getAttrOfType<MeshAttr>(kMeshAttr)) {
      module.emitError() << "has no `" << kMeshAttr << "`";
      return signalPassFailure();
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(Propagation(module, function).run()))
        return signalPassFailure();
  }
};

} // namespace
