#include "compiler/EmitPlan.h"

#include "compiler/Frontend.h"
#include "dialects/plan/PlanOps.h"
#include "dialects/sft/SftOps.h"
#include "passes/codegen/GenerateRowKernels.h"
#include "runtime/plan/KernelSignature.h"

#include "mlir/IR/AsmState.h"

using namespace mlir;
using namespace sftc;
namespace fb = ::sft::fb;

namespace {

class PlanEmitter {
public:
  PlanEmitter(ModuleOp module, const EmitInputs &inputs) : module_(module), inputs_(inputs), plan_(std::make_unique<fb::PlanT>()) {}

  FailureOr<std::unique_ptr<fb::PlanT>> run() {
    plan_->locations.push_back(std::make_unique<fb::LocationT>()); // 0: unknown
    emitSettings();
    emitArenas();
    emitGlobals();
    emitParameters();
    emitGroups();
    if (failed(emitCode()))
      return failure();
    for (auto program : module_.getOps<plan::ProgramOp>())
      emitProgram(program);
    return std::move(plan_);
  }

private:
  int64_t integer(StringRef name) { return module_->getAttrOfType<IntegerAttr>(name).getInt(); }
  std::string string(StringRef name) {
    auto attribute = module_->getAttrOfType<StringAttr>(name);
    return attribute ? attribute.str() : "";
  }
  static std::vector<std::string> strings(ArrayAttr list) {
    std::vector<std::string> result;
    if (list)
      for (StringAttr each : list.getAsRange<StringAttr>())
        result.push_back(each.str());
    return result;
  }

  uint32_t location(Location place) {
    fb::LocationT found;
    place->walk([&](Location part) {
      if (auto file = dyn_cast<FileLineColLoc>(part)) {
        found.file = file.getFilename().str();
        found.line = file.getLine();
        found.column = file.getColumn();
      } else if (auto named = dyn_cast<NameLoc>(part); named && found.name.empty()) {
        found.name = named.getName().str();
      }
      return WalkResult::advance();
    });
    if (found.file.empty() && found.name.empty())
      return 0;
    auto key = std::make_tuple(found.file, found.line, found.column, found.name);
    auto [it, isNew] = locations_.try_emplace(key, uint32_t(plan_->locations.size()));
    if (isNew)
      plan_->locations.push_back(std::make_unique<fb::LocationT>(found));
    return it->second;
  }

  static fb::DType dtype(Type type) {
    if (type.isF32())
      return fb::DType::F32;
    if (type.isBF16())
      return fb::DType::BF16;
    if (type.isInteger(32))
      return fb::DType::I32;
    return fb::DType::U8;
  }

  void emitSettings() {
    plan_->producer = "sftc " SFTC_VERSION;
    plan_->command_line = inputs_.options->command_line;
    for (const auto &[name, size] : inputs_.resolved->mesh) {
      auto axis = std::make_unique<fb::MeshAxisT>();
      axis->name = name;
      axis->size = size;
      plan_->mesh.push_back(std::move(axis));
    }
    plan_->tokens = integer(kTokensAttr);
    plan_->padded_tokens = integer("sft.padded_tokens");
    plan_->max_documents = integer("sft.max_documents");
    plan_->precision = inputs_.options->precision;
    plan_->cp_method = inputs_.resolved->cp_method;
    plan_->token_order = inputs_.resolved->token_order;
    plan_->token_axes = strings(module_->getAttrOfType<ArrayAttr>(kTokenAxesAttr));
    plan_->batch_axes = strings(module_->getAttrOfType<ArrayAttr>(kBatchAxesAttr));
    plan_->vocab_size = integer(kVocabSizeAttr);
    plan_->config = string(kConfigAttr);
    plan_->source = inputs_.source;
    for (DictionaryAttr reason : module_->getAttrOfType<ArrayAttr>(kPadReasonsAttr).getAsRange<DictionaryAttr>()) {
      auto made = std::make_unique<fb::PadReasonT>();
      made->op = reason.getAs<StringAttr>("op").str();
      made->multiple = reason.getAs<IntegerAttr>("multiple").getInt();
      made->why = reason.getAs<StringAttr>("why").str();
      plan_->pad_reasons.push_back(std::move(made));
    }
    for (const fb::RemarkT &remark : inputs_.remarks)
      plan_->remarks.push_back(std::make_unique<fb::RemarkT>(remark));
  }

