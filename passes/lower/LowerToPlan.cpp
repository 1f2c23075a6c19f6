//===- LowerToPlan.cpp - functions into plan programs --------------------------------------------===//

#include "dialects/plan/PlanOps.h"
#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"
#include "runtime/plan/KernelSignature.h"

#include "llvm/ADT/StringSet.h"

namespace sftc {
#define GEN_PASS_DEF_LOWERTOPLAN
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

static MemRefType bufferType(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

namespace {

/// The buffers that live between programs, made on demand while programs are lowered.
class Globals {
public:
  explicit Globals(ModuleOp module)
      : module_(module), mesh_(module->getAttrOfType<MeshAttr>(kMeshAttr)), builder_(module.getContext()) {
    builder_.setInsertionPointToStart(module.getBody());
  }

  /// Arenas and buffers of every parameter and state.
  void declareParametersAndStates() {
    for (auto state : module_.getOps<StateOp>()) {
      std::string group = state.getGroup().str(), kind = state.getKind().str();
      if (kind == "scalar") {
        int64_t offset = reserve("scalars", "state", plan::byteSize(bufferType(state.getType())));
        addGlobal(state.getLoc(), state.getSymName(), bufferType(state.getType()), "scalars", offset);
        continue;
      }
      auto axes = state->getAttrOfType<ArrayAttr>("sft.axes");
      MemRefType type = bufferType(state.getType());
      int64_t ranks = mesh_.getSize(axes);
      bool moment = kind == "exp_avg" || kind == "exp_avg_sq";
      std::string arena = kind + "_arena." + group;
      // A moment is stored as the rank's slice alone; of parameters and gradients the slice is a view of the whole.
      if (moment || !state.getSliced())
        arenas_[arena] = {moment ? "moment" : kind, plan::byteSize(type)};
      bool view = state.getSliced() && !moment && ranks > 1;
      addGlobal(state.getLoc(), state.getSymName(), type, arena, 0, view ? axes : ArrayAttr(), view ? plan::byteSize(type) : 0);
    }
    for (auto parameter : module_.getOps<ParameterOp>()) {
      std::string group = parameter->getAttrOfType<StringAttr>("sft.group").str();
      int64_t offset = parameter->getAttrOfType<IntegerAttr>("sft.element_offset").getInt();
      MemRefType type = bufferType(parameter->getAttrOfType<TypeAttr>("sft.local_type").getValue());
      int64_t bytes = type.getElementTypeBitWidth() / 8;
      addGlobal(parameter.getLoc(), parameter.getSymName(), type, "parameter_arena." + group, offset * bytes);
      addGlobal(parameter.getLoc(), gradientName(parameter.getSymName()), type, "gradient_arena." + group, offset * bytes);
    }
  }

  static std::string gradientName(StringRef parameter) { return (Twine("gradient.") + parameter).str(); }

  /// The table of that kind, made at its first use.
  std::string table(Location loc, StringRef kind, bool whole, MemRefType type, bool persistent = false, DictionaryAttr parameters = {}) {
    std::string name = (Twine("table.") + kind + (whole ? ".whole" : "")).str();
    if (!tables_.insert(name).second)
      return name;
    NamedAttrList attributes;
    attributes.set("kind", builder_.getStringAttr(kind));
    attributes.set("whole", builder_.getBoolAttr(whole));
    attributes.set("persistent", builder_.getBoolAttr(persistent));
    attributes.set("parameters", parameters ? parameters : builder_.getDictionaryAttr({}));
    int64_t offset = reserve("tables", "table", plan::byteSize(type));
    addGlobal(loc, name, type, "tables", offset, {}, 0, attributes.getDictionary(builder_.getContext()));
    return name;
  }

  /// Puts the arenas in front of the globals.
  void finish() {
    builder_.setInsertionPointToStart(module_.getBody());
    for (auto &[name, arena] : arenas_)
      plan::ArenaOp::create(builder_, module_.getLoc(), name, arena.first, uint64_t(arena.second));
  }

private:
  int64_t reserve(const std::string &arena, const std::string &bufferClass, int64_t bytes) {
    auto &entry = arenas_[arena];
    entry.first = bufferClass;
    int64_t offset = entry.second;
    entry.second += plan::alignedSize(bytes);
    return offset;
  }

  void addGlobal(Location loc, StringRef name, MemRefType type, StringRef arena, int64_t offset, ArrayAttr sliceAxes = {},
                 int64_t stride = 0, DictionaryAttr table = {}) {
    plan::GlobalOp::create(builder_, loc, builder_.getStringAttr(name), TypeAttr::get(type),
                           FlatSymbolRefAttr::get(builder_.getContext(), arena), builder_.getI64IntegerAttr(offset), sliceAxes,
                           sliceAxes ? builder_.getI64IntegerAttr(stride) : IntegerAttr(), table);
  }

  ModuleOp module_;
  MeshAttr mesh_;
  OpBuilder builder_;
  std::map<std::string, std::pair<std::string, int64_t>> arenas_;
  llvm::StringSet<> tables_;
};

/// Lowers functions, one after another, into one program.
class ProgramLowering {
public:
  ProgramLowering(ModuleOp module, Globals &globals, plan::ProgramOp program)
      : module_(module), globals_(globals), program_(program), mesh_(module->getAttrOfType<MeshAttr>(kMeshAttr)),
        builder_(ImplicitLocOpBuilder::atBlockEnd(program.getLoc(), &program.getBody().front())) {}

  LogicalResult lower(func::FuncOp function, StringRef when) {
    when_ = builder_.getStringAttr(when);
    for (BlockArgument argument : function.getArguments()) {
      auto kind = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kTableAttr);
      if (!kind)
        return function.emitError() << "argument " << argument.getArgNumber() << " names no table";
      bool whole = bool(function.getArgAttr(argument.getArgNumber(), kWholeAttr));
      if (!argument.use_empty())
        tableArguments_[argument] = {kind.getValue().str(), whole};
    }
    for (Operation &op : function.getBody().front()) {
      builder_.setLoc(op.getLoc());
      if (failed(visit(&op)))
        return failure();
    }
    return success();
  }

private:
  //===--- buffers ------------------------------------------------------===//

  Value get(StringRef global, MemRefType type) {
    Value &buffer = gets_[global];
    if (!buffer) {
      OpBuilder::InsertionGuard guard(builder_);
      builder_.setInsertionPointToStart(&program_.getBody().front());
      buffer = plan::GetOp::create(builder_, type, FlatSymbolRefAttr::get(builder_.getContext(), global));
    }
    return buffer;
  }

  Value table(StringRef kind, bool whole, MemRefType type) {
    return get(globals_.table(builder_.getLoc(), kind, whole, type), type);
  }

  /// A table whose shape follows from the layout of a pack.
  Value layoutTable(StringRef kind) {
    auto integer = [&](StringRef name) { return module_->getAttrOfType<IntegerAttr>(name).getInt(); };
    int64_t padded = integer("sft.padded_tokens"), documents = integer("sft.max_documents");
    auto tokenAxes = module_->getAttrOfType<ArrayAttr>(kTokenAxesAttr);
    auto order = module_->getAttrOfType<StringAttr>(kTokenOrderAttr);
    int64_t ranks = tokenAxes ? mesh_.getSize(tokenAxes) : 1;
    int64_t slots = ranks > 1 && order && order.getValue() == "zigzag" ? 2 : 1;
    int64_t rows = padded / ranks;
    llvm::SmallVector<int64_t> shape;
    if (kind == "squares")
      shape = {slots * documents + 1, 3};
    else if (kind == "rectangles")
      shape = {slots + 1, 4};
    else if (kind == "embedding_order")
      shape = {rows};
    else if (kind == "embedding_segments")
      shape = {rows, 3};
    else if (kind == "slot_permutation")
      shape = {slots * ranks};
    return table(kind, false, MemRefType::get(shape, builder_.getI32Type()));
  }

  Value alloc(StringRef name, MemRefType type) {
    std::string unique = (program_.getSymName() + "." + Twine(counter_++) + "." + name).str();
    return plan::AllocOp::create(builder_, type, builder_.getStringAttr(unique), IntegerAttr(), UnitAttr());
  }

  FailureOr<Value> bufferOf(Value value) {
    if (Value buffer = buffers_.lookup(value))
      return buffer;
    if (auto it = tableArguments_.find(value); it != tableArguments_.end())
      return table(it->second.first, it->second.second, bufferType(value.getType()));
    emitError(value.getLoc()) << "value has no buffer";
    return failure();
  }

  /// The buffer an op's result is to be written to: a state it is stored into, or new memory.
  Value resultBuffer(Value result, StringRef name) {
    for (Operation *user : result.getUsers())
      if (auto write = dyn_cast<WriteOp>(user)) {
        stored_.insert(write);
        return buffers_[result] = get(write.getSymbol(), bufferType(result.getType()));
      }
    Value buffer = alloc(name, bufferType(result.getType()));
    if (llvm::any_of(result.getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); }))
      buffer.getDefiningOp<plan::AllocOp>().setIsResult(true);
    return buffers_[result] = buffer;
  }

