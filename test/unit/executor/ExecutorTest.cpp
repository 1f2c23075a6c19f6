#include "runtime/executor/Executor.h"

#include "runtime/base/Error.h"
#include "runtime/comm/ThreadCommunicator.h"
#include "runtime/kernels/FunctionKernel.h"
#include "test/unit/executor/HandPlan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

using namespace sft;

namespace {

using Function = FunctionKernel::Function;

void add(
    KernelRegistry &registry, const std::string &name, Function function,
    void (*check)(const KernelCall &) = [](const KernelCall &) {}) {
  registry.add(functionKernel(name, check, function));
}

void fillKernel(const KernelCall &call, WorkerPool &) {
  const TensorRef &x = call.operands[0];
  std::fill_n(x.as<float>(), x.elements(), float(call.floats.at("value")));
}

void accumulateKernel(const KernelCall &call, WorkerPool &) {
  const TensorRef &x = call.operands[0], &y = call.operands[1];
  for (int64_t i = 0; i < y.elements(); ++i)
    y.as<float>()[i] = x.as<float>()[i] + (call.integers.at("accumulate") ? y.as<float>()[i] : 0);
}

/// No transposes, no bias.
void matmulKernel(const KernelCall &call, WorkerPool &) {
  const TensorRef &a = call.operands[0], &b = call.operands[1], &c = call.operands[3];
  for (int64_t i = 0; i < c.shape[0]; ++i)
    for (int64_t j = 0; j < c.shape[1]; ++j) {
      float sum = call.integers.at("accumulate") ? c.as<float>()[i * c.shape[1] + j] : 0;
      for (int64_t k = 0; k < a.shape[1]; ++k)
        sum += a.as<float>()[i * a.shape[1] + k] * b.as<float>()[k * b.shape[1] + j];
      c.as<float>()[i * c.shape[1] + j] = sum;
    }
}

void checkMatmul(const KernelCall &call) {
  if (call.operands[0].shape[1] != call.operands[1].shape[0])
    fail("inner dimensions differ");
}

KernelRegistry goodKernels() {
  KernelRegistry registry;
  add(registry, "fill", fillKernel);
  add(registry, "accumulate", accumulateKernel);
  add(registry, "matmul", matmulKernel, checkMatmul);
  return registry;
}

/// All ranks of a plan, each with an executor; programs run on a thread a rank.
class Ranks {
public:
  explicit Ranks(const fb::PlanT &plan, ExecutorOptions options = {},
                 KernelRegistry backend = goodKernels())
      : mesh_(axesOf(plan)), world_(mesh_), backend_(std::move(backend)), reference_(goodKernels()),
        code_(plan) {
    ExecutorShared shared{&plan, &code_, &backend_, &reference_};
    for (int rank = 0; rank < mesh_.ranks(); ++rank) {
      devices_.push_back(createHostDevice());
      executors_.push_back(std::make_unique<Executor>(
          shared, mesh_, rank, *devices_.back(), pool_,
          [this, rank](const std::vector<std::string> &axes) { return world_.create(rank, axes); },
          options));
    }
  }

  Executor &operator[](int rank) { return *executors_[size_t(rank)]; }
  float *data(int rank, uint32_t buffer) { return (*this)[rank].buffer(buffer).as<float>(); }

  void run(const ProgramInstance &instance) {
    std::vector<std::thread> threads;
    for (auto &executor : executors_)
      threads.emplace_back([&] { executor->run(executor->bind(instance)); });
    for (std::thread &thread : threads)
      thread.join();
  }

private:
  static std::vector<std::pair<std::string, int>> axesOf(const fb::PlanT &plan) {
    std::vector<std::pair<std::string, int>> axes;
    for (const auto &axis : plan.mesh)
      axes.emplace_back(axis->name, int(axis->size));
    return axes;
  }