  static fb::BufferClass bufferClass(StringRef name) {
    static constexpr StringLiteral names[] = {"parameter", "master", "moment", "gradient", "state", "activation", "workspace", "table"};
    return fb::BufferClass(llvm::find(names, name) - std::begin(names));
  }

  void emitArenas() {
    for (auto op : module_.getOps<plan::ArenaOp>()) {
      auto arena = std::make_unique<fb::ArenaT>();
      arena->name = op.getSymName().str();
      arena->class_ = bufferClass(op.getBufferClass());
      arena->bytes = op.getBytes();
      arenas_[arena->name] = plan_->arenas.size();
      plan_->arenas.push_back(std::move(arena));
    }
  }

  uint32_t addBuffer(StringRef name, MemRefType type, StringRef arena, uint64_t offset, Location place) {
    auto buffer = std::make_unique<fb::BufferT>();
    buffer->name = name.str();
    buffer->arena = arenas_.at(arena.str());
    buffer->class_ = plan_->arenas[buffer->arena]->class_;
    buffer->dtype = dtype(type.getElementType());
    buffer->shape = type.getShape().vec();
    buffer->offset = offset;
    buffer->location = location(place);
    plan_->buffers.push_back(std::move(buffer));
    return plan_->buffers.size() - 1;
  }

  void emitGlobals() {
    for (auto op : module_.getOps<plan::GlobalOp>()) {
      uint32_t index = addBuffer(op.getSymName(), cast<MemRefType>(op.getType()), op.getArena(), op.getOffset(), op.getLoc());
      globals_[op.getSymName()] = index;
      fb::BufferT &buffer = *plan_->buffers[index];
      if (op.getSliceAxes()) {
        buffer.slice_axes = strings(op.getSliceAxesAttr());
        buffer.slice_stride = *op.getSliceStride();
      }
      if (DictionaryAttr description = op.getTableAttr()) {
        auto table = std::make_unique<fb::TableT>();
        table->kind = description.getAs<StringAttr>("kind").str();
        table->whole = description.getAs<BoolAttr>("whole").getValue();
        table->persistent = description.getAs<BoolAttr>("persistent").getValue();
        table->parameters = parameters(description.getAs<DictionaryAttr>("parameters"));
        table->buffer = index;
        if (table->kind == "step_scalars")
          buffer.class_ = fb::BufferClass::StepScalars;
        plan_->tables.push_back(std::move(table));
      }
    }
  }

  static std::vector<std::unique_ptr<fb::Parameter_T>> parameters(DictionaryAttr dictionary) {
    std::vector<std::unique_ptr<fb::Parameter_T>> result;
    for (NamedAttribute each : dictionary) {
      auto parameter = std::make_unique<fb::Parameter_T>();
      parameter->name = each.getName().str();
      if (auto value = dyn_cast<IntegerAttr>(each.getValue())) {
        parameter->kind = fb::ValueKind::Integer;
        parameter->i = value.getInt();
      } else if (auto value = dyn_cast<FloatAttr>(each.getValue())) {
        parameter->kind = fb::ValueKind::Float;
        parameter->f = value.getValueAsDouble();
      } else if (auto value = dyn_cast<StringAttr>(each.getValue())) {
        parameter->kind = fb::ValueKind::String;
        parameter->s = value.str();
      }
      result.push_back(std::move(parameter));
    }
    return result;
  }