  //===--- instructions -------------------------------------------------===//

  struct LaunchOperand {
    Value buffer; ///< null: an absent optional operand
    StringRef access;
  };

  LogicalResult launch(StringRef kernel, ArrayRef<LaunchOperand> operands, ArrayRef<NamedAttribute> parameters,
                       ArrayRef<int64_t> aliases = {}, StringAttr symbol = {}) {
    const ::sft::KernelSignature *signature = ::sft::findKernel(kernel.str());
    if (!signature)
      return emitError(builder_.getLoc()) << "kernel \"" << kernel << "\" is not in Kernels.def";
    SmallVector<Value> buffers;
    SmallVector<int64_t> positions;
    SmallVector<Attribute> accesses;
    std::vector<std::vector<int64_t>> shapes;
    for (auto [position, operand] : llvm::enumerate(operands)) {
      shapes.emplace_back();
      if (!operand.buffer)
        continue;
      shapes.back() = cast<MemRefType>(operand.buffer.getType()).getShape().vec();
      buffers.push_back(operand.buffer);
      positions.push_back(position);
      accesses.push_back(builder_.getStringAttr(operand.access));
    }
    std::map<std::string, int64_t> integers;
    for (NamedAttribute parameter : parameters)
      if (auto integer = dyn_cast<IntegerAttr>(parameter.getValue()))
        integers[parameter.getName().str()] = integer.getInt();
    int64_t bytes = ::sft::kernelWorkspaceBytes(*signature, shapes, integers);
    Value workspace;
    if (bytes > 0)
      workspace = alloc((kernel + ".workspace").str(), MemRefType::get({bytes}, builder_.getI8Type()));
    plan::LaunchOp::create(builder_, builder_.getStringAttr(kernel), buffers, workspace, builder_.getDenseI64ArrayAttr(positions),
                           builder_.getArrayAttr(accesses), builder_.getDictionaryAttr(parameters),
                           builder_.getDenseI64ArrayAttr(aliases), symbol, when_);
    return success();
  }