  Mesh mesh_;
  ThreadWorld world_;
  KernelRegistry backend_, reference_;
  GeneratedCode code_;
  WorkerPool pool_{1};
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Executor>> executors_;
};

template <typename Body> std::string errorOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(Executor, FillAndMatmulOnOneRank) {
  HandPlan p;
  uint32_t a = p.buffer("a", {3, 5}), b = p.buffer("b", {5, 2}), c = p.buffer("c", {3, 2});
  p.program("evaluate");
  HandPlan::number(p.launch("fill", {a}), "value", 2);
  p.launch("matmul", {a, b, -1, c});
  Ranks ranks(p.plan);
  for (int i = 0; i < 10; ++i)
    ranks.data(0, b)[i] = float(i);
  ranks.run({"evaluate"});
  EXPECT_EQ(ranks.data(0, c)[0], 2.0f * (0 + 2 + 4 + 6 + 8));
  EXPECT_EQ(ranks.data(0, c)[5], 2.0f * (1 + 3 + 5 + 7 + 9));
}

TEST(Executor, FillAndMatmulOnTwoRanksThroughASliceAndCollectives) {
  HandPlan p({{"cp", 2}});
  uint32_t whole = p.buffer("whole", {4, 3});
  uint32_t mine = p.slice(whole, {2, 3}, {"cp"});
  uint32_t weight = p.buffer("weight", {3, 2}), product = p.buffer("product", {4, 2}),
           part = p.buffer("part", {2, 2});
  uint32_t total = p.buffer("total", {4, 2}), largest = p.buffer("largest", {4, 2}),
           dealt = p.buffer("dealt", {4, 2});
  p.program("evaluate");
  HandPlan::number(p.launch("fill", {weight}), "value", 1);
  p.collective(fb::CollectiveKind::AllGather, mine, whole, {"cp"});
  p.launch("matmul", {whole, weight, -1, product});
  p.collective(fb::CollectiveKind::ReduceScatter, product, part, {"cp"});
  p.collective(fb::CollectiveKind::AllReduce, product, total, {"cp"});
  p.collective(fb::CollectiveKind::AllReduce, product, largest, {"cp"}).reduction =
      fb::Reduction::Max;
  p.collective(fb::CollectiveKind::AllToAll, product, dealt, {"cp"});
  Ranks ranks(p.plan);
  for (int rank = 0; rank < 2; ++rank) {
    // The share of rank 1 begins after that of rank 0.
    EXPECT_EQ(ranks.data(rank, mine), ranks.data(rank, whole) + 6 * rank);
    for (int i = 0; i < 6; ++i)
      ranks.data(rank, mine)[i] = float(6 * rank + i);
  }
  ranks.run({"evaluate"});
  for (int rank = 0; rank < 2; ++rank)
    for (int row = 0; row < 4; ++row) {
      float sum = float(3 * row * 3 + 3); // 3 row + 0, 1, 2
      EXPECT_EQ(ranks.data(rank, product)[row * 2], sum);
      EXPECT_EQ(ranks.data(rank, total)[row * 2], 2 * sum);
      EXPECT_EQ(ranks.data(rank, largest)[row * 2], sum);
      EXPECT_EQ(ranks.data(rank, dealt)[row * 2],
                ranks.data(rank, product)[(2 * rank + row % 2) * 2]);
      if (row < 2)
        EXPECT_EQ(ranks.data(rank, part)[row * 2],
                  2 * ranks.data(rank, product)[(2 * rank + row) * 2]);
    }
}

TEST(Executor, CollectivesOverAxesOfOneRankCopy) {
  HandPlan p({{"tp", 1}, {"cp", 2}});
  uint32_t in = p.buffer("in", {4}), out = p.buffer("out", {4});
  p.program("evaluate");
  p.collective(fb::CollectiveKind::AllReduce, in, out, {"tp"});
  p.collective(fb::CollectiveKind::AllReduce, out, out, {"tp"});
  Ranks ranks(p.plan);
  for (int rank = 0; rank < 2; ++rank)
    std::fill_n(ranks.data(rank, in), 4, float(7 + rank));
  ranks.run({"evaluate"});
  EXPECT_EQ(ranks.data(0, out)[3], 7);
  EXPECT_EQ(ranks.data(1, out)[3], 8);
}

TEST(Executor, InstancesSelectInstructionsAndResolveAccumulate) {
  HandPlan p;
  uint32_t x = p.buffer("x", {1}), sum = p.buffer("sum", {1}), trace = p.buffer("trace", {4});
  uint32_t cells[4];
  for (uint32_t i = 0; i < 4; ++i)
    cells[i] = p.view(concat("cell", i), trace, i, {1});
  p.program("train");
  HandPlan::integer(p.launch("accumulate", {x, sum}), "accumulate", 2);
  fb::When whens[] = {fb::When::Always, fb::When::First, fb::When::NotFirst, fb::When::Last};
  for (uint32_t i = 0; i < 4; ++i) {
    fb::InstructionT &instruction = p.launch("fill", {cells[i]});
    HandPlan::number(instruction, "value", 1);
    instruction.when = whens[i];
  }
  Ranks ranks(p.plan);
  auto traceOf = [&](bool first, bool last) {
    std::fill_n(ranks.data(0, trace), 4, 0.0f);
    ranks.run({"train", first, last});
    return std::vector<float>(ranks.data(0, trace), ranks.data(0, trace) + 4);
  };
  *ranks.data(0, x) = 3;
  *ranks.data(0, sum) = 100;
  EXPECT_EQ(traceOf(true, false), (std::vector<float>{1, 1, 0, 0}));
  EXPECT_EQ(*ranks.data(0, sum), 3) << "the first pack overwrites";
  EXPECT_EQ(traceOf(false, false), (std::vector<float>{1, 0, 1, 0}));
  EXPECT_EQ(traceOf(false, true), (std::vector<float>{1, 0, 1, 1}));
  EXPECT_EQ(*ranks.data(0, sum), 9) << "later packs add";
  EXPECT_EQ(traceOf(true, true), (std::vector<float>{1, 1, 0, 1}));
  EXPECT_EQ(*ranks.data(0, sum), 3);
}

TEST(Executor, DefaultsOfParametersAreFilledIn) {
  HandPlan p;
  uint32_t x = p.buffer("x", {2});
  p.program("evaluate");
  p.launch("fill", {x});
  Ranks ranks(p.plan, {.fill_nan = true});
  EXPECT_TRUE(std::isnan(ranks.data(0, x)[0]));
  ranks.run({"evaluate"});
  EXPECT_EQ(ranks.data(0, x)[1], 0);
}

TEST(Executor, RepeatRunsAsOftenAsItsSymbolSays) {
  HandPlan p;
  uint32_t x = p.buffer("x", {1}), sum = p.buffer("sum", {1});
  p.program("evaluate");
  HandPlan::number(p.launch("fill", {sum}), "value", 0);
  p.plan.symbols.push_back(std::make_unique<fb::SymbolT>());
  p.plan.symbols[0]->name = "head_rounds";
  p.plan.symbols[0]->capacity = 4;
  fb::InstructionT &repeat = HandPlan::repeat(p.block(), 0);
  HandPlan::integer(PlanBuilder::launch(repeat.body, p.kernel("accumulate"), {x, sum}),
                    "accumulate", 1);
  Ranks ranks(p.plan);
  *ranks.data(0, x) = 1;
  for (int64_t rounds : {3, 0, 4}) {
    ranks[0].setSymbol("head_rounds", rounds);
    ranks.run({"evaluate"});
    EXPECT_EQ(*ranks.data(0, sum), float(rounds));
  }
  EXPECT_NE(errorOf([&] { ranks[0].setSymbol("head_rounds", 5); }).find("0 to 4"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { ranks[0].setSymbol("tail_rounds", 1); }).find("tail_rounds"),
            std::string::npos);
}

TEST(Executor, AllLaunchesThatCannotBindAreReportedTogether) {
  HandPlan p;
  uint32_t a = p.buffer("a", {3, 5}), b = p.buffer("b", {4, 2}), c = p.buffer("c", {3, 2});
  p.program("evaluate");
  p.launch("matmul", {a, b, -1, c}).location = p.location("model.mlir", 12);
  p.launch("copy", {a, c}).location = p.location("model.mlir", 34);
  Ranks ranks(p.plan);
  std::string message = errorOf([&] { ranks[0].bind({"evaluate"}); });
  for (const char *part :
       {"2 launches",
        "matmul (instruction 0 of evaluate, model.mlir:12:3): inner dimensions differ",
        "copy (instruction 1 of evaluate, model.mlir:34:3): the backend does not have this kernel"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Executor, AnUnknownProgramNamesTheKnownOnes) {
  HandPlan p;
  p.program("train");
  p.program("evaluate");
  Ranks ranks(p.plan);
  std::string message = errorOf([&] { ranks[0].bind({"update"}); });
  EXPECT_NE(message.find("update; it has train, evaluate"), std::string::npos) << message;
}

TEST(Executor, ReferenceRunsTheReferenceKernels) {
  HandPlan p;
  uint32_t x = p.buffer("x", {1});
  p.program("evaluate");
  HandPlan::number(p.launch("fill", {x}), "value", 5);
  KernelRegistry wrong;
  add(wrong, "fill",
      [](const KernelCall &call, WorkerPool &) { *call.operands[0].as<float>() = -1; });
  Ranks backend(p.plan, {}, wrong), reference(p.plan, {.reference = true}, wrong);
  backend.run({"evaluate"});
  reference.run({"evaluate"});
  EXPECT_EQ(*backend.data(0, x), -1);
  EXPECT_EQ(*reference.data(0, x), 5);
}

/// c += a b on numbers for which the result is the largest where `off` is added; run with
/// --compare.
std::string compareMatmul(Function kernel) {
  HandPlan p;
  uint32_t a = p.buffer("a", {2, 2}), b = p.buffer("b", {2, 2}), c = p.buffer("c", {2, 2});
  p.program("train");
  fb::InstructionT &instruction = p.launch("matmul", {a, b, -1, c});
  HandPlan::integer(instruction, "accumulate", 1);
  instruction.location = p.location("model.mlir", 56);
  KernelRegistry backend;
  add(backend, "matmul", kernel);
  Ranks ranks(p.plan, {.compare = true}, std::move(backend));
  for (int i = 0; i < 4; ++i) {
    ranks.data(0, a)[i] = float(i);
    ranks.data(0, b)[i] = ranks.data(0, c)[i] = 1;
  }
  std::string message = errorOf([&] { ranks[0].run(ranks[0].bind({"train"})); });
  if (message.empty())
    EXPECT_EQ(ranks.data(0, c)[3], 6.0f) << "the reference must not add to the plan's own buffer";
  return message;
}

TEST(Compare, AcceptsAKernelWithinTolerance) {
  EXPECT_EQ(compareMatmul(matmulKernel), "");
  EXPECT_EQ(compareMatmul([](const KernelCall &call, WorkerPool &pool) {
              matmulKernel(call, pool);
              call.operands[3].as<float>()[0] += 5e-5f; // 1e-5 of the largest entry, 6, is 6e-5
            }),
            "");
}

TEST(Compare, StopsAtTheFirstInstructionOutOfToleranceWithItsPlace) {
  std::string message = compareMatmul([](const KernelCall &call, WorkerPool &pool) {
    matmulKernel(call, pool);
    call.operands[3].as<float>()[2] += 1e-4f;
  });
  for (const char *part : {"instruction 0 of train, model.mlir:56:3", "c = c[1, 0] is 6.0001",
                           "the reference has 6,", "a = a f32[2,2]", "bias = absent"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Compare, ReportsNaNAndMissingWrites) {
  EXPECT_NE(compareMatmul([](const KernelCall &call, WorkerPool &pool) {
              matmulKernel(call, pool);
              call.operands[3].as<float>()[1] = NAN;
            }).find("c = c[0, 1] is nan"),
            std::string::npos);
  EXPECT_NE(compareMatmul([](const KernelCall &, WorkerPool &) {}).find("c = c[0, 0] is 1,"),
            std::string::npos);
}

TEST(Compare, KeepsACopyOfAnInputThatTheLaunchOverwrites) {
  HandPlan p;
  uint32_t x = p.buffer("x", {3});
  p.program("train");
  HandPlan::integer(p.launch("accumulate", {x, x}), "accumulate", 1);
  Ranks ranks(p.plan, {.compare = true});
  std::fill_n(ranks.data(0, x), 3, 4.0f);
  ranks.run({"train"});
  EXPECT_EQ(ranks.data(0, x)[2], 8);
}

} // namespace