  void emitParameters() {
    for (DictionaryAttr fact : module_->getAttrOfType<ArrayAttr>("plan.parameters").getAsRange<DictionaryAttr>()) {
      auto parameter = std::make_unique<fb::ModelParameterT>();
      StringRef symbol = fact.getAs<StringAttr>("symbol").getValue();
      auto type = cast<RankedTensorType>(fact.getAs<TypeAttr>("type").getValue());
      parameter->name = fact.getAs<StringAttr>("checkpoint").str();
      parameter->aliases = strings(fact.getAs<ArrayAttr>("aliases"));
      parameter->global_shape = type.getShape().vec();
      for (int64_t i = 0; i < type.getRank(); ++i)
        parameter->dimensions.push_back(std::make_unique<fb::DimensionT>());
      std::string group = fact.getAs<StringAttr>("group").str();
      parameter->group = groups_.try_emplace(group, groups_.size()).first->second;
      parameter->buffer = globals_.lookup(symbol);
      parameter->gradient = globals_.lookup(("gradient." + symbol).str());
      parameter->element_offset = fact.getAs<IntegerAttr>("element_offset").getInt();
      parameter->location = plan_->buffers[parameter->buffer]->location;
      plan_->parameters.push_back(std::move(parameter));
    }
  }

  void emitGroups() {
    plan_->groups.resize(groups_.size());
    for (const auto &[name, index] : groups_) {
      auto group = std::make_unique<fb::GroupT>();
      auto buffer = [&, &name = name](StringRef kind, StringRef suffix) { return globals_.lookup((kind + "." + name + suffix).str()); };
      group->name = name;
      group->dtype = fb::DType::F32;
      group->trainable = true;
      group->decay = StringRef(name).starts_with("decay");
      group->parameter_buffer = buffer("parameter", "");
      group->gradient_buffer = buffer("gradient", "");
      group->parameter_slice = buffer("parameter", ".slice");
      group->gradient_slice = buffer("gradient", ".slice");
      group->exp_avg = buffer("exp_avg", ".slice");
      group->exp_avg_sq = buffer("exp_avg_sq", ".slice");
      group->reduce_axes = plan_->buffers[group->parameter_slice]->slice_axes;
      group->elements = 1;
      for (int64_t size : plan_->buffers[group->parameter_buffer]->shape)
        group->elements *= size;
      plan_->groups[index] = std::move(group);
    }
  }

  LogicalResult emitCode() {
    auto target = std::make_unique<fb::TargetT>();
    target->name = inputs_.options->target;
    target->kind = "cpu";
    if (auto used = module_->getAttrOfType<DictionaryAttr>(kKernelTargetAttr)) {
      target->cpu = used.getAs<StringAttr>("cpu").str();
      target->features = strings(used.getAs<ArrayAttr>("features"));
    }
    plan_->target = std::move(target);
    ArrayRef<uint8_t> object = getKernelObject(module_);
    if (object.empty())
      return module_.emitError() << "has no generated code; run sft-generate-row-kernels first";
    auto blob = std::make_unique<fb::BlobT>();
    blob->format = "elf-x86-64";
    blob->bytes.assign(object.begin(), object.end());
    plan_->blobs.push_back(std::move(blob));
    return success();
  }

  uint32_t kernel(StringRef name, StringRef symbol) {
    auto [it, isNew] = kernels_.try_emplace({name.str(), symbol.str()}, uint32_t(plan_->kernels.size()));
    if (!isNew)
      return it->second;
    auto made = std::make_unique<fb::KernelT>();
    made->name = name.str();
    made->signature_hash = ::sft::findKernel(made->name)->hash;
    if (!symbol.empty()) {
      made->blob = 0;
      made->symbol = symbol.str();
      made->body = std::make_unique<fb::RowBodyT>(inputs_.bodies->at(made->symbol));
    }
    plan_->kernels.push_back(std::move(made));
    return it->second;
  }

  static fb::When when(StringRef name) {
    return name == "last" ? fb::When::Last : name == "first" ? fb::When::First : fb::When::Always;
  }

