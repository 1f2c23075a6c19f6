#include "runtime/plan/PlanFile.h"
#include "test/unit/plan/PlanFixture.h"

#include <functional>
#include <gtest/gtest.h>

using namespace sft;

namespace {

/// One way to break tinyPlan() and the beginning of the message that must come of it.
struct Damage {
  const char *name;
  std::function<void(fb::PlanT &)> apply;
  std::string message;
};

fb::InstructionT &instruction(fb::PlanT &plan, size_t index) {
  return *plan.programs[0]->instructions[index];
}
fb::RowBodyT &body(fb::PlanT &plan) { return *plan.kernels[tiny::SquareRows]->body; }

void addParameter(fb::InstructionT &to, const char *name, fb::ValueKind kind) {
  to.parameters.push_back(std::make_unique<fb::Parameter_T>());
  to.parameters.back()->name = name;
  to.parameters.back()->kind = kind;
}

const std::string kRows = "kernel row_kernel square_rows";
const std::string kTrain = "program train, instruction ";

// clang-format off
const Damage kDamages[] = {
    // Mesh, tokens, symbols
    {"AxisSize", [](fb::PlanT &p) { p.mesh[1]->size = 0; }, "mesh axis is empty (axis cp)"},
    {"AxisTwice", [](fb::PlanT &p) { p.mesh[1]->name = "tp"; }, "mesh axis name is empty or used twice (tp)"},
    {"World", [](fb::PlanT &p) { p.mesh[0]->size = UINT32_MAX, p.mesh[1]->size = UINT32_MAX; }, "mesh is too large"},
    {"TokenAxis", [](fb::PlanT &p) { p.token_axes = {"ep"}; }, "unknown mesh axis (token_axes): ep; the mesh has tp, cp"},
    {"AxisNamedTwice", [](fb::PlanT &p) { p.batch_axes = {"cp", "cp"}; }, "mesh axis is named twice (batch_axes): cp"},
    {"PaddedZigzag", [](fb::PlanT &p) { p.padded_tokens = 10; },
     "padded tokens do not divide (plan): 10 rows in zigzag order over 2 ranks; a multiple of 4"},
    {"PaddedBelowTokens", [](fb::PlanT &p) { p.tokens = 9; }, "token counts do not fit (plan)"},
    {"Order", [](fb::PlanT &p) { p.token_order = "spiral"; }, "unknown token order (plan): spiral"},
    {"SymbolAxis", [](fb::PlanT &p) { p.symbols[0]->uniform_axes = {"x"}; }, "unknown mesh axis (symbol rounds): x"},
    {"SymbolCapacity", [](fb::PlanT &p) { p.symbols[0]->capacity = -1; }, "symbol capacity is negative (symbol rounds)"},
    {"Target", [](fb::PlanT &p) { p.target = nullptr; }, "plan has no target"},
    // Memory
    {"Arena", [](fb::PlanT &p) { p.buffers[tiny::X]->arena = 99; }, "index out of range (buffer x): arena 99; the plan has 5"},
    {"ArenaClass", [](fb::PlanT &p) { p.arenas[0]->class_ = fb::BufferClass(77); }, "unknown arena class (arena parameters): 77"},
    {"ArenaTotal", [](fb::PlanT &p) { p.arenas[0]->bytes = UINT64_MAX; }, "arenas are too large (arena parameters)"},
    {"BufferClass", [](fb::PlanT &p) { p.buffers[0]->class_ = fb::BufferClass(77); }, "unknown buffer class (buffer w): 77"},
    {"BufferDType", [](fb::PlanT &p) { p.buffers[tiny::X]->dtype = fb::DType(77); }, "unknown dtype (buffer x): 77"},
    {"BufferEnd", [](fb::PlanT &p) { p.buffers[tiny::Workspace]->offset = 348; }, "buffer leaves its arena (buffer workspace)"},
    {"BufferWraps", [](fb::PlanT &p) { p.buffers[tiny::X]->offset = UINT64_MAX - 3; }, "buffer leaves its arena (buffer x)"},
    {"LastSlice", [](fb::PlanT &p) { p.buffers[tiny::WeightSlice]->slice_stride = 64; },
     "buffer leaves its arena (buffer group.w.slice)"},
    {"Unaligned", [](fb::PlanT &p) { p.buffers[tiny::X]->offset = 2; }, "buffer is not aligned (buffer x)"},
    {"Negative", [](fb::PlanT &p) { p.buffers[tiny::X]->shape = {-4, 3}; }, "buffer shape is not sensible (buffer x): [-4, 3]"},
    {"Product", [](fb::PlanT &p) { p.buffers[tiny::X]->shape = {1ll << 32, 1ll << 32}; },
     "buffer shape is not sensible (buffer x)"},
    {"BufferLocation", [](fb::PlanT &p) { p.buffers[tiny::X]->location = 3; },
     "index out of range (buffer x): location 3; the plan has 3"},
    {"BufferName", [](fb::PlanT &p) { p.buffers[tiny::X]->name = "y"; }, "buffer name is empty or used twice (y)"},
    // Parameters, groups, tables
    {"ParameterBuffer", [](fb::PlanT &p) { p.parameters[0]->buffer = 99; },
     "index out of range (parameter model.w.weight): buffer 99"},
    {"ParameterGroup", [](fb::PlanT &p) { p.parameters[0]->group = 1; },
     "index out of range (parameter model.w.weight): group 1"},
    {"ParameterShape", [](fb::PlanT &p) { p.parameters[0]->global_shape = {5, 4}; },
     "buffer has the wrong size (parameter model.w.weight): w has shape [5, 3]; 20 elements"},
    {"ParameterDimensions", [](fb::PlanT &p) { p.parameters[0]->dimensions.push_back(std::make_unique<fb::DimensionT>()); },
     "dimensions do not match the shape (parameter model.w.weight): 1 for shape [5, 3]"},
    {"ParameterCut", [](fb::PlanT &p) {
       for (int i = 0; i < 2; ++i)
         p.parameters[0]->dimensions.push_back(std::make_unique<fb::DimensionT>());
       p.parameters[0]->dimensions[0]->axes = {"cp"};
     }, "parameter cannot be cut (parameter model.w.weight): dimension 0 has 5 + 0 elements for 2 ranks"},
    {"ParameterPlace", [](fb::PlanT &p) { p.parameters[0]->element_offset = 1; },
     "parameter is not at its place in its group (parameter model.w.weight)"},
    {"ParameterEnd", [](fb::PlanT &p) { p.parameters[0]->element_offset = 2; },
     "parameter leaves its group (parameter model.w.weight)"},
    {"ParameterAlias", [](fb::PlanT &p) { p.parameters[0]->aliases = {"model.w.weight"}; },
     "checkpoint name is empty or used twice"},
    {"GroupUneven", [](fb::PlanT &p) { p.groups[0]->elements = 15; },
     "group cannot be cut (group matrices): 15 elements for 2 ranks"},
    {"GroupSlice", [](fb::PlanT &p) { p.groups[0]->gradient_slice = tiny::GradientGroup; },
     "buffer has the wrong size (group matrices): group.dw has shape [16]; 8 elements"},
    {"GroupMoment", [](fb::PlanT &p) { p.buffers[tiny::ExpAvg]->dtype = fb::DType::BF16; },
     "moment has the wrong dtype (group matrices)"},
    {"TableKind", [](fb::PlanT &p) { p.tables[0]->kind = "crumbs"; }, "unknown table (table crumbs)"},
    {"TableBuffer", [](fb::PlanT &p) { p.tables[0]->buffer = 99; }, "index out of range (table tokens): buffer 99"},
    {"TableShape", [](fb::PlanT &p) { p.tables[0]->whole = true; }, "table has the wrong buffer (table tokens): I32[4]; I32[8]"},
    {"TableDType", [](fb::PlanT &p) { p.buffers[tiny::Tokens]->dtype = fb::DType::F32; },
     "table has the wrong buffer (table tokens): F32[4]; I32[4]"},
    {"RemarkLocation", [](fb::PlanT &p) { p.remarks.push_back(std::make_unique<fb::RemarkT>()), p.remarks[0]->location = 9; },
     "index out of range (remark ): location 9"},
    // Kernels
    {"KernelName", [](fb::PlanT &p) { p.kernels[tiny::Fill]->name = "bake"; },
     "unknown kernel (kernel bake); this build has matmul"},
    {"KernelHash", [](fb::PlanT &p) { p.kernels[tiny::Matmul]->signature_hash = 0xabc; },
     "kernel signature differs (kernel matmul): the plan has 0xabc, this build has 0x"},
    {"RowBlob", [](fb::PlanT &p) { p.kernels[tiny::SquareRows]->blob = -1; }, "index out of range (" + kRows + "): blob -1"},
    {"RowSymbol", [](fb::PlanT &p) { p.kernels[tiny::SquareRows]->symbol = ""; },
     "generated kernel has no symbol (kernel row_kernel)"},
    {"RowBody", [](fb::PlanT &p) { p.kernels[tiny::SquareRows]->body = nullptr; },
     "generated kernel has no body (" + kRows + ")"},
    {"RowOpName", [](fb::PlanT &p) { body(p).ops[1]->op = "sin"; }, "unknown operation (" + kRows + ", operation 1 sin)"},
    {"RowOpArity", [](fb::PlanT &p) { body(p).ops[1]->args = {0}; },
     "operation has the wrong number of arguments (" + kRows + ", operation 1 mul): 1; 2"},
    {"RowOpLater", [](fb::PlanT &p) { body(p).ops[1]->args[0] = 1; },
     "operation refers to no earlier value (" + kRows + ", operation 1 mul): 1"},
    {"RowOpStored", [](fb::PlanT &p) { body(p).ops[4]->args[0] = 3; },
     "operation refers to no earlier value (" + kRows + ", operation 4 store): 3"},
    {"RowOpOperand", [](fb::PlanT &p) { body(p).ops[0]->attribute = 3; },
     "index out of range (" + kRows + ", operation 0 load): operand 3"},
    {"RowStoreToInput", [](fb::PlanT &p) { body(p).ops[3]->attribute = 0; },
     "operation does not fit its operand (" + kRows + ", operation 3 store)"},
    {"RowWidth", [](fb::PlanT &p) { body(p).operands[0]->width = 4; },
     "operand width differs (" + kRows + ", operand 0): 4; the width of the body, 5"},
    {"RowAccess", [](fb::PlanT &p) { body(p).operands[0]->access = fb::RowAccess(99); },
     "unknown access (" + kRows + ", operand 0): 99"},
    {"RowPeriod", [](fb::PlanT &p) { body(p).operands[0]->access = fb::RowAccess::Periodic, body(p).operands[0]->period = 6; },
     "period does not fit (" + kRows + ", operand 0): 6"},
    {"RowPartner", [](fb::PlanT &p) { body(p).operands[0]->access = fb::RowAccess::Partner, body(p).operands[0]->period = 5; },
     "partner does not fit (" + kRows + ", operand 0)"},
    {"RowGathered", [](fb::PlanT &p) { body(p).operands[0]->access = fb::RowAccess::Gathered; },
     "index out of range (" + kRows + ", operand 0): operand -1"},
    {"RowColumnOutput", [](fb::PlanT &p) { body(p).operands[2]->access = fb::RowAccess::Column; },
     "operand cannot be written (" + kRows + ", operand 2): access Column"},
    {"RowLaunchBuffer", [](fb::PlanT &p) { instruction(p, 2).operands[0]->buffer = tiny::X; },
     "buffer has the wrong size (" + kTrain + "2 (row_kernel), operand 0): x has shape [4, 3]; 20 elements"},
    {"RowLaunchDType", [](fb::PlanT &p) { p.buffers[tiny::Y]->dtype = fb::DType::BF16; },
     "operand has the wrong dtype (" + kTrain + "2 (row_kernel), operand 0): y is BF16; F32"},
    {"RowLaunchCount", [](fb::PlanT &p) { instruction(p, 2).operands.pop_back(); },
     "launch has the wrong number of operands (" + kTrain + "2 (row_kernel)): 2; the body has 3"},
    {"RowLaunchAbsent", [](fb::PlanT &p) { instruction(p, 2).operands[0]->absent = true; },
     "operand is absent (" + kTrain + "2 (row_kernel), operand 0)"},
    {"RowLaunchRows", [](fb::PlanT &p) { instruction(p, 2).parameters[0]->i = 0; },
     "launch has no rows (" + kTrain + "2 (row_kernel))"},
    {"RowLaunchSums", [](fb::PlanT &p) { instruction(p, 2).parameters[2]->i = 2; },
     "column_sums does not match the body (" + kTrain + "2 (row_kernel)): 2; 4"},
    // Launches
    {"LaunchKernel", [](fb::PlanT &p) { instruction(p, 0).kernel = 9; }, "index out of range (" + kTrain + "0): kernel 9"},
    {"LaunchOperands", [](fb::PlanT &p) { instruction(p, 1).operands.pop_back(); },
     "launch has the wrong number of operands (" + kTrain + "1 (matmul)): 3; 4"},
    {"LaunchBuffer", [](fb::PlanT &p) { instruction(p, 1).operands[0]->buffer = 99; },
     "index out of range (" + kTrain + "1 (matmul)): buffer 99"},
    {"LaunchAbsent", [](fb::PlanT &p) { instruction(p, 1).operands[0]->absent = true; },
     "operand is absent (" + kTrain + "1 (matmul), operand a)"},
    {"LaunchDType", [](fb::PlanT &p) { instruction(p, 1).operands[0]->buffer = tiny::Tokens; },
     "operand has the wrong dtype (" + kTrain + "1 (matmul), operand a): tokens is i32; f32 or bf16"},
    {"LaunchRank", [](fb::PlanT &p) { instruction(p, 1).operands[0]->buffer = tiny::Loss; },
     "operand has the wrong rank (" + kTrain + "1 (matmul), operand a): loss is [4]; 2 dimensions"},
    {"LaunchParameter", [](fb::PlanT &p) { addParameter(instruction(p, 1), "colour", fb::ValueKind::Integer); },
     "unknown parameter (" + kTrain + "1 (matmul)): colour; the kernel has transpose_a, transpose_b, accumulate"},
    {"LaunchParameterTwice", [](fb::PlanT &p) { addParameter(instruction(p, 1), "transpose_b", fb::ValueKind::Integer); },
     "parameter is given twice (" + kTrain + "1 (matmul)): transpose_b"},
    {"LaunchParameterType", [](fb::PlanT &p) { addParameter(instruction(p, 1), "transpose_a", fb::ValueKind::Float); },
     "parameter has the wrong type (" + kTrain + "1 (matmul)): transpose_a is float; int"},
    {"LaunchParameterMissing", [](fb::PlanT &p) { instruction(p, 2).parameters.erase(instruction(p, 2).parameters.begin()); },
     "parameter is missing (" + kTrain + "2 (row_kernel)): rows"},
    {"LaunchAccumulate", [](fb::PlanT &p) { instruction(p, 3).parameters[1]->i = 3; },
     "accumulate is unknown (" + kTrain + "3 (matmul)): 3"},
    {"LaunchWorkspace", [](fb::PlanT &p) { p.buffers[tiny::Workspace]->shape = {39}; },
     "workspace is too small (" + kTrain + "2 (row_kernel)): 39 bytes; 40"},
    {"LaunchNoWorkspace", [](fb::PlanT &p) { instruction(p, 2).workspace = -1; },
     "workspace is too small (" + kTrain + "2 (row_kernel)): 0 bytes; 40"},
    {"LaunchWorkspaceIndex", [](fb::PlanT &p) { instruction(p, 2).workspace = 99; },
     "index out of range (" + kTrain + "2 (row_kernel), workspace): buffer 99"},
    {"LaunchLocation", [](fb::PlanT &p) { instruction(p, 0).location = 99; },
     "index out of range (" + kTrain + "0): location 99"},
    {"InstructionKind", [](fb::PlanT &p) { instruction(p, 0).kind = fb::InstructionKind(9); },
     "unknown kind (" + kTrain + "0): 9"},
    {"InstructionWhen", [](fb::PlanT &p) { instruction(p, 0).when = fb::When(9); }, "unknown condition (" + kTrain + "0): 9"},
    // Collectives, repeats, events, programs
    {"CollectiveAxis", [](fb::PlanT &p) { instruction(p, 4).axes = {"dp"}; },
     "unknown mesh axis (" + kTrain + "4 (collective)): dp"},
    {"CollectiveNoAxes", [](fb::PlanT &p) { instruction(p, 4).axes = {}; },
     "collective has no axes (" + kTrain + "4 (collective))"},
    {"CollectiveKind", [](fb::PlanT &p) { instruction(p, 4).collective = fb::CollectiveKind(9); },
     "unknown collective (" + kTrain + "4 (collective)): 9"},
    {"CollectiveOperand", [](fb::PlanT &p) { instruction(p, 4).operands.pop_back(); },
     "collective needs an input and an output (" + kTrain + "4 (collective))"},
    {"CollectiveGather", [](fb::PlanT &p) { instruction(p, 4).collective = fb::CollectiveKind::AllGather; },
     "collective sizes do not match (" + kTrain + "4 (collective)): AllGather over 2 ranks"},
    {"CollectiveReduce", [](fb::PlanT &p) { instruction(p, 4).collective = fb::CollectiveKind::AllReduce; },
     "collective sizes do not match (" + kTrain + "4 (collective)): AllReduce over 2 ranks"},
    {"CollectiveScatter", [](fb::PlanT &p) { instruction(p, 4).operands[1]->buffer = tiny::GradientGroup; },
     "collective sizes do not match (" + kTrain + "4 (collective)): ReduceScatter over 2 ranks"},
    {"CollectiveDType", [](fb::PlanT &p) { p.buffers[tiny::GradientSlice]->dtype = fb::DType::I32; },
     "collective changes the dtype (" + kTrain + "4 (collective))"},
    {"RepeatSymbol", [](fb::PlanT &p) { p.programs[1]->instructions[0]->symbol = 1; },
     "index out of range (program evaluate, instruction 0 (repeat)): symbol 1"},
    {"RepeatBody", [](fb::PlanT &p) { p.programs[1]->instructions[0]->body[0]->kernel = 9; },
     "index out of range (program evaluate, instruction 0 (repeat), instruction 0): kernel 9"},
    {"RepeatUniform", [](fb::PlanT &p) {
       p.symbols[0]->uniform_axes = {};
       auto &body = p.programs[1]->instructions[0]->body;
       PlanBuilder::collective(body, fb::CollectiveKind::AllReduce, {"cp"}, tiny::Loss, tiny::Loss);
     }, "collective inside a repeat whose rounds differ between its ranks (program evaluate, instruction 0 (repeat), "
        "instruction 1 (collective)): axis cp, symbol rounds"},
    {"RepeatDepth", [](fb::PlanT &p) {
       for (int i = 0; i < 8; ++i) {
         PlanBuilder::Block outer;
         PlanBuilder::repeat(outer, 0).body = std::move(p.programs[1]->instructions);
         p.programs[1]->instructions = std::move(outer);
       }
     }, "repeats are nested too deep (program evaluate"},
    {"Event", [](fb::PlanT &p) { instruction(p, 1).waits = {1}; },
     "wait for an event that no earlier instruction of the same instance signals (" + kTrain + "1): event 1"},
    {"EventOfOtherInstance", [](fb::PlanT &p) { instruction(p, 0).when = fb::When::First; },
     "wait for an event that no earlier instruction of the same instance signals (" + kTrain + "1): event 0"},
    {"Argument", [](fb::PlanT &p) { p.programs[0]->arguments = {"first"}; },
     "instruction depends on an argument that the program lacks (" + kTrain + "4): last"},
    {"ArgumentOfAccumulate", [](fb::PlanT &p) { p.programs[0]->arguments = {"last"}; },
     "instruction depends on an argument that the program lacks (" + kTrain + "3 (matmul)): first"},
    {"ArgumentName", [](fb::PlanT &p) { p.programs[0]->arguments = {"first", "last", "middle"}; },
     "unknown argument (program train): middle"},
    {"Result", [](fb::PlanT &p) { p.programs[0]->results = {99}; }, "index out of range (program train, result): buffer 99"},
    {"ProgramName", [](fb::PlanT &p) { p.programs[1]->name = "dance"; },
     "program name is unknown or used twice (programs): dance"},
    {"ProgramTwice", [](fb::PlanT &p) { p.programs[1]->name = "train"; },
     "program name is unknown or used twice (programs): train"},
};
// clang-format on

class VerifyPlan : public testing::TestWithParam<Damage> {};

} // namespace

