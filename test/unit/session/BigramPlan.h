//===- BigramPlan.h - a whole model of one matrix ------------------------------------===//
//
// The logits of a row are row `token` of the matrix model.weight: loss, gradient and update are
// simple enough to compute beside. All its row kernels have bodies for the reference's interpreter;
// sessions run it with `reference`.
//
//===--------------------------------------------------------------------------===//
#ifndef TEST_UNIT_SESSION_BIGRAMPLAN_H
#define TEST_UNIT_SESSION_BIGRAMPLAN_H

#include "runtime/plan/PlanFile.h"
#include "test/unit/executor/HandPlan.h"

#include <fstream>
#include <iterator>

namespace sft {

struct BigramMesh {
  uint32_t cp = 1, dp = 1;
  bool zigzag = false;
};

class BigramPlan : public HandPlan {
public:
  static constexpr int64_t kVocabulary = 7, kTokens = 20, kDocuments = 4;
  static constexpr int64_t kElements = kVocabulary * kVocabulary,
                           kPadded = 56; ///< of the group; 56 divides over 8 ranks

  explicit BigramPlan(const BigramMesh &mesh)
      : HandPlan({{"tp", 1}, {"cp", mesh.cp}, {"dp", mesh.dp}}) {
    int64_t ranks = mesh.cp * mesh.dp;
    plan.producer = "a test";
    plan.command_line = "sftc compile bigram.mlir -o bigram.plan";
    plan.target = std::make_unique<fb::TargetT>();
    plan.target->name = plan.target->kind = "cpu";
    plan.config = R"({"initializer_range": 0.5, "model_type": "bigram"})";
    plan.tokens = kTokens;
    plan.padded_tokens = 24;
    plan.max_documents = kDocuments;
    plan.vocab_size = kVocabulary;
    plan.token_order = mesh.zigzag ? "zigzag" : "contiguous";
    plan.token_axes = {"cp"};
    plan.batch_axes = {"dp"};
    rows_ = plan.padded_tokens / mesh.cp;

    plan.blobs.push_back(std::make_unique<fb::BlobT>());
    plan.blobs[0]->format = "elf-x86-64";
    std::ifstream code(SFT_TEST_CODE, std::ios::binary);
    plan.blobs[0]->bytes.assign(std::istreambuf_iterator<char>(code), {});

    addTables();
    addGroup(kPadded / ranks);
    addPrograms(kPadded / ranks);
  }

  /// As read from a file.
  PlanFile file() const {
    std::vector<uint8_t> bytes = serializePlan(plan);
    return readPlan("bigram.plan", bytes.data(), bytes.size());
  }

private:
  const std::vector<std::string> kRanks = {"cp", "dp"};

  void addTables() {
    tokens_ = buffer("tokens", {rows_}, fb::DType::I32);
    targets_ = buffer("targets", {rows_}, fb::DType::I32);
    weights_ = buffer("weights", {rows_});
    order_ = buffer("embedding_order", {rows_}, fb::DType::I32);
    segments_ = buffer("embedding_segments", {rows_, 3}, fb::DType::I32);
    scalars_ = buffer("step_scalars", {16});
    for (uint32_t index : {tokens_, targets_, weights_, order_, segments_, scalars_})
      table(plan.buffers[index]->name, index);
    plan.tables.back()->persistent = true;
  }

  void addGroup(int64_t share) {
    auto group = std::make_unique<fb::GroupT>();
    group->name = "matrices";
    group->trainable = group->decay = true;
    group->reduce_axes = kRanks;
    group->elements = uint64_t(kPadded);
    group->parameter_buffer = all_ = buffer("parameters", {kPadded});
    group->parameter_slice = slice_ = slice(all_, {share}, kRanks);
    group->gradient_buffer = gradients_ = buffer("gradients", {kPadded});
    group->gradient_slice = gradient_slice_ = slice(gradients_, {share}, kRanks);
    group->exp_avg = buffer("exp_avg", {share});
    group->exp_avg_sq = buffer("exp_avg_sq", {share});
    plan.groups.push_back(std::move(group));
    auto parameter = std::make_unique<fb::ModelParameterT>();
    parameter->name = "model.weight";
    parameter->global_shape = {kVocabulary, kVocabulary};
    parameter->buffer = matrix_ = view("matrix", all_, 0, {kVocabulary, kVocabulary});
    parameter->gradient = dmatrix_ = view("dmatrix", gradients_, 0, {kVocabulary, kVocabulary});
    plan.parameters.push_back(std::move(parameter));
  }

  void addPrograms(int64_t share) {
    uint32_t dlogits = buffer("dlogits", {rows_, kVocabulary}),
             loss = buffer("token_loss", {rows_});
    uint32_t squares = buffer("squares", {1}), norm = buffer("grad_norm", {1}),
             scale = buffer("scale", {1});
    uint32_t sumWorkspace = buffer("sum_workspace", {16}, fb::DType::U8);
    uint32_t lossRows = lossKernel(), clipRows = clipKernel(), sgdRows = sgdKernel();
    std::vector<int64_t> lossOperands = {matrix_, tokens_, targets_, weights_, dlogits, loss};

    fb::ProgramT &train = program("train", {"first", "last"});
    rowLaunch(lossRows, lossOperands, rows_);
    integer(launch("embedding_grad", {dlogits, order_, segments_, -1, dmatrix_}), "accumulate", 2);
    collective(fb::CollectiveKind::ReduceScatter, gradients_, gradient_slice_, kRanks).when =
        fb::When::Last;
    train.results = {loss};

    fb::ProgramT &evaluate = program("evaluate");
    rowLaunch(lossRows, lossOperands, rows_);
    evaluate.results = {loss};

    program("update_sgd");
    launch("sum_of_squares", {gradient_slice_, squares}).workspace = int32_t(sumWorkspace);
    collective(fb::CollectiveKind::AllReduce, squares, squares, kRanks);
    rowLaunch(clipRows, {squares, scalars_, norm, scale}, 1);
    rowLaunch(sgdRows, {slice_, gradient_slice_, scalars_, scale, slice_}, share);
    collective(fb::CollectiveKind::AllGather, slice_, all_, kRanks);
  }

