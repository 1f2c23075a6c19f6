//===- BuildUpdate.cpp - parameter groups and the optimizer programs ------------------------===//

#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace sftc {
#define GEN_PASS_DEF_BUILDUPDATE
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {

/// Columns of the flat view of a group. Slices are whole rows, so every slice is aligned and vectors never straddle one.
constexpr int64_t kGroupColumns = 256;
/// Elements to which every parameter is aligned inside its group: 64 bytes of f32.
constexpr int64_t kParameterAlignment = 16;

/// Parameters that are updated by one launch.
struct Group {
  std::string name;
  bool decay = false;
  ArrayAttr axes; ///< over which gradients are partial and the optimizer state is cut
  int64_t ranks = 1, elements = 0;
};

class UpdateBuilder {
public:
  explicit UpdateBuilder(ModuleOp module)
      : module_(module), mesh_(module->getAttrOfType<MeshAttr>(kMeshAttr)),
        builder_(ImplicitLocOpBuilder::atBlockEnd(module.getLoc(), module.getBody())) {}

  LogicalResult run() {
    if (failed(formGroups()))
      return failure();
    declareStates();
    buildReduce();
    buildOptimizer("update", /*adamw=*/true);
    buildOptimizer("update_sgd", /*adamw=*/false);
    return success();
  }

private:
  LogicalResult formGroups() {
    // Axes over which the contributions to each gradient are partial; all contributions must agree, since they are summed first.
    llvm::DenseMap<StringAttr, ArrayAttr> partial;
    WalkResult result = module_.walk([&](AccumulateGradientOp op) {
      ArrayAttr axes = op->getAttrOfType<ArrayAttr>("sft.partial");
      if (!axes)
        axes = builder_.getArrayAttr({});
      ArrayAttr &known = partial[op.getSymbolAttr().getAttr()];
      if (known && known != axes) {
        op.emitError() << "contributions to the gradient of " << op.getSymbolAttr() << " are partial over " << known << " and over " << axes;
        return WalkResult::interrupt();
      }
      known = axes;
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();

    SmallVector<Attribute> batchAxes;
    if (auto axes = module_->getAttrOfType<ArrayAttr>(kBatchAxesAttr))
      for (StringAttr axis : axes.getAsRange<StringAttr>())
        if (mesh_.getSize(axis.getValue()) > 1)
          batchAxes.push_back(axis);

    llvm::DenseMap<Attribute, Type> localTypes;
    module_.walk([&](ReadOp read) { localTypes[read.getSymbolAttr().getAttr()] = read.getResult().getType(); });
    for (auto parameter : module_.getOps<ParameterOp>()) {
      StringAttr symbol = parameter.getSymNameAttr();
      if (!partial.count(symbol))
        return parameter.emitError() << "parameter @" << symbol.getValue() << " gets no gradient";
      SmallVector<Attribute> reduce(partial[symbol].begin(), partial[symbol].end());
      reduce.append(batchAxes);
      ArrayAttr axes = builder_.getArrayAttr(reduce);
      Group &group = groups_[{axes, parameter.getDecay()}];
      if (group.name.empty()) {
        group.decay = parameter.getDecay();
        group.axes = axes;
        group.ranks = mesh_.getSize(axes);
        group.name = group.decay ? "decay" : "no_decay";
        for (Attribute axis : partial[symbol])
          group.name += "_" + cast<StringAttr>(axis).getValue().str();
      }
      auto local = dyn_cast_or_null<RankedTensorType>(localTypes.lookup(symbol));
      if (!local)
        return parameter.emitError() << "parameter @" << symbol.getValue() << " gets a gradient but is read nowhere";
      parameter->setAttr("sft.local_type", TypeAttr::get(local));
      parameter->setAttr("sft.group", builder_.getStringAttr(group.name));
      parameter->setAttr("sft.element_offset", builder_.getI64IntegerAttr(group.elements));
      group.elements += llvm::alignTo(local.getNumElements(), kParameterAlignment);
    }
    for (auto &[key, group] : groups_)
      group.elements = llvm::alignTo(group.elements, kGroupColumns * group.ranks);
    return success();
  }

  RankedTensorType wholeType(const Group &group) {
    return RankedTensorType::get({group.elements / kGroupColumns, kGroupColumns}, builder_.getF32Type());
  }
  RankedTensorType sliceType(const Group &group) {
    return RankedTensorType::get({group.elements / kGroupColumns / group.ranks, kGroupColumns}, builder_.getF32Type());
  }
  RankedTensorType oneType() { return RankedTensorType::get({1}, builder_.getF32Type()); }
  static std::string stateName(const Group &group, StringRef kind, bool slice) {
    return (Twine(kind) + "." + group.name + (slice ? ".slice" : "")).str();
  }

  void declareStates() {
    for (auto &[key, group] : groups_) {
      auto declare = [&](StringRef kind, bool slice) {
        auto state = StateOp::create(builder_, stateName(group, kind, slice), slice ? sliceType(group) : wholeType(group),
                                     kind, group.name, slice);
        state->setAttr("sft.axes", group.axes);
        state->setAttr("sft.decay", builder_.getBoolAttr(group.decay));
      };
      declare("parameter", false);
      declare("gradient", false);
      declare("parameter", true);
      declare("gradient", true);
      declare("exp_avg", true);
      declare("exp_avg_sq", true);
    }
    StateOp::create(builder_, "grad_norm", oneType(), "scalar", "", false);
  }

  func::FuncOp beginFunction(StringRef name, ArrayRef<Type> arguments) {
    builder_.setInsertionPointToEnd(module_.getBody());
    auto function = func::FuncOp::create(builder_, name, builder_.getFunctionType(arguments, {}));
    builder_.setInsertionPointToStart(function.addEntryBlock());
    return function;
  }
  void endFunction() { func::ReturnOp::create(builder_); }

  Value read(const Group &group, StringRef kind, bool slice) {
    return ReadOp::create(builder_, slice ? sliceType(group) : wholeType(group),
                          FlatSymbolRefAttr::get(builder_.getContext(), stateName(group, kind, slice)));
  }
  void write(const Group &group, StringRef kind, bool slice, Value value) {
    WriteOp::create(builder_, value, FlatSymbolRefAttr::get(builder_.getContext(), stateName(group, kind, slice)));
  }

  void buildReduce() {
    beginFunction("reduce_gradients", {});
    for (auto &[key, group] : groups_)
      if (group.ranks > 1) {
        Value whole = read(group, "gradient", false);
        auto kind = ReductionKindAttr::get(builder_.getContext(), ReductionKind::Sum);
        Value slice = ReduceScatterOp::create(builder_, sliceType(group), whole, group.axes, builder_.getI64IntegerAttr(0), kind);
        write(group, "gradient", true, slice);
      }
    endFunction();
  }

  void buildOptimizer(StringRef name, bool adamw) {
    auto scalarsType = RankedTensorType::get({16}, builder_.getF32Type());
    func::FuncOp function = beginFunction(name, {scalarsType});
    function.setArgAttr(0, kTableAttr, builder_.getStringAttr("step_scalars"));
    Value scalars = function.getArgument(0);

    SmallVector<Value> squares;
    for (auto &[key, group] : groups_) {
      Value sum = SumOfSquaresOp::create(builder_, read(group, "gradient", true));
      if (group.ranks > 1)
        sum = AllReduceOp::create(builder_, sum.getType(), sum, group.axes, ReductionKindAttr::get(builder_.getContext(), ReductionKind::Sum));
      squares.push_back(sum);
    }
    auto clip = ClipScaleOp::create(builder_, scalars, squares);
    WriteOp::create(builder_, clip.getNorm(), FlatSymbolRefAttr::get(builder_.getContext(), "grad_norm"));

    for (auto &[key, group] : groups_) {
      Value parameter = read(group, "parameter", true), gradient = read(group, "gradient", true), updated;
      if (adamw) {
        auto op = AdamWOp::create(builder_, parameter, gradient, read(group, "exp_avg", true), read(group, "exp_avg_sq", true),
                                  clip.getScale(), scalars, group.decay);
        write(group, "exp_avg", true, op.getNewExpAvg());
        write(group, "exp_avg_sq", true, op.getNewExpAvgSq());
        updated = op.getNewParameter();
      } else {
        updated = SgdOp::create(builder_, parameter, gradient, clip.getScale(), scalars);
      }
      write(group, "parameter", true, updated);
      if (group.ranks > 1) {
        Value whole = AllGatherOp::create(builder_, wholeType(group), updated, group.axes, builder_.getI64IntegerAttr(0));
        write(group, "parameter", false, whole);
      }
    }
    endFunction();
  }

  ModuleOp module_;
  MeshAttr mesh_;
  ImplicitLocOpBuilder builder_;
  llvm::MapVector<std::pair<ArrayAttr, unsigned>, Group> groups_; ///< by (axes, decay), in the order of first use
};

struct BuildUpdatePass : public sftc::impl::BuildUpdateBase<BuildUpdatePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->getAttrOfType<MeshAttr>(kMeshAttr)) {
      module.emitError() << "has no `" << kMeshAttr << "`";
      return signalPassFailure();
    }
    if (failed(UpdateBuilder(module).run()))
      signalPassFailure();
  }
};

} // namespace