  NamedAttribute integer(StringRef name, int64_t value) { return builder_.getNamedAttr(name, builder_.getI64IntegerAttr(value)); }

  LogicalResult visit(Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      buffers_[read.getResult()] = get(read.getSymbol(), bufferType(read.getResult().getType()));
      return success();
    }
    if (auto write = dyn_cast<WriteOp>(op))
      return lowerWrite(write);
    if (auto accumulate = dyn_cast<AccumulateGradientOp>(op))
      return lowerAccumulate(accumulate);
    if (auto table = dyn_cast<RotaryTableOp>(op))
      return lowerRotaryTable(table);
    if (auto fused = dyn_cast<FusedOp>(op))
      return lowerFused(fused);
    if (auto attention = dyn_cast<AttentionOp>(op))
      return lowerAttention(attention);
    if (auto gradient = dyn_cast<AttentionGradOp>(op))
      return lowerAttentionGrad(gradient);
    if (auto kernel = dyn_cast<LibraryKernel>(op))
      return lowerLibraryKernel(kernel);
    if (auto reorder = dyn_cast<ReorderOp>(op))
      return lowerReorder(reorder);
    if (isa<AllGatherOp, ReduceScatterOp, AllReduceOp>(op))
      return lowerCollective(op);
    if (isa<func::ReturnOp>(op))
      return success();
    return op->emitError() << op->getName() << " cannot run yet: the runtime has no instruction for it";
  }

  LogicalResult lowerWrite(WriteOp write) {
    if (stored_.contains(write))
      return success();
    FailureOr<Value> value = bufferOf(write.getValue());
    if (failed(value))
      return failure();
    return launch("copy", {{*value, "in"}, {get(write.getSymbol(), cast<MemRefType>((*value).getType())), "out"}}, {});
  }

  /// 2: overwrite in the first pack of a step; 1: add. The first contribution in program order overwrites.
  int64_t accumulateMode(StringRef symbol) { return contributed_.insert(symbol).second ? 2 : 1; }

  /// The parameter whose gradient is the only use of this value, or null.
  static AccumulateGradientOp onlyAccumulated(Value value) {
    return value.hasOneUse() ? dyn_cast<AccumulateGradientOp>(*value.getUsers().begin()) : AccumulateGradientOp();
  }

  Value gradientBuffer(AccumulateGradientOp accumulate) {
    return get(Globals::gradientName(accumulate.getSymbol()), bufferType(accumulate.getValue().getType()));
  }

  LogicalResult lowerAccumulate(AccumulateGradientOp accumulate) {
    if (inPlace_.contains(accumulate))
      return success();
    FailureOr<Value> value = bufferOf(accumulate.getValue());
    if (failed(value))
      return failure();
    return launch("accumulate", {{*value, "in"}, {gradientBuffer(accumulate), "inout"}},
                  {integer("accumulate", accumulateMode(accumulate.getSymbol()))});
  }

  LogicalResult lowerRotaryTable(RotaryTableOp op) {
    NamedAttrList parameters(op.getParameters());
    parameters.set("head_dim", builder_.getI64IntegerAttr(op.getHeadDim()));
    DictionaryAttr dictionary = parameters.getDictionary(builder_.getContext());
    for (auto [result, kind] : {std::pair<Value, StringRef>(op.getCosine(), "rotary_cos"), {op.getSine(), "rotary_sin"}}) {
      MemRefType type = bufferType(result.getType());
      buffers_[result] = get(globals_.table(op.getLoc(), kind, /*whole=*/true, type, /*persistent=*/true, dictionary), type);
    }
    return success();
  }

  LogicalResult lowerFused(FusedOp fused) {
    SmallVector<LaunchOperand> operands;
    for (Value input : fused.getInputs()) {
      FailureOr<Value> buffer = bufferOf(input);
      if (failed(buffer))
        return failure();
      operands.push_back({*buffer, "in"});
    }
    auto nameAttr = fused->getAttrOfType<StringAttr>("sft.name");
    std::string name = nameAttr ? nameAttr.str() : "fused";
    int64_t columnSums = 0;
    SmallVector<int64_t> aliases;
    for (auto [i, result] : llvm::enumerate(fused.getResults())) {
      int64_t position = operands.size();
      AccessKind kind = fused.getOutputAccess(i).getKind();
      if (kind == AccessKind::ColumnSum)
        columnSums |= int64_t(1) << position;
      if (kind == AccessKind::Row)
        for (int64_t input = 0; input < int64_t(fused.getInputs().size()); ++input)
          if (mayShare(fused, input, result.getType()))
            aliases.append({position, input});
      operands.push_back({resultBuffer(result, name), "out"});
    }
    if (!fused.getKernel())
      return fused.emitError() << "has no kernel; run sft-generate-row-kernels first";
    return launch("row_kernel", operands,
                  {integer("rows", fused.getRows()), integer("block_rows", ::sft::kRowBlock), integer("column_sums", columnSums)}, aliases,
                  fused.getKernelAttr());
  }

  /// Every element of a row operand is read before the same element of a row result is written.
  static bool mayShare(FusedOp fused, int64_t input, Type resultType) {
    Value value = fused.getInputs()[input];
    if (value.getType() != resultType)
      return false;
    for (auto [i, other] : llvm::enumerate(fused.getInputs()))
      if (other == value && fused.getInputAccess(i).getKind() != AccessKind::Row)
        return false;
    return true;
  }

  LogicalResult lowerLibraryKernel(LibraryKernel kernel) {
    KernelSpec spec = kernel.getKernelSpec();
    SmallVector<LaunchOperand> operands;
    SmallVector<NamedAttribute> parameters(spec.parameters);
    for (const KernelOperand &operand : spec.operands) {
      switch (operand.kind) {
      case KernelOperand::Input: {
        FailureOr<Value> buffer = bufferOf(operand.value);
        if (failed(buffer))
          return failure();
        operands.push_back({*buffer, "in"});
        break;
      }
      case KernelOperand::TableInput:
        operands.push_back({layoutTable(operand.table), "in"});
        break;
      case KernelOperand::Absent:
        operands.push_back({Value(), "in"});
        break;
      case KernelOperand::Output: {
        const ::sft::KernelSignature *signature = ::sft::findKernel(spec.kernel);
        bool accumulates = signature && llvm::any_of(signature->parameters, [](const auto &p) { return p.name == "accumulate"; });
        AccumulateGradientOp accumulate = accumulates ? onlyAccumulated(operand.value) : AccumulateGradientOp();
        if (accumulate) {
          // The kernel adds to the gradient itself.
          inPlace_.insert(accumulate);
          buffers_[operand.value] = gradientBuffer(accumulate);
          operands.push_back({gradientBuffer(accumulate), "inout"});
          parameters.push_back(integer("accumulate", accumulateMode(accumulate.getSymbol())));
        } else {
          operands.push_back({resultBuffer(operand.value, spec.kernel), "out"});
        }
        break;
      }
      }
    }
    return launch(spec.kernel, operands, parameters);
  }

  /// Whether a slot's rows see rows before the slot: only when a pack is cut.
  bool hasRectangles(Value q, Value k) { return tensorType(q).getDimSize(0) != tensorType(k).getDimSize(0); }

  LogicalResult lowerAttention(AttentionOp op) {
    if (op.getHeadDim() % 8 != 0)
      return op.emitError() << "attention on a CPU needs a head_dim that is a multiple of 8; this model has " << int64_t(op.getHeadDim());
    FailureOr<Value> q = bufferOf(op.getQ()), k = bufferOf(op.getK()), v = bufferOf(op.getV());
    if (failed(q) || failed(k) || failed(v))
      return failure();
    SmallVector<NamedAttribute> parameters = {integer("head_dim", op.getHeadDim()), builder_.getNamedAttr("scale", op.getScaleAttr())};
    Value o = resultBuffer(op.getResult(), "attention"), lse = resultBuffer(op.getLogsumexp(), "logsumexp");
    if (failed(launch("square", {{*q, "in"}, {*k, "in"}, {*v, "in"}, {layoutTable("squares"), "in"}, {o, "out"}, {lse, "out"}}, parameters)))
      return failure();
    if (!hasRectangles(op.getQ(), op.getK()))
      return success();
    return launch("rectangle", {{*q, "in"}, {*k, "in"}, {*v, "in"}, {layoutTable("rectangles"), "in"}, {o, "inout"}, {lse, "inout"}}, parameters);
  }

  LogicalResult lowerAttentionGrad(AttentionGradOp op) {
    SmallVector<LaunchOperand> inputs;
    for (Value value : {op.getGradient(), op.getQ(), op.getK(), op.getV(), op.getResult(), op.getLogsumexp()}) {
      FailureOr<Value> buffer = bufferOf(value);
      if (failed(buffer))
        return failure();
      inputs.push_back({*buffer, "in"});
    }
    Value dq = resultBuffer(op.getQGradient(), "q_gradient"), dk = resultBuffer(op.getKGradient(), "k_gradient"),
          dv = resultBuffer(op.getVGradient(), "v_gradient");
    SmallVector<NamedAttribute> parameters = {integer("head_dim", op.getHeadDim()), builder_.getNamedAttr("scale", op.getScaleAttr())};
    auto launchOver = [&](StringRef kernel, StringRef ranges, StringRef access) {
      SmallVector<LaunchOperand> operands(inputs);
      operands.push_back({layoutTable(ranges), "in"});
      for (Value gradient : {dq, dk, dv})
        operands.push_back({gradient, access});
      return launch(kernel, operands, parameters);
    };
    if (failed(launchOver("square_grad", "squares", "out")))
      return failure();
    return hasRectangles(op.getQ(), op.getK()) ? launchOver("rectangle_grad", "rectangles", "inout") : success();
  }

  LogicalResult lowerReorder(ReorderOp op) {
    FailureOr<Value> input = bufferOf(op.getInput());
    if (failed(input))
      return failure();
    return launch("permute_slots", {{*input, "in"}, {layoutTable("slot_permutation"), "in"}, {resultBuffer(op.getResult(), "reorder"), "out"}},
                  {integer("inverse", op.getInverse())});
  }

  LogicalResult lowerCollective(Operation *op) {
    auto axes = op->getAttrOfType<ArrayAttr>("axes");
    std::string kind = op->getName().stripDialect().str();
    if (auto dimension = op->getAttrOfType<IntegerAttr>("dimension"); dimension && dimension.getInt() != 0)
      return op->emitError() << kind << " along dimension " << dimension.getInt() << " cannot run yet: the runtime moves whole rows";
    FailureOr<Value> input = bufferOf(op->getOperand(0));
    if (failed(input))
      return failure();
    std::string reduction = "sum";
    if (auto attr = op->getAttrOfType<ReductionKindAttr>("kind"))
      reduction = stringifyReductionKind(attr.getValue()).str();
    plan::CollectiveOp::create(builder_, builder_.getStringAttr(kind), axes, *input, resultBuffer(op->getResult(0), kind),
                               builder_.getStringAttr(reduction), when_);
    return success();
  }

  ModuleOp module_;
  Globals &globals_;
  plan::ProgramOp program_;
  MeshAttr mesh_;
  ImplicitLocOpBuilder builder_;
  StringAttr when_;
  int64_t counter_ = 0;
  llvm::DenseMap<Value, Value> buffers_;
  llvm::DenseMap<Value, std::pair<std::string, bool>> tableArguments_;
  llvm::StringMap<Value> gets_;
  llvm::DenseSet<Operation *> stored_, inPlace_;
  llvm::StringSet<> contributed_;
};

