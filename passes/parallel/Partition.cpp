//===- Partition.cpp - the graph in the shapes of one rank ------------------------------------===//

#include "passes/Passes.h"
#include "passes/parallel/FactorState.h"

#include "mlir/IR/IRMapping.h"

namespace sftc {
#define GEN_PASS_DEF_PARTITION
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {

/// Rewrites one function. Every old value has a new one in the shape of one rank and the sharding in which it is held.
class Partitioner {
public:
  Partitioner(ModuleOp module, func::FuncOp function)
      : module_(module), function_(function), builder_(module.getContext()),
        mesh_(module->getAttrOfType<MeshAttr>(kMeshAttr)), token_axes_(module->getAttrOfType<ArrayAttr>(kTokenAxesAttr)) {
    auto order = module->getAttrOfType<StringAttr>(kTokenOrderAttr);
    zigzag_ = order && order.getValue() == "zigzag";
  }

  LogicalResult run() {
    Block &block = function_.getBody().front();
    for (BlockArgument argument : block.getArguments()) {
      auto sharding = function_.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(), kShardingsAttr);
      if (!sharding)
        return function_.emitError() << "argument " << argument.getArgNumber() << " has no sharding; run sft-propagate-sharding first";
      held_[argument] = cast<ShardingAttr>(sharding[0]);
      global_[argument] = tensorType(argument);
    }
    // Rules check sizes, so they are read before the first value gets the shape of one rank.
    for (Operation &op : block)
      if (isa<ShardingRule>(op)) {
        FailureOr<FactorRule> rule = FactorRule::get(&op);
        if (failed(rule))
          return failure();
        rules_.try_emplace(&op, std::move(*rule));
      }
    for (BlockArgument argument : block.getArguments())
      argument.setType(localType(global_[argument], held_[argument]));

    for (Operation &op : llvm::make_early_inc_range(block))
      if (failed(visit(&op)))
        return failure();
    for (unsigned i = 0; i < function_.getNumArguments(); ++i)
      function_.removeArgAttr(i, kShardingsAttr);
    function_.setType(FunctionType::get(module_.getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
    for (auto [argument, attributes] : llvm::zip(llvm::seq(firstNewArgument_, function_.getNumArguments()), newArguments_))
      function_.setArgAttrs(argument, attributes);
    return success();
  }

private:
  static ShardingAttr make(MLIRContext *context, ArrayRef<ArrayAttr> axes, ArrayAttr sum, ArrayAttr max) {
    return ShardingAttr::get(context, ArrayAttr::get(context, SmallVector<Attribute>(axes.begin(), axes.end())), sum, max);
  }

  RankedTensorType localType(RankedTensorType global, ShardingAttr sharding) {
    SmallVector<int64_t> shape(global.getShape());
    for (auto [dimension, size] : llvm::enumerate(shape))
      size /= mesh_.getSize(sharding.getAxes(dimension));
    return RankedTensorType::get(shape, global.getElementType());
  }

  LogicalResult visit(Operation *op) {
    if (isa<func::ReturnOp>(op))
      return success();
    SmallVector<ShardingAttr> wanted; // how the results are to be held
    if (auto shardings = op->getAttrOfType<ArrayAttr>(kShardingsAttr))
      for (ShardingAttr sharding : shardings.getAsRange<ShardingAttr>())
        wanted.push_back(sharding);
    op->removeAttr(kShardingsAttr);
    if (wanted.size() != op->getNumResults())
      return op->emitError() << "has no shardings; run sft-propagate-sharding first";
    for (Value result : op->getResults())
      global_[result] = tensorType(result);

    auto ruled = dyn_cast<ShardingRule>(op);
    if (!ruled) { // reads: held as their symbol lies
      for (auto [result, sharding] : llvm::zip(op->getResults(), wanted)) {
        held_[result] = sharding;
        result.setType(localType(global_[result], sharding));
      }
      return success();
    }

    const FactorRule &rule = rules_.at(op);
    FactorState state(ruled, rule);
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      state.join(index, axesOf(held_[operand]));
    for (auto [index, sharding] : llvm::enumerate(wanted))
      state.join(op->getNumOperands() + index, axesOf(sharding));

    builder_.setInsertionPoint(op);
    MLIRContext *context = module_.getContext();
    ArrayAttr none = ArrayAttr::get(context, {});
    Attribute backward = op->getAttr(kBackwardAttr);
    SmallVector<Value> newOperands;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      ShardingAttr held = held_[operand];
      bool keepPartial = ruled.acceptsPartial();
      ShardingAttr target = make(context, state.dimensions(index, context), keepPartial ? held.getPartialSum() : none, none);
      FailureOr<Value> local = reshard(operand, target, op->getLoc(), backward);
      if (failed(local))
        return failure();
      newOperands.push_back(*local);
      if (keepPartial)
        op->setAttr("sft.partial", held.getPartialSum());
    }
    op->setOperands(newOperands);

    SmallVector<ShardingAttr> natural;
    for (auto [index, result] : llvm::enumerate(op->getResults())) {
      DimensionAxes dimensions = state.dimensions(op->getNumOperands() + index, context);
      SmallVector<Attribute> missing;
      for (const auto &[factor, axes] : state.axes()) {
        bool present = llvm::any_of(rule.results[index], [&](const DimensionFactor &f) { return f.name == factor && !f.fixed; });
        if (!present)
          llvm::append_range(missing, axes);
      }
      ArrayAttr partial = ArrayAttr::get(context, missing);
      bool max = ruled.getPartialKind() == ReductionKind::Max;
      natural.push_back(make(context, dimensions, max ? none : partial, max ? partial : none));
      result.setType(localType(global_[result], natural.back()));
    }
    ruled.localize(state.axes());

    builder_.setInsertionPointAfter(op);
    for (auto [result, now, want] : llvm::zip(op->getResults(), natural, wanted)) {
      held_[result] = now;
      // Users that take partial sums get them: gradients are reduced once per step.
      bool partialIsFine = !now.getPartialSum().empty() && !result.use_empty() && llvm::all_of(result.getUsers(), [](Operation *user) {
        auto rule = dyn_cast<ShardingRule>(user);
        return rule && rule.acceptsPartial();
      });
      SmallVector<Attribute> kept; // an axis that cuts the value is no longer partial
      for (Attribute axis : now.getPartialSum())
        if (llvm::none_of(axesOf(want), [&](ArrayAttr axes) { return llvm::is_contained(axes, axis); }))
          kept.push_back(axis);
      ShardingAttr target = partialIsFine ? make(context, axesOf(want), ArrayAttr::get(context, kept), none) : want;
      if (target == now)
        continue;
      // Users see the resharded value; the reshard itself reads the op's result.
      Operation *last = op;
      Value moved = buildReshard(result, now, target, global_[result], op->getLoc(), backward, last);
      if (!moved)
        return failure();
      SmallPtrSet<Operation *, 4> made;
      for (Operation *each = op->getNextNode(); each && each != last->getNextNode(); each = each->getNextNode())
        made.insert(each);
      result.replaceAllUsesExcept(moved, made);
      held_[moved] = target;
      RankedTensorType type = global_[result]; // a copy: the insertion may move the entry
      global_[moved] = type;
    }
    return success();
  }

  static DimensionAxes axesOf(ShardingAttr sharding) {
    DimensionAxes result;
    for (unsigned i = 0; i < sharding.getDimensions().size(); ++i)
      result.push_back(sharding.getAxes(i));
    return result;
  }

  /// The value as its user wants it, made once per target in each half of the program.
  FailureOr<Value> reshard(Value value, ShardingAttr target, Location loc, Attribute backward) {
    ShardingAttr held = held_[value];
    if (held == target)
      return value;
    if (auto argument = dyn_cast<BlockArgument>(value); argument && target.isReplicated())
      return wholeArgument(argument);
    Value &known = memo_[{value, target, Attribute(backward)}];
    if (known)
      return known;
    Operation *last = nullptr;
    Value moved = buildReshard(value, held, target, global_[value], loc, backward, last);
    if (!moved)
      return failure();
    return known = moved;
  }

  /// A table is at hand whole as well: it becomes a further argument instead of being gathered.
  Value wholeArgument(BlockArgument argument) {
    Value &whole = whole_[argument];
    if (!whole) {
      Block &block = function_.getBody().front();
      if (newArguments_.empty())
        firstNewArgument_ = block.getNumArguments();
      whole = block.addArgument(global_[argument], argument.getLoc());
      held_[whole] = ShardingAttr::replicated(module_.getContext(), global_[argument].getRank());
      RankedTensorType type = global_[argument]; // a copy: the insertion may move the entry
      global_[whole] = type;
      NamedAttrList attributes(function_.getArgAttrDict(argument.getArgNumber()));
      attributes.erase(kShardingsAttr);
      attributes.set(kWholeAttr, builder_.getUnitAttr());
      newArguments_.push_back(attributes.getDictionary(module_.getContext()));
    }
    return whole;
  }

  bool isZigzag(ArrayAttr axes, unsigned dimension) const { return zigzag_ && dimension == 0 && axes == token_axes_; }

  /// Builds the ops that turn `from` into `to` at the builder's place; null after a diagnostic. `last` is the last op made.
  Value buildReshard(Value value, ShardingAttr from, ShardingAttr to, RankedTensorType global, Location loc, Attribute backward,
                     Operation *&last) {
    MLIRContext *context = module_.getContext();
    ArrayAttr none = ArrayAttr::get(context, {});
    DimensionAxes axes = axesOf(from), target = axesOf(to);
    auto typeNow = [&] { return localType(global, make(context, axes, none, none)); };
    auto emit = [&](Operation *op) {
      if (backward)
        op->setAttr(kBackwardAttr, backward);
      last = op;
      value = op->getResult(0);
    };
    auto reorder = [&](ArrayAttr over, bool inverse) {
      emit(ReorderOp::create(builder_, loc, value.getType(), value, over, inverse));
    };
    auto contains = [](ArrayAttr list, Attribute axis) { return llvm::is_contained(list, axis); };

    for (auto [partial, wanted, kind] : {std::tuple(from.getPartialSum(), to.getPartialSum(), ReductionKind::Sum),
                                         std::tuple(from.getPartialMax(), to.getPartialMax(), ReductionKind::Max)}) {
      SmallVector<Attribute> pending;
      for (Attribute axis : partial)
        if (!contains(wanted, axis))
          pending.push_back(axis);
      // A dimension that is to be cut over axes of the partial sum is cut while reducing.
      for (unsigned i = 0; i < axes.size(); ++i) {
        bool scatter = !target[i].empty() && axes[i].empty() && llvm::all_of(target[i], [&](Attribute axis) { return llvm::is_contained(pending, axis); });
        if (!scatter)
          continue;
        if (isZigzag(target[i], i))
          reorder(target[i], /*inverse=*/true);
        axes[i] = target[i];
        emit(ReduceScatterOp::create(builder_, loc, typeNow(), value, target[i], builder_.getI64IntegerAttr(i), ReductionKindAttr::get(context, kind)));
        llvm::erase_if(pending, [&](Attribute axis) { return contains(target[i], axis); });
      }
      if (!pending.empty())
        emit(AllReduceOp::create(builder_, loc, value.getType(), value, ArrayAttr::get(context, pending), ReductionKindAttr::get(context, kind)));
    }

    // Axes that move from one dimension to another.
    for (unsigned i = 0; i < axes.size(); ++i)
      for (unsigned j = 0; j < axes.size(); ++j) {
        if (i == j || axes[i].empty() || axes[i] != target[j] || !axes[j].empty() || !target[i].empty() || isZigzag(axes[i], i) || isZigzag(axes[i], j))
          continue;
        ArrayAttr moved = axes[i];
        axes[j] = moved;
        axes[i] = none;
        emit(AllToAllOp::create(builder_, loc, typeNow(), value, moved, builder_.getI64IntegerAttr(j), builder_.getI64IntegerAttr(i)));
      }
    for (unsigned i = 0; i < axes.size(); ++i) {
      if (axes[i].empty() || axes[i] == target[i])
        continue;
      ArrayAttr gathered = axes[i];
      axes[i] = none;
      emit(AllGatherOp::create(builder_, loc, typeNow(), value, gathered, builder_.getI64IntegerAttr(i)));
      if (isZigzag(gathered, i))
        reorder(gathered, /*inverse=*/false);
    }
    for (unsigned i = 0; i < axes.size(); ++i) {
      if (!axes[i].empty() || target[i].empty())
        continue;
      if (isZigzag(target[i], i))
        reorder(target[i], /*inverse=*/true);
      axes[i] = target[i];
      emit(SliceOp::create(builder_, loc, typeNow(), value, target[i], builder_.getI64IntegerAttr(i)));
    }
    if (axes != target) {
      mlir::emitError(loc) << "cannot turn sharding " << from << " into " << to;
      return {};
    }
    return value;
  }

  ModuleOp module_;
  func::FuncOp function_;
  OpBuilder builder_;
  MeshAttr mesh_;
  ArrayAttr token_axes_;
  bool zigzag_ = false;
  llvm::DenseMap<Operation *, FactorRule> rules_;
  llvm::DenseMap<Value, ShardingAttr> held_;
  llvm::DenseMap<Value, RankedTensorType> global_;
  llvm::DenseMap<std::tuple<Value, ShardingAttr, Attribute>, Value> memo_;
  llvm::DenseMap<BlockArgument, Value> whole_;
  unsigned firstNewArgument_ = 0;
  SmallVector<DictionaryAttr> newArguments_;
};

struct PartitionPass : public sftc::impl::PartitionBase<PartitionPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->getAttrOfType<MeshAttr>(kMeshAttr)) {
      module.emitError() << "has no `" << kMeshAttr << "`";
      return signalPassFailure();
    }
    for (auto function : module.getOps<func::FuncOp>())
      if (failed(Partitioner(module, function).run()))
        return signalPassFailure();
  }
};

} // namespace
