//===- PlanFixture.h - a tiny valid plan for tests -----------------------------===//
#ifndef TEST_UNIT_PLAN_PLANFIXTURE_H
#define TEST_UNIT_PLAN_PLANFIXTURE_H

#include "runtime/plan/KernelSignature.h"
#include "runtime/plan/plan_generated.h"

#include <memory>
#include <string>
#include <vector>

namespace sft {

/// Builds plans by name. tinyPlan() below is the usual start; tests then damage what they are
/// about.
class PlanBuilder {
public:
  fb::PlanT plan;

  uint32_t arena(const std::string &name, fb::BufferClass kind, uint64_t bytes) {
    auto entry = std::make_unique<fb::ArenaT>();
    entry->name = name;
    entry->class_ = kind;
    entry->bytes = bytes;
    return append(plan.arenas, std::move(entry));
  }

  /// A buffer takes the class of its arena.
  uint32_t buffer(const std::string &name, fb::DType dtype, std::vector<int64_t> shape,
                  uint32_t arena, uint64_t offset, std::vector<std::string> sliceAxes = {},
                  uint64_t sliceStride = 0) {
    auto entry = std::make_unique<fb::BufferT>();
    entry->name = name;
    entry->class_ = plan.arenas[arena]->class_;
    entry->dtype = dtype;
    entry->shape = std::move(shape);
    entry->arena = arena;
    entry->offset = offset;
    entry->slice_axes = std::move(sliceAxes);
    entry->slice_stride = sliceStride;
    return append(plan.buffers, std::move(entry));
  }

  uint32_t kernel(const std::string &name) {
    auto entry = std::make_unique<fb::KernelT>();
    entry->name = name;
    entry->signature_hash = findKernel(name)->hash;
    return append(plan.kernels, std::move(entry));
  }

  uint32_t rowKernel(const std::string &symbol, std::unique_ptr<fb::RowBodyT> body,
                     int32_t blob = 0) {
    uint32_t index = kernel("row_kernel");
    plan.kernels[index]->symbol = symbol;
    plan.kernels[index]->body = std::move(body);
    plan.kernels[index]->blob = blob;
    return index;
  }

  uint32_t table(const std::string &kind, uint32_t buffer, bool whole = false) {
    auto entry = std::make_unique<fb::TableT>();
    entry->kind = kind;
    entry->buffer = buffer;
    entry->whole = whole;
    return append(plan.tables, std::move(entry));
  }

  fb::ProgramT &program(const std::string &name, std::vector<std::string> arguments = {}) {
    auto entry = std::make_unique<fb::ProgramT>();
    entry->name = name;
    entry->arguments = std::move(arguments);
    append(plan.programs, std::move(entry));
    return *plan.programs.back();
  }

  using Block = std::vector<std::unique_ptr<fb::InstructionT>>;
  /// An operand of -1 is absent.
  static fb::InstructionT &launch(Block &block, uint32_t kernel,
                                  const std::vector<int64_t> &operands) {
    auto entry = std::make_unique<fb::InstructionT>();
    entry->kernel = kernel;
    for (int64_t buffer : operands) {
      auto operand = std::make_unique<fb::OperandT>();
      operand->absent = buffer < 0;
      operand->buffer = buffer < 0 ? 0 : uint32_t(buffer);
      entry->operands.push_back(std::move(operand));
    }
    block.push_back(std::move(entry));
    return *block.back();
  }

  static fb::InstructionT &collective(Block &block, fb::CollectiveKind kind,
                                      std::vector<std::string> axes, uint32_t input,
                                      uint32_t output) {
    fb::InstructionT &entry = launch(block, 0, {input, output});
    entry.kind = fb::InstructionKind::Collective;
    entry.collective = kind;
    entry.axes = std::move(axes);
    return entry;
  }

  static fb::InstructionT &repeat(Block &block, uint32_t symbol) {
    fb::InstructionT &entry = launch(block, 0, {});
    entry.kind = fb::InstructionKind::Repeat;
    entry.symbol = symbol;
    return entry;
  }

  static void integer(fb::InstructionT &instruction, const std::string &name, int64_t value) {
    auto entry = std::make_unique<fb::Parameter_T>();
    entry->name = name;
    entry->i = value;
    instruction.parameters.push_back(std::move(entry));
  }