struct LowerToPlanPass : public sftc::impl::LowerToPlanBase<LowerToPlanPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (StringRef name : {StringRef(kMeshAttr), StringRef("sft.padded_tokens"), StringRef("sft.max_documents")})
      if (!module->hasAttr(name)) {
        module.emitError() << "has no `" << name << "`";
        return signalPassFailure();
      }
    Globals globals(module);
    globals.declareParametersAndStates();
    // Functions of every program, with the instances in which their instructions run.
    struct Part {
      StringRef function, when;
    };
    struct Program {
      StringRef name;
      SmallVector<StringRef> arguments;
      SmallVector<Part> parts;
    };
    const Program programs[] = {{"train", {"first", "last"}, {{"train", "always"}, {"reduce_gradients", "last"}}},
                                {"evaluate", {}, {{"evaluate", "always"}}},
                                {"update", {}, {{"update", "always"}}},
                                {"update_sgd", {}, {{"update_sgd", "always"}}}};
    OpBuilder builder(&getContext());
    SmallVector<func::FuncOp> lowered;
    SmallVector<plan::ProgramOp> made;
    for (const Program &each : programs) {
      builder.setInsertionPointToEnd(module.getBody());
      auto program = plan::ProgramOp::create(builder, module.getLoc(), builder.getStringAttr(("program." + each.name).str()),
                                             builder.getStrArrayAttr(each.arguments));
      program.getBody().emplaceBlock();
      made.push_back(program);
      ProgramLowering lowering(module, globals, program);
      for (const Part &part : each.parts) {
        auto function = module.lookupSymbol<func::FuncOp>(part.function);
        if (!function) {
          module.emitError() << "has no function @" << part.function;
          return signalPassFailure();
        }
        if (failed(lowering.lower(function, part.when)))
          return signalPassFailure();
        lowered.push_back(function);
      }
    }
    globals.finish();
    for (func::FuncOp function : lowered)
      function.erase();
    for (auto [program, each] : llvm::zip(made, programs))
      program.setSymName(each.name);
    for (auto state : llvm::make_early_inc_range(module.getOps<StateOp>()))
      state.erase();
    keepParameterFacts(module);
  }

  /// Parameters share their symbol with a global now: what the plan file needs of them moves to a list on the module.
  void keepParameterFacts(ModuleOp module) {
    Builder builder(&getContext());
    SmallVector<Attribute> facts;
    for (auto parameter : llvm::make_early_inc_range(module.getOps<ParameterOp>())) {
      NamedAttrList fact;
      fact.set("symbol", parameter.getSymNameAttr());
      fact.set("type", parameter.getTypeAttr());
      fact.set("checkpoint", parameter.getCheckpointAttr());
      fact.set("aliases", parameter.getAliasesAttr() ? Attribute(parameter.getAliasesAttr()) : Attribute(builder.getArrayAttr({})));
      fact.set("group", parameter->getAttr("sft.group"));
      fact.set("element_offset", parameter->getAttr("sft.element_offset"));
      facts.push_back(fact.getDictionary(&getContext()));
      parameter.erase();
    }
    module->setAttr("plan.parameters", builder.getArrayAttr(facts));
  }
};

} // namespace
