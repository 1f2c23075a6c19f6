#include "runtime/session/Session.h"

#include "runtime/base/Error.h"
#include "test/unit/session/BigramPlan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <unistd.h>

using namespace sft;

namespace {

constexpr int64_t kV = BigramPlan::kVocabulary;

/// Documents of 1 to 9 tokens, some without a trained token.
Dataset makeData(int64_t samples) {
  Dataset dataset;
  uint32_t state = 12345;
  auto next = [&](uint32_t below) {
    return (state = state * 1664525u + 1013904223u) / 65536u % below;
  };
  for (int64_t number = 0; number < samples; ++number) {
    Sample sample;
    sample.number = number * 3;
    size_t length = 1 + next(9);
    for (size_t i = 0; i < length; ++i) {
      sample.input_ids.push_back(int32_t(next(uint32_t(kV))));
      sample.weights.push_back(i > 0 && next(3) > 0 ? 0.5f + 0.5f * float(next(3)) : 0);
    }
    dataset.samples.push_back(std::move(sample));
  }
  return dataset;
}

std::vector<Step> makeSteps(const Dataset &dataset, int64_t globalBatch) {
  StepOptions options;
  options.tokens = BigramPlan::kTokens;
  options.max_documents = BigramPlan::kDocuments;
  options.global_batch = globalBatch;
  options.packing = Packing::Order;
  options.shuffle = false;
  return planEpoch(dataset, options, 0);
}

/// What a step must give, in double.
struct Expected {
  double loss = 0, norm = 0;
  std::vector<double> gradient = std::vector<double>(size_t(kV * kV));
  std::map<int64_t, std::vector<double>> token_losses;
};
Expected expectedOf(const Dataset &dataset, const Step &step, const std::vector<double> &matrix) {
  Expected result;
  double weightSum = 0;
  for (const Pack &pack : step.packs)
    for (int64_t index : pack.documents)
      for (float weight : dataset.samples[size_t(index)].weights)
        weightSum += weight;
  for (const Pack &pack : step.packs)
    for (int64_t index : pack.documents) {
      const Sample &sample = dataset.samples[size_t(index)];
      std::vector<double> &losses = result.token_losses[sample.number];
      losses.resize(sample.input_ids.size());
      for (size_t i = 1; i < sample.input_ids.size(); ++i) {
        if (sample.weights[i] == 0)
          continue;
        size_t row = size_t(sample.input_ids[i - 1]) * size_t(kV),
               target = size_t(sample.input_ids[i]);
        double sum = 0;
        for (size_t j = 0; j < size_t(kV); ++j)
          sum += std::exp(matrix[row + j]);
        double share = sample.weights[i] / weightSum;
        losses[i] = std::log(sum) - matrix[row + target];
        result.loss += share * losses[i];
        for (size_t j = 0; j < size_t(kV); ++j)
          result.gradient[row + j] += share * (std::exp(matrix[row + j]) / sum - (j == target));
      }
    }
  for (double g : result.gradient)
    result.norm += g * g;
  result.norm = std::sqrt(result.norm);
  return result;
}

std::vector<double> matrixOf(const Session &session) {
  std::vector<TensorToWrite> weights = session.weights();
  EXPECT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].name, "model.weight");
  const float *data = static_cast<const float *>(weights[0].data);
  return {data, data + kV * kV};
}

SessionOptions testOptions(int64_t maxPacks = 1) {
  SessionOptions options;
  options.reference = true;
  options.fill_nan = true;
  options.optimizer = "sgd";
  options.max_packs = maxPacks;
  options.timeout = 20;
  return options;
}

template <typename Body> std::string errorOf(Body body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

struct Case {
  BigramMesh mesh;
  int64_t globalBatch;
};
class EveryMesh : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Meshes, EveryMesh,
                         testing::Values(Case{{1, 1}, 1}, Case{{1, 1}, 3}, Case{{2, 1}, 1},
                                         Case{{2, 1, true}, 3}, Case{{4, 1, true}, 2},
                                         Case{{1, 2}, 2}, Case{{1, 2}, 3}, Case{{2, 2}, 5},
                                         Case{{2, 4, true}, 3}));