  static uint32_t rowOperand(fb::RowBodyT &body, fb::RowAccess access, int64_t width, bool output) {
    auto entry = std::make_unique<fb::RowOperandT>();
    entry->access = access;
    entry->width = width;
    entry->output = output;
    return append(body.operands, std::move(entry));
  }

  static int32_t rowOp(fb::RowBodyT &body, const std::string &op, std::vector<int32_t> args,
                       int32_t attribute = 0) {
    auto entry = std::make_unique<fb::RowOpT>();
    entry->op = op;
    entry->args = std::move(args);
    entry->attribute = attribute;
    return int32_t(append(body.ops, std::move(entry)));
  }

private:
  template <typename List, typename Entry> static uint32_t append(List &list, Entry entry) {
    list.push_back(std::move(entry));
    return uint32_t(list.size() - 1);
  }
};

/// Buffers of tinyPlan(), by index.
namespace tiny {
enum Buffer : uint32_t {
  Weight,
  WeightGroup,
  WeightSlice,
  Gradient,
  GradientGroup,
  GradientSlice,
  ExpAvg,
  ExpAvgSq,
  Tokens,
  X,
  Y,
  Loss,
  Sums,
  Workspace
};
enum Kernel : uint32_t { Matmul, Fill, SquareRows };
} // namespace tiny

/// A valid plan on the mesh tp=1, cp=2: 8 tokens, 4 a rank; one parameter `w` [5, 3] in a group of
/// 16 elements.
///   train(first, last)  0 fill x [4, 3]   1 y = x w^T [4, 5]   2 row kernel: loss = row sums of
///   y^2, sums = column sums of y
///                       3 w's gradient (+)= y^T x   4 (last) reduce-scatter of the gradient over
///                       cp
///   evaluate            0 repeat(rounds) { fill loss }
/// The row kernel can be interpreted; its blob holds no loadable code.
inline PlanBuilder tinyPlan() {
  using fb::BufferClass, fb::DType, fb::RowAccess;
  PlanBuilder builder;
  fb::PlanT &plan = builder.plan;
  plan.producer = "a test";
  plan.command_line = "sftc compile tiny.mlir -o tiny.plan --mesh cp=2";
  plan.target = std::make_unique<fb::TargetT>();
  plan.target->name = plan.target->kind = "cpu";
  for (auto [name, size] : {std::pair("tp", 1u), std::pair("cp", 2u)}) {
    plan.mesh.push_back(std::make_unique<fb::MeshAxisT>());
    plan.mesh.back()->name = name;
    plan.mesh.back()->size = size;
  }
  plan.tokens = plan.padded_tokens = 8;
  plan.max_documents = 2;
  plan.precision = "fp32";
  plan.cp_method = "gather";
  plan.token_order = "zigzag";
  plan.token_axes = {"cp"};
  plan.vocab_size = 16;
  plan.symbols.push_back(std::make_unique<fb::SymbolT>());
  plan.symbols[0]->name = "rounds";
  plan.symbols[0]->capacity = 2;
  plan.symbols[0]->uniform_axes = {"cp"};
  for (const char *name : {"", "x", "matmul"}) { // 0 is unknown
    plan.locations.push_back(std::make_unique<fb::LocationT>());
    plan.locations.back()->file = "tiny.mlir";
    plan.locations.back()->line = uint32_t(plan.locations.size());
    plan.locations.back()->column = 3;
    plan.locations.back()->name = name;
  }

  uint32_t weights = builder.arena("parameters", BufferClass::Parameter, 64);
  uint32_t gradients = builder.arena("gradients", BufferClass::Gradient, 64);
  uint32_t moments = builder.arena("moments", BufferClass::Moment, 64);
  uint32_t tables = builder.arena("tables", BufferClass::Table, 64);
  uint32_t transient = builder.arena("activations", BufferClass::Activation, 384);
  builder.buffer("w", DType::F32, {5, 3}, weights, 0);
  builder.buffer("group.w", DType::F32, {16}, weights, 0);
  builder.buffer("group.w.slice", DType::F32, {8}, weights, 0, {"cp"}, 32);
  builder.buffer("dw", DType::F32, {5, 3}, gradients, 0);
  builder.buffer("group.dw", DType::F32, {16}, gradients, 0);
  builder.buffer("group.dw.slice", DType::F32, {8}, gradients, 0, {"cp"}, 32);
  builder.buffer("exp_avg", DType::F32, {8}, moments, 0);
  builder.buffer("exp_avg_sq", DType::F32, {8}, moments, 32);
  builder.buffer("tokens", DType::I32, {4}, tables, 0);
  builder.buffer("x", DType::F32, {4, 3}, transient, 0);
  builder.buffer("y", DType::F32, {4, 5}, transient, 64);
  builder.buffer("loss", DType::F32, {4}, transient, 192);
  builder.buffer("sums", DType::F32, {5}, transient, 256);
  builder.buffer("workspace", DType::U8, {40}, transient, 320);
  builder.table("tokens", tiny::Tokens);

  auto group = std::make_unique<fb::GroupT>();
  group->name = "matrices";
  group->trainable = group->decay = true;
  group->reduce_axes = {"cp"};
  group->elements = 16;
  group->parameter_buffer = tiny::WeightGroup;
  group->parameter_slice = tiny::WeightSlice;
  group->gradient_buffer = tiny::GradientGroup;
  group->gradient_slice = tiny::GradientSlice;
  group->exp_avg = tiny::ExpAvg;
  group->exp_avg_sq = tiny::ExpAvgSq;
  plan.groups.push_back(std::move(group));
  auto parameter = std::make_unique<fb::ModelParameterT>();
  parameter->name = "model.w.weight";
  parameter->global_shape = {5, 3};
  parameter->buffer = tiny::Weight;
  parameter->gradient = tiny::Gradient;
  parameter->location = 1;
  plan.parameters.push_back(std::move(parameter));

  plan.blobs.push_back(std::make_unique<fb::BlobT>());
  plan.blobs[0]->format = "elf-x86-64";
  plan.blobs[0]->bytes = {0x7f, 'E', 'L', 'F'};
  builder.kernel("matmul");
  builder.kernel("fill");
  auto body = std::make_unique<fb::RowBodyT>();
  body->width = 5;
  PlanBuilder::rowOperand(*body, RowAccess::Row, 5, false);
  PlanBuilder::rowOperand(*body, RowAccess::Scalar, 1, true);
  PlanBuilder::rowOperand(*body, RowAccess::ColumnSum, 5, true);
  int32_t value = PlanBuilder::rowOp(*body, "load", {}, 0);
  int32_t square = PlanBuilder::rowOp(*body, "mul", {value, value});
  int32_t sum = PlanBuilder::rowOp(*body, "reduce_sum", {square});
  PlanBuilder::rowOp(*body, "store", {sum}, 1);
  PlanBuilder::rowOp(*body, "store", {value}, 2);
  builder.rowKernel("square_rows", std::move(body));

  fb::ProgramT &train = builder.program("train", {"first", "last"});
  PlanBuilder::Block &block = train.instructions;
  PlanBuilder::launch(block, tiny::Fill, {tiny::X}).signals = {0};
  fb::InstructionT &matmul =
      PlanBuilder::launch(block, tiny::Matmul, {tiny::X, tiny::Weight, -1, tiny::Y});
  PlanBuilder::integer(matmul, "transpose_b", 1);
  matmul.waits = {0};
  matmul.location = 2;
  fb::InstructionT &rows =
      PlanBuilder::launch(block, tiny::SquareRows, {tiny::Y, tiny::Loss, tiny::Sums});
  PlanBuilder::integer(rows, "rows", 4);
  PlanBuilder::integer(rows, "block_rows", 2);
  PlanBuilder::integer(rows, "column_sums", 4);
  rows.workspace = tiny::Workspace;
  fb::InstructionT &gradient =
      PlanBuilder::launch(block, tiny::Matmul, {tiny::Y, tiny::X, -1, tiny::Gradient});
  PlanBuilder::integer(gradient, "transpose_a", 1);
  PlanBuilder::integer(gradient, "accumulate", 2);
  PlanBuilder::collective(block, fb::CollectiveKind::ReduceScatter, {"cp"}, tiny::GradientGroup,
                          tiny::GradientSlice)
      .when = fb::When::Last;
  train.results = {tiny::Loss};

  fb::ProgramT &evaluate = builder.program("evaluate");
  PlanBuilder::launch(PlanBuilder::repeat(evaluate.instructions, 0).body, tiny::Fill, {tiny::Loss});
  evaluate.results = {tiny::Loss};
  return builder;
}

} // namespace sft

#endif // TEST_UNIT_PLAN_PLANFIXTURE_H