TEST(VerifyPlanGood, AcceptsTheTinyPlan) {
  EXPECT_EQ(verifyPlan(tinyPlan().plan), std::vector<std::string>());
}

TEST(VerifyPlanGood, NamedDimensionsMustAgree) {
  PlanBuilder builder = tinyPlan();
  auto f32 = fb::DType::F32, i32 = fb::DType::I32;
  uint32_t q = builder.buffer("q", f32, {4, 8}, 4, 0), k = builder.buffer("k", f32, {2, 8}, 4, 0),
           v = builder.buffer("v", f32, {2, 8}, 4, 0),
           squares = builder.buffer("squares", i32, {2, 3}, 4, 0),
           o = builder.buffer("o", f32, {4, 8}, 4, 0),
           lse = builder.buffer("lse", f32, {4, 2}, 4, 0),
           shortLse = builder.buffer("short", f32, {3, 2}, 4, 0),
           wide = builder.buffer("wide", i32, {2, 4}, 4, 0);
  uint32_t square = builder.kernel("square");
  fb::InstructionT &launch = PlanBuilder::launch(builder.plan.programs[0]->instructions, square,
                                                 {q, k, v, squares, o, lse});
  PlanBuilder::integer(launch, "head_dim", 4);
  addParameter(launch, "scale", fb::ValueKind::Float);
  EXPECT_EQ(verifyPlan(builder.plan), std::vector<std::string>());
  launch.operands[5]->buffer = shortLse;
  launch.operands[3]->buffer = wide;
  EXPECT_EQ(
      verifyPlan(builder.plan),
      (std::vector<std::string>{"operand has the wrong shape (program train, instruction 5 "
                                "(square), operand squares): wide is [2, 4]; dimension 1 is 3",
                                "operand has the wrong shape (program train, instruction 5 "
                                "(square), operand lse): short is [3, 2]; dimension 0 (T) "
                                "is 4 as in operand q"}));
}

TEST(VerifyPlanGood, ListOfProblemsEnds) {
  PlanBuilder builder = tinyPlan();
  for (int i = 0; i < 1000; ++i)
    PlanBuilder::launch(builder.plan.programs[0]->instructions, 99, {});
  std::vector<std::string> problems = verifyPlan(builder.plan);
  ASSERT_EQ(problems.size(), 101u);
  EXPECT_EQ(problems.back(), "further problems are not listed");
}

TEST_P(VerifyPlan, ReportsTheProblem) {
  PlanBuilder builder = tinyPlan();
  GetParam().apply(builder.plan);
  std::vector<std::string> problems = verifyPlan(builder.plan);
  std::string all;
  bool found = false;
  for (const std::string &problem : problems) {
    all += problem + "\n";
    found |= problem.find(GetParam().message) == 0;
  }
  EXPECT_TRUE(found) << "wanted: " << GetParam().message << "\nproblems:\n" << all;
}

INSTANTIATE_TEST_SUITE_P(Damages, VerifyPlan, testing::ValuesIn(kDamages),
                         [](const testing::TestParamInfo<Damage> &info) {
                           return info.param.name;
                         });