// Among others: huggingface/transformers #24725 (means of micro-batches), verl-project/verl #5983
// and PrimeIntellect-ai/prime-rl #1957, #1960 (denominators of one rank), NVIDIA/Megatron-LM #906
// (a factor cp in the gradients), verl-project/verl #6176 and SandAI-org/MagiAttention #9 (ranks
// without a pack or with padding alone).
TEST_P(EveryMesh, TrainsToTheNumbersOfThePlainFormulas) {
  Dataset dataset = makeData(40);
  Session session(BigramPlan(GetParam().mesh).file(), testOptions(GetParam().globalBatch));
  session.randomWeights(7);
  session.keepTokenLosses(true);
  std::vector<double> matrix = matrixOf(session);
  UpdateScalars scalars{.lr = 0.5, .clip = 0.1};
  std::vector<Step> steps = makeSteps(dataset, GetParam().globalBatch);
  ASSERT_GT(steps.size(), 2u);
  int64_t clipped = 0;
  for (const Step &step : steps) {
    Expected expected = expectedOf(dataset, step, matrix);
    std::optional<double> loss = session.accumulate(dataset, step);
    ASSERT_TRUE(loss);
    EXPECT_NEAR(*loss, expected.loss, 1e-6 * expected.loss);

    ASSERT_EQ(session.tokenLosses().size(), expected.token_losses.size());
    for (const auto &[number, losses] : expected.token_losses) {
      const std::vector<float> &got = session.tokenLosses().at(number);
      ASSERT_EQ(got.size(), losses.size());
      for (size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(got[i], losses[i], 2e-6) << "sample " << number << " token " << i;
    }

    NamedTensors gradients = session.gradients();
    ASSERT_EQ(gradients.tensors.size(), 1u);
    EXPECT_EQ(gradients.tensors[0].name, "model.weight");
    const float *gradient = static_cast<const float *>(gradients.tensors[0].data);
    double largest = 0;
    for (double g : expected.gradient)
      largest = std::max(largest, std::fabs(g));
    for (size_t i = 0; i < expected.gradient.size(); ++i)
      EXPECT_NEAR(gradient[i], expected.gradient[i], 5e-6 * largest);

    double norm = session.update(scalars);
    EXPECT_NEAR(norm, expected.norm, 1e-5 * norm);
    double scale = std::min(1.0, 0.1 / (expected.norm + 1e-6));
    clipped += scale < 1;
    for (size_t i = 0; i < matrix.size(); ++i)
      matrix[i] -= 0.5 * scale * expected.gradient[i];
    std::vector<double> updated = matrixOf(session);
    for (size_t i = 0; i < matrix.size(); ++i)
      EXPECT_NEAR(updated[i], matrix[i], 2e-6);
  }
  EXPECT_GT(clipped, 0);
}

// huggingface/transformers #48167, NVIDIA/Megatron-LM #7207, PrimeIntellect-ai/prime-rl #2515: one
// sum / sum over the whole set.
TEST_P(EveryMesh, EvaluatesToOneMeanOverTheWholeSet) {
  Dataset dataset = makeData(23);
  Session session(BigramPlan(GetParam().mesh).file(), testOptions());
  session.randomWeights(7);
  session.keepTokenLosses(true);
  Step all = makeSteps(dataset, 1000)[0];
  Expected expected = expectedOf(dataset, all, matrixOf(session));
  Session::Evaluation result = session.evaluate(dataset, makeSteps(dataset, GetParam().mesh.dp));
  ASSERT_TRUE(result.loss);
  EXPECT_NEAR(*result.loss, expected.loss, 1e-6 * expected.loss);
  EXPECT_EQ(result.trained_tokens, all.trained_tokens);
  EXPECT_EQ(session.tokenLosses().size(), dataset.samples.size())
      << "samples without a trained token are kept, as zeros";
}

TEST(Session, LoggedLossDoesNotDependOnTheMeshOrTheBatching) {
  // NVIDIA-NeMo/labs-molt #56: a micro-batch's share was logged as the loss.
  Dataset dataset = makeData(12);
  Step step = makeSteps(dataset, 1000)[0];
  ASSERT_GE(step.packs.size(), 3u);
  std::vector<double> losses;
  for (BigramMesh mesh : {BigramMesh{1, 1}, BigramMesh{2, 1}, BigramMesh{1, 2}, BigramMesh{1, 8}}) {
    Session session(BigramPlan(mesh).file(), testOptions(int64_t(step.packs.size())));
    session.randomWeights(3);
    losses.push_back(*session.accumulate(dataset, step));
  }
  for (double loss : losses)
    EXPECT_EQ(loss, losses[0]) << "rows are summed in pack order on every mesh";
}

TEST(Session, AStepWithoutTrainedTokensRunsNothing) {
  Dataset dataset = makeData(3);
  for (Sample &sample : dataset.samples)
    std::fill(sample.weights.begin(), sample.weights.end(), 0.0f);
  Session session(BigramPlan({}).file(), testOptions());
  session.randomWeights(7);
  EXPECT_FALSE(session.accumulate(dataset, makeSteps(dataset, 1)[0]));
  Session::Evaluation result = session.evaluate(dataset, makeSteps(dataset, 1));
  EXPECT_FALSE(result.loss);
  EXPECT_EQ(result.trained_tokens, 0);
}

TEST(Session, NumbersThatAreNotFiniteStopTheRunAndNameTheStep) {
  Dataset dataset = makeData(40);
  std::vector<Step> steps = makeSteps(dataset, 1);
  {
    Session session(BigramPlan({}).file(), testOptions());
    session.randomWeights(7);
    session.accumulate(dataset, steps[0]);
    session.update({.lr = std::numeric_limits<double>::infinity()});
    std::string message = errorOf([&] { session.accumulate(dataset, steps[1]); });
    EXPECT_NE(message.find("loss is not finite (step 2)"), std::string::npos) << message;
  }
  {
    Session session(BigramPlan({}).file(), testOptions());
    session.randomWeights(7);
    Step step = steps[0];
    step.weight_sum *= 1e-30; // the gradient's square overflows
    session.accumulate(dataset, step);
    std::string message = errorOf([&] { session.update({}); });
    EXPECT_NE(message.find("gradient norm is not finite (step 1): inf"), std::string::npos)
        << message;
  }
}

TEST(Session, RandomWeightsAreTheSameOnEveryMeshAndFollowTheConfig) {
  Session one(BigramPlan({}).file(), testOptions()), four(BigramPlan({2, 2}).file(), testOptions());
  one.randomWeights(11);
  four.randomWeights(11);
  std::vector<double> matrix = matrixOf(one);
  EXPECT_EQ(matrix, matrixOf(four));
  double squares = 0;
  for (double w : matrix)
    squares += w * w;
  EXPECT_NEAR(std::sqrt(squares / double(matrix.size())), 0.5, 0.15)
      << "initializer_range of the config";
  four.randomWeights(12);
  EXPECT_NE(matrix, matrixOf(four));
}

TEST(Session, NormWeightsStartAtOneAndBiasesAtZero) {
  for (auto [name, value] :
       {std::pair("model.norm.weight", 1.0), std::pair("model.norm.bias", 0.0)}) {
    BigramPlan plan({});
    plan.plan.parameters[0]->name = name;
    Session session(plan.file(), testOptions());
    session.randomWeights(1);
    EXPECT_EQ(*static_cast<const float *>(session.weights()[0].data), value);
  }
}

TEST(Session, ExportedWeightsLoadAgain) {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / concat("sft-session-test-", getpid());
  Session session(BigramPlan({2, 1}).file(), testOptions());
  session.randomWeights(5);
  writeModelFolder(folder, session.weights(), session.plan().config, "");
  Session other(BigramPlan({}).file(), testOptions());
  other.loadWeights(folder);
  EXPECT_EQ(matrixOf(session), matrixOf(other));

  BigramPlan renamed({});
  renamed.plan.parameters[0]->name = "model.other";
  Session third(renamed.file(), testOptions());
  std::string message = errorOf([&] { third.loadWeights(folder); });
  EXPECT_NE(message.find("model.other"), std::string::npos) << message;
  EXPECT_NE(message.find("model.weight"), std::string::npos) << message;
  std::filesystem::remove_all(folder);
}

TEST(Session, RefusesWhatItCannotRun) {
  auto errorWith = [](BigramPlan plan, SessionOptions options) {
    return errorOf([&] { Session(plan.file(), options); });
  };
  SessionOptions options = testOptions();
  options.optimizer = "adamw";
  EXPECT_NE(errorWith(BigramPlan({}), options)
                .find("lacks a program (program): update; it has train, evaluate, update_sgd"),
            std::string::npos);
  options.optimizer = "lion";
  EXPECT_NE(errorWith(BigramPlan({}), options).find("lion; choose adamw or sgd"),
            std::string::npos);

  BigramPlan withoutNorm({});
  for (auto &buffer : withoutNorm.plan.buffers)
    if (buffer->name == "grad_norm")
      buffer->name = "other";
  EXPECT_NE(errorWith(std::move(withoutNorm), testOptions()).find("grad_norm is missing"),
            std::string::npos);

  Dataset dataset = makeData(20);
  Session session(BigramPlan({}).file(), testOptions(1));
  session.randomWeights(1);
  EXPECT_NE(
      errorOf([&] { session.accumulate(dataset, makeSteps(dataset, 2)[0]); }).find("2; at most 1"),
      std::string::npos);
}

TEST(Session, CountsFlopsOfMatmulsAndAttention) {
  // A batch of 24 rows: 2 * 24 * 7 * 5, and attention of width 16 over documents of 3 and 4 tokens.
  BigramPlan plan({});
  uint32_t a = plan.buffer("a", {24, 5}), b = plan.buffer("b", {7, 5}),
           c = plan.buffer("c", {24, 7}), q = plan.buffer("q", {24, 16});
  uint32_t lse = plan.buffer("lse", {24, 2}),
           squares = plan.buffer("ranges", {5, 3}, fb::DType::I32), o = plan.buffer("o", {24, 16});
  auto &block = plan.plan.programs[0]->instructions;
  HandPlan::integer(PlanBuilder::launch(block, plan.kernel("matmul"), {a, b, -1, c}), "transpose_b",
                    1);
  fb::InstructionT &square =
      PlanBuilder::launch(block, plan.kernel("square"), {q, q, q, squares, o, lse});
  HandPlan::integer(square, "head_dim", 8);
  HandPlan::number(square, "scale", 1);
  Dataset dataset;
  for (size_t length : {3u, 4u}) {
    Sample sample;
    sample.input_ids.assign(length, 1);
    sample.weights.assign(length, 1);
    sample.weights[0] = 0;
    dataset.samples.push_back(sample);
  }
  Session session(plan.file(), testOptions());
  EXPECT_EQ(session.stepFlops(dataset, makeSteps(dataset, 1)[0]),
            2 * 24 * 7 * 5 + 4 * 16 * (6 + 10));
}

} // namespace