  void rowLaunch(uint32_t kernel, const std::vector<int64_t> &operands, int64_t rows) {
    fb::InstructionT &instruction = PlanBuilder::launch(block(), kernel, operands);
    integer(instruction, "rows", rows);
    integer(instruction, "block_rows", 8);
  }

  static int32_t constant(fb::RowBodyT &body, double value) {
    int32_t index = rowOp(body, "constant", {});
    body.ops[size_t(index)]->f = value;
    return index;
  }

  /// token_loss = log sum exp(x) - x[target]; dlogits = (softmax(x) - onehot(target)) * weight; 0
  /// in rows without a target.
  uint32_t lossKernel() {
    auto body = std::make_unique<fb::RowBodyT>();
    fb::RowBodyT &b = *body;
    b.width = kVocabulary;
    fb::RowOperandT &logits =
        *b.operands[rowOperand(b, fb::RowAccess::Gathered, kVocabulary, false)];
    logits.index = 1;
    logits.rows = logits.period = kVocabulary;
    for (fb::DType dtype : {fb::DType::I32, fb::DType::I32, fb::DType::F32})
      b.operands[rowOperand(b, fb::RowAccess::Scalar, 1, false)]->dtype = dtype;
    rowOperand(b, fb::RowAccess::Row, kVocabulary, true);
    rowOperand(b, fb::RowAccess::Scalar, 1, true);
    int32_t x = rowOp(b, "load", {}, 0), target = rowOp(b, "load", {}, 2),
            weight = rowOp(b, "load", {}, 3);
    int32_t zero = constant(b, 0), one = constant(b, 1);
    int32_t largest = rowOp(b, "reduce_max", {x});
    int32_t e = rowOp(b, "exp", {rowOp(b, "sub", {x, largest})}), sum = rowOp(b, "reduce_sum", {e});
    int32_t hit = rowOp(b, "eq_i", {rowOp(b, "column_index", {}), target});
    int32_t picked = rowOp(b, "reduce_sum", {rowOp(b, "select", {hit, x, zero})});
    int32_t loss = rowOp(b, "sub", {rowOp(b, "add", {rowOp(b, "log", {sum}), largest}), picked});
    int32_t valid = rowOp(b, "ge_i", {target, zero});
    int32_t difference =
        rowOp(b, "sub", {rowOp(b, "div", {e, sum}), rowOp(b, "select", {hit, one, zero})});
    rowOp(b, "store", {rowOp(b, "mul", {difference, weight})}, 4);
    rowOp(b, "store", {rowOp(b, "select", {valid, loss, zero})}, 5);
    return rowKernel("double_rows", std::move(body));
  }

  /// norm = sqrt(squares); scale = min(1, clip / (norm + 1e-6))
  uint32_t clipKernel() {
    auto body = std::make_unique<fb::RowBodyT>();
    fb::RowBodyT &b = *body;
    b.width = 1;
    rowOperand(b, fb::RowAccess::Row, 1, false);
    b.operands[rowOperand(b, fb::RowAccess::Uniform, 1, false)]->element = 7;
    rowOperand(b, fb::RowAccess::Row, 1, true);
    rowOperand(b, fb::RowAccess::Row, 1, true);
    int32_t norm = rowOp(b, "sqrt", {rowOp(b, "load", {}, 0)}), clip = rowOp(b, "load", {}, 1);
    int32_t ratio = rowOp(b, "div", {clip, rowOp(b, "add", {norm, constant(b, 1e-6)})});
    rowOp(b, "store", {norm}, 2);
    rowOp(b, "store", {rowOp(b, "min", {ratio, constant(b, 1)})}, 3);
    return rowKernel("double_rows", std::move(body));
  }

  /// w = w - lr * (scale * g)
  uint32_t sgdKernel() {
    auto body = std::make_unique<fb::RowBodyT>();
    fb::RowBodyT &b = *body;
    b.width = 1;
    rowOperand(b, fb::RowAccess::Row, 1, false);
    rowOperand(b, fb::RowAccess::Row, 1, false);
    rowOperand(b, fb::RowAccess::Uniform, 1, false);
    rowOperand(b, fb::RowAccess::Uniform, 1, false);
    rowOperand(b, fb::RowAccess::Row, 1, true);
    int32_t w = rowOp(b, "load", {}, 0), g = rowOp(b, "load", {}, 1), lr = rowOp(b, "load", {}, 2),
            scale = rowOp(b, "load", {}, 3);
    rowOp(b, "store", {rowOp(b, "sub", {w, rowOp(b, "mul", {lr, rowOp(b, "mul", {scale, g})})})},
          4);
    return rowKernel("double_rows", std::move(body));
  }

  int64_t rows_ = 0; ///< of one rank
  uint32_t tokens_, targets_, weights_, order_, segments_, scalars_;
  uint32_t all_, slice_, gradients_, gradient_slice_, matrix_, dmatrix_;
};

} // namespace sft

#endif // TEST_UNIT_SESSION_BIGRAMPLAN_H