  void emitProgram(plan::ProgramOp op) {
    auto program = std::make_unique<fb::ProgramT>();
    program->name = op.getSymName().str();
    program->arguments = strings(op.getArguments());
    llvm::DenseMap<Value, uint32_t> buffers;
    for (Operation &each : op.getBody().front()) {
      if (auto get = dyn_cast<plan::GetOp>(each)) {
        buffers[get.getBuffer()] = globals_.lookup(get.getGlobal());
      } else if (auto alloc = dyn_cast<plan::AllocOp>(each)) {
        // A result is found by its name, whatever made it.
        std::string name = alloc.getIsResult() ? (op.getSymName() + ".token_loss").str() : alloc.getName().str();
        uint32_t index = addBuffer(name, cast<MemRefType>(alloc.getBuffer().getType()), "transient", *alloc.getOffset(), alloc.getLoc());
        if (StringRef(name).ends_with(".workspace"))
          plan_->buffers[index]->class_ = fb::BufferClass::Workspace;
        buffers[alloc.getBuffer()] = index;
        if (alloc.getIsResult())
          program->results.push_back(index);
      } else if (auto launch = dyn_cast<plan::LaunchOp>(each)) {
        program->instructions.push_back(emitLaunch(launch, buffers));
      } else if (auto collective = dyn_cast<plan::CollectiveOp>(each)) {
        program->instructions.push_back(emitCollective(collective, buffers));
      }
    }
    plan_->programs.push_back(std::move(program));
  }

  static std::unique_ptr<fb::OperandT> operand(uint32_t buffer, bool absent = false) {
    auto made = std::make_unique<fb::OperandT>();
    made->buffer = buffer;
    made->absent = absent;
    return made;
  }

  std::unique_ptr<fb::InstructionT> emitLaunch(plan::LaunchOp op, const llvm::DenseMap<Value, uint32_t> &buffers) {
    auto instruction = std::make_unique<fb::InstructionT>();
    instruction->kind = fb::InstructionKind::Launch;
    instruction->when = when(op.getWhen());
    instruction->kernel = kernel(op.getKernel(), op.getSymbol().value_or(""));
    size_t count = ::sft::findKernel(op.getKernel().str())->operands.size();
    for (int64_t position : op.getPositions())
      count = std::max(count, size_t(position) + 1);
    for (size_t i = 0; i < count; ++i)
      instruction->operands.push_back(operand(0, /*absent=*/true));
    for (auto [value, position] : llvm::zip(op.getArguments(), op.getPositions()))
      instruction->operands[position] = operand(buffers.lookup(value));
    instruction->parameters = parameters(op.getParameters());
    if (op.getWorkspace())
      instruction->workspace = buffers.lookup(op.getWorkspace());
    instruction->location = location(op.getLoc());
    return instruction;
  }

  std::unique_ptr<fb::InstructionT> emitCollective(plan::CollectiveOp op, const llvm::DenseMap<Value, uint32_t> &buffers) {
    auto instruction = std::make_unique<fb::InstructionT>();
    instruction->kind = fb::InstructionKind::Collective;
    instruction->when = when(op.getWhen());
    instruction->collective = op.getKind() == "all_gather"       ? fb::CollectiveKind::AllGather
                              : op.getKind() == "reduce_scatter" ? fb::CollectiveKind::ReduceScatter
                              : op.getKind() == "all_reduce"     ? fb::CollectiveKind::AllReduce
                                                                 : fb::CollectiveKind::AllToAll;
    instruction->reduction = op.getReduction() == "max" ? fb::Reduction::Max : fb::Reduction::Sum;
    instruction->axes = strings(op.getAxes());
    instruction->operands.push_back(operand(buffers.lookup(op.getInput())));
    instruction->operands.push_back(operand(buffers.lookup(op.getOutput())));
    instruction->location = location(op.getLoc());
    return instruction;
  }

  ModuleOp module_;
  const EmitInputs &inputs_;
  std::unique_ptr<fb::PlanT> plan_;
  std::map<std::string, uint32_t> arenas_;
  llvm::StringMap<uint32_t> globals_;
  std::map<std::string, uint32_t> groups_;
  std::map<std::pair<std::string, std::string>, uint32_t> kernels_;
  std::map<std::tuple<std::string, uint32_t, uint32_t, std::string>, uint32_t> locations_;
};

} // namespace

FailureOr<std::unique_ptr<fb::PlanT>> sftc::emitPlan(ModuleOp module, const EmitInputs &inputs) { return PlanEmitter(module, inputs).run(); }
