#include "test/conformance/Conformance.h"

#include "runtime/base/Error.h"

#include <array>
#include <cmath>
#include <limits>

using namespace sft;
using namespace sft::test;

namespace {

/// One rank's attention: its squares, then its rectangles. Rows of q outside all squares see
/// nothing.
struct AttentionSpec {
  std::string name;
  int64_t qRows, kvRows, heads, kvHeads, headDim;
  std::vector<std::array<int32_t, 3>> squares;    ///< q row, kv row, length
  std::vector<std::array<int32_t, 4>> rectangles; ///< q row, q length, kv row, kv length
  float shift = 0;      ///< added to the scores of the rectangles' kv rows
  double scoreSize = 8; ///< of the largest score: fp32 scores carry an error in proportion
};

void PrintTo(const AttentionSpec &spec, std::ostream *os) { *os << spec.name; }

struct AttentionData {
  std::vector<float> q, k, v, dout;
};

AttentionData makeData(const AttentionSpec &spec) {
  int64_t D = spec.heads * spec.headDim, E = spec.kvHeads * spec.headDim;
  AttentionData data{normal(spec.qRows * D, 21), normal(spec.kvRows * E, 22),
                     normal(spec.kvRows * E, 23), normal(spec.qRows * D, 24)};
  if (spec.shift == 0)
    return data;
  // The first column of every head: a large number in q, 1 in the rectangles' rows of k and 0 in
  // the others.
  for (size_t i = 0; i < data.q.size(); i += size_t(spec.headDim))
    data.q[i] = spec.shift * std::sqrt(float(spec.headDim));
  for (size_t i = 0; i < data.k.size(); i += size_t(spec.headDim))
    data.k[i] = 0;
  for (const auto &rectangle : spec.rectangles)
    for (int64_t row = rectangle[2]; row < rectangle[2] + rectangle[3]; ++row)
      for (int64_t head = 0; head < spec.kvHeads; ++head)
        data.k[size_t(row * E + head * spec.headDim)] = 1;
  return data;
}

template <size_t columns>
CaseOperand rangeTable(const std::vector<std::array<int32_t, columns>> &ranges, bool full = false) {
  // Two entries more than used, unless the list ends with the table.
  std::vector<int32_t> values;
  for (const auto &range : ranges)
    values.insert(values.end(), range.begin(), range.end());
  values.resize(values.size() + (full ? 0 : 2 * columns), -1);
  return input({int64_t(values.size() / columns), int64_t(columns)}, values);
}

Case attentionCase(const AttentionSpec &spec, const std::string &kernel,
                   std::vector<CaseOperand> operands, double tolerance) {
  Case launch;
  launch.kernel = kernel;
  launch.name = spec.name + "/" + kernel;
  launch.operands = std::move(operands);
  launch.integers = {{"head_dim", spec.headDim}};
  launch.floats = {{"scale", 1 / std::sqrt(double(spec.headDim))}};
  launch.tolerance = tolerance + 2e-7 * (spec.scoreSize - 8);
  launch.unit = 1; // the inputs are standard normal
  return launch;
}

struct Launches {
  Case square, rectangle, squareGrad, rectangleGrad;
};

/// The four launches in order, each fed with what the reference made of the one before; `outputs`
/// becomes {o, lse, dq, dk, dv}.
Launches makeLaunches(const AttentionSpec &spec, const AttentionData &data,
                      std::vector<std::vector<float>> &outputs) {
  int64_t D = spec.heads * spec.headDim, E = spec.kvHeads * spec.headDim;
  std::vector<int64_t> qShape = {spec.qRows, D}, kvShape = {spec.kvRows, E},
                       lseShape = {spec.qRows, spec.heads};
  CaseOperand q = input(qShape, data.q), k = input(kvShape, data.k), v = input(kvShape, data.v),
              dout = input(qShape, data.dout);
  CaseOperand squares = rangeTable(spec.squares, spec.name.ends_with("full_table")),
              rectangles = rangeTable(spec.rectangles);
  Launches made;
  made.square =
      attentionCase(spec, "square", {q, k, v, squares, output(qShape), output(lseShape)}, 2e-6);
  Contents forward = runCase(referenceBackend(), made.square, 1);
  made.rectangle = attentionCase(
      spec, "rectangle",
      {q, k, v, rectangles, inout(qShape, floats(forward[4])), inout(lseShape, floats(forward[5]))},
      2e-6);
  forward = runCase(referenceBackend(), made.rectangle, 1);
  std::vector<float> o = floats(forward[4]), lse = floats(forward[5]);
  made.squareGrad = attentionCase(spec, "square_grad",
                                  {dout, q, k, v, input(qShape, o), input(lseShape, lse), squares,
                                   output(qShape), output(kvShape), output(kvShape)},
                                  5e-6);
  Contents grad = runCase(referenceBackend(), made.squareGrad, 1);
  made.rectangleGrad =
      attentionCase(spec, "rectangle_grad",
                    {dout, q, k, v, input(qShape, o), input(lseShape, lse), rectangles,
                     inout(qShape, floats(grad[7])), inout(kvShape, floats(grad[8])),
                     inout(kvShape, floats(grad[9]))},
                    5e-6);
  grad = runCase(referenceBackend(), made.rectangleGrad, 1);
  outputs = {o, lse, floats(grad[7]), floats(grad[8]), floats(grad[9])};
  return made;
}

std::vector<AttentionSpec> attentionSpecs() {
  std::vector<AttentionSpec> specs = {
      {"one_row", 1, 1, 4, 4, 8, {{{0, 0, 1}}}, {}},
      {"no_range", 13, 13, 4, 2, 16, {}, {}},
      {"empty_document", 20, 20, 2, 1, 16, {{{0, 0, 7}}, {{7, 7, 0}}, {{7, 7, 13}}}, {}},
      {"gqa_9_3", 150, 150, 9, 3, 64, {{{0, 0, 150}}}, {}},
      {"gqa_6_3", 65, 65, 6, 3, 24, {{{0, 0, 65}}}, {}},
      {"heads_4_4", 128, 128, 4, 4, 16, {{{0, 0, 64}}, {{64, 64, 64}}}, {}},
      {"odd_577", 577, 577, 2, 1, 40, {{{0, 0, 577}}}, {}},
      {"head_128", 97, 97, 2, 2, 128, {{{0, 0, 97}}}, {}},
      {"head_256", 33, 33, 2, 1, 256, {{{0, 0, 33}}}, {}},
      {"documents_of_1_to_50",
       200,
       200,
       4,
       2,
       16,
       {{{0, 0, 1}}, {{1, 1, 50}}, {{51, 51, 17}}, {{68, 68, 2}}, {{70, 70, 33}}},
       {}},
      {"documents_full_table", 64, 64, 4, 2, 16, {{{0, 0, 13}}, {{13, 13, 51}}}, {}},
      // A rank of a context-parallel group: whole K and V, its rows begin in the middle of a
      // document.
      {"rectangle_gqa_9_3",
       100,
       300,
       9,
       3,
       64,
       {{{0, 150, 70}}, {{70, 220, 30}}},
       {{{0, 70, 10, 140}}}},
      {"rectangle_one_row", 1, 2, 4, 4, 8, {{{0, 1, 1}}}, {{{0, 1, 0, 1}}}},
      {"rectangle_empty", 20, 40, 4, 2, 16, {{{0, 10, 20}}}, {{{0, 20, 10, 0}}}},
      // Two slots of one document (zigzag): both rectangles read the same first rows.
      {"rectangles_share_keys",
       130,
       577,
       6,
       3,
       16,
       {{{0, 100, 65}}, {{65, 500, 65}}},
       {{{0, 65, 0, 100}}, {{65, 65, 0, 500}}}},
  };
  // CASES A-17 (jzhang38/EasyContext 14): log-sum-exps of the partials differ widely, in both
  // directions.
  for (int difference : {50, 100, 500})
    for (int sign : {1, -1}) {
      AttentionSpec spec{"lse_difference_" + std::string(sign > 0 ? "plus_" : "minus_") +
                             std::to_string(difference),
                         70,
                         150,
                         4,
                         2,
                         16,
                         {{{0, 80, 70}}},
                         {{{0, 70, 0, 80}}}};
      spec.shift = float(sign * difference);
      spec.scoreSize = difference;
      specs.push_back(spec);
    }
  return specs;
}

class Attention : public ::testing::TestWithParam<AttentionSpec> {};

std::string specName(const ::testing::TestParamInfo<AttentionSpec> &info) {
  return info.param.name;
}

TEST_P(Attention, Conforms) {
  std::vector<std::vector<float>> outputs;
  Launches launches = makeLaunches(GetParam(), makeData(GetParam()), outputs);
  for (const Case *launch :
       {&launches.square, &launches.rectangle, &launches.squareGrad, &launches.rectangleGrad})
    conform(*launch);
}

using Doubles = std::vector<double>;

/// Attention by its definition, in fp64: a q row sees a kv row when some range says so. Returns o
/// and puts log-sum-exps into lse.
Doubles defineAttention(const AttentionSpec &spec, const Doubles &q, const Doubles &k,
                        const Doubles &v, Doubles &lse) {
  int64_t D = spec.heads * spec.headDim, E = spec.kvHeads * spec.headDim;
  std::vector<std::vector<bool>> sees(size_t(spec.qRows), std::vector<bool>(size_t(spec.kvRows)));
  for (const auto &[qRow, kvRow, length] : spec.squares)
    for (int32_t i = 0; i < length; ++i)
      for (int32_t j = 0; j <= i; ++j)
        sees[size_t(qRow + i)][size_t(kvRow + j)] = true;
  for (const auto &[qRow, qLength, kvRow, kvLength] : spec.rectangles)
    for (int32_t i = 0; i < qLength; ++i)
      for (int32_t j = 0; j < kvLength; ++j)
        sees[size_t(qRow + i)][size_t(kvRow + j)] = true;
  Doubles o(size_t(spec.qRows * D), 0.0);
  lse.assign(size_t(spec.qRows * spec.heads), -std::numeric_limits<double>::infinity());
  for (int64_t head = 0; head < spec.heads; ++head)
    for (int64_t i = 0; i < spec.qRows; ++i) {
      int64_t kvHead = head / (spec.heads / spec.kvHeads);
      Doubles scores(static_cast<size_t>(spec.kvRows));
      double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t j = 0; j < spec.kvRows; ++j) {
        if (!sees[size_t(i)][size_t(j)])
          continue;
        double score = 0;
        for (int64_t d = 0; d < spec.headDim; ++d)
          score += q[size_t(i * D + head * spec.headDim + d)] *
                   k[size_t(j * E + kvHead * spec.headDim + d)];
        scores[size_t(j)] = score / std::sqrt(double(spec.headDim));
        maximum = std::max(maximum, scores[size_t(j)]);
      }
      for (int64_t j = 0; j < spec.kvRows; ++j)
        if (sees[size_t(i)][size_t(j)]) {
          double weight = std::exp(scores[size_t(j)] - maximum);
          sum += weight;
          for (int64_t d = 0; d < spec.headDim; ++d)
            o[size_t(i * D + head * spec.headDim + d)] +=
                weight * v[size_t(j * E + kvHead * spec.headDim + d)];
        }
      if (sum == 0)
        continue;
      for (int64_t d = 0; d < spec.headDim; ++d)
        o[size_t(i * D + head * spec.headDim + d)] /= sum;
      lse[size_t(i * spec.heads + head)] = maximum + std::log(sum);
    }
  return o;
}

Doubles widen(const std::vector<float> &values) { return Doubles(values.begin(), values.end()); }

/// values + step * direction
Doubles moved(const Doubles &values, const std::vector<float> &direction, double step) {
  Doubles result = values;
  for (size_t i = 0; i < result.size(); ++i)
    result[i] += step * double(direction[i]);
  return result;
}

double inner(const Doubles &a, const std::vector<float> &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += a[i] * double(b[i]);
  return sum;
}

TEST_P(Attention, ReferenceMeetsDefinitionAndFiniteDifferences) {
  const AttentionSpec &spec = GetParam();
  AttentionData data = makeData(spec);
  std::vector<std::vector<float>> outputs;
  makeLaunches(spec, data, outputs);
  Doubles q = widen(data.q), k = widen(data.k), v = widen(data.v), lse;
  Doubles o = defineAttention(spec, q, k, v, lse);
  // Merging rounds lse to fp32, which is a relative error of the weights.
  double rounding = 1e-7 * spec.scoreSize;
  expectNear(widen(outputs[0]), o, 5e-7 + rounding, "o");
  expectNear(widen(outputs[1]), lse, 5e-7, "lse");

  // The slope of <dout, o> along three random directions, each of one operand, against the
  // gradients.
  const Doubles *operands[3] = {&q, &k, &v};
  for (size_t operand = 0; operand < 3; ++operand) {
    std::vector<float> direction =
        normal(int64_t(operands[operand]->size()), 31 + unsigned(operand));
    auto loss = [&](double step) {
      Doubles changed[3] = {q, k, v}, unused;
      changed[operand] = moved(*operands[operand], direction, step);
      return inner(defineAttention(spec, changed[0], changed[1], changed[2], unused), data.dout);
    };
    double step = 1e-4;
    double slope =
        (8 * (loss(step) - loss(-step)) - (loss(2 * step) - loss(-2 * step))) / (12 * step);
    std::vector<float> gradient = outputs[2 + operand];
    double size = std::sqrt(inner(widen(gradient), gradient));
    EXPECT_NEAR(inner(widen(gradient), direction), slope, (3e-6 + 4 * rounding) * size + 1e-7)
        << "operand " << operand;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Attention, ::testing::ValuesIn(attentionSpecs()), specName);

// CASES A-32 (pytorch/pytorch 103749, unslothai/unsloth 9848): rows that see nothing give zeros,
// and what they hold reaches nobody.
TEST(AttentionPadding, RowsThatSeeNothing) {
  AttentionSpec spec{"padding", 150, 150, 4, 2, 16, {{{3, 3, 60}}, {{63, 63, 70}}}, {}};
  AttentionData clean = makeData(spec);
  std::vector<std::vector<float>> outputs;
  Launches expected = makeLaunches(spec, clean, outputs);
  auto inside = [](int64_t row) { return row >= 3 && row < 133; };
  for (float filler :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    AttentionData filled = clean;
    for (int64_t row = 0; row < 150; ++row)
      for (std::vector<float> *tensor : {&filled.q, &filled.k, &filled.v, &filled.dout})
        if (int64_t width = int64_t(tensor->size()) / 150; !inside(row))
          std::fill_n(tensor->begin() + row * width, width, filler);
    Launches launches = makeLaunches(spec, filled, outputs);
    for (const KernelRegistry *backend : {&referenceBackend(), &cpuBackend()}) {
      for (auto [launch, cleanLaunch] : {std::pair{&launches.square, &expected.square},
                                         {&launches.squareGrad, &expected.squareGrad}}) {
        Contents actual = runCase(*backend, *launch, 2),
                 wanted = runCase(*backend, *cleanLaunch, 2);
        for (size_t i = 0; i < actual.size(); ++i)
          if (launch->operands[i].role == Role::Out)
            EXPECT_EQ(actual[i], wanted[i])
                << launch->name << " operand " << i << " depends on the filler " << filler;
      }
      Contents forward = runCase(*backend, launches.square, 2),
               grad = runCase(*backend, launches.squareGrad, 2);
      for (const std::vector<uint8_t> &bytes : {forward[4], grad[7], grad[8], grad[9]}) {
        std::vector<float> values = floats(bytes);
        int64_t width = int64_t(values.size()) / 150;
        for (int64_t i = 0; i < int64_t(values.size()); ++i)
          if (!inside(i / width))
            ASSERT_EQ(values[size_t(i)], 0.0f) << "row " << i / width;
      }
      EXPECT_EQ(floats(forward[5])[0], -std::numeric_limits<float>::infinity());
    }
  }
}

// A rectangle whose rows had seen nothing before: its partial is all there is, whatever o holds.
TEST(AttentionMerge, EarlierPartialIsEmpty) {
  AttentionSpec spec{"empty_partial", 9, 20, 2, 1, 8, {}, {{{2, 5, 1, 13}}}};
  std::vector<std::vector<float>> outputs;
  Launches launches = makeLaunches(spec, makeData(spec), outputs);
  Doubles lse, o;
  AttentionData data = makeData(spec);
  o = defineAttention(spec, widen(data.q), widen(data.k), widen(data.v), lse);
  for (const KernelRegistry *backend : {&referenceBackend(), &cpuBackend()}) {
    Contents actual = runCase(*backend, launches.rectangle, 2);
    expectNear(widen(floats(actual[4])), o, 2e-6, "o");
    expectNear(widen(floats(actual[5])), lse, 1e-6, "lse");
  }
}

TEST(AttentionErrors, HeadsThatDoNotFit) {
  AttentionSpec spec{"heads", 4, 4, 3, 2, 8, {{{0, 0, 4}}}, {}};
  std::vector<int64_t> qShape = {4, 24}, kvShape = {4, 16};
  Case launch = attentionCase(spec, "square",
                              {input(qShape, normal(96, 1)), input(kvShape, normal(64, 2)),
                               input(kvShape, normal(64, 3)), rangeTable(spec.squares),
                               output(qShape), output({4, 3})},
                              0);
  for (const KernelRegistry *backend : {&referenceBackend(), &cpuBackend()})
    EXPECT_THROW(runCase(*backend, launch, 1), Error);
}

TEST(AttentionErrors, RangeOutsideTheOperands) {
  AttentionSpec spec{"range", 4, 4, 2, 2, 8, {{{2, 2, 3}}}, {}};
  std::vector<int64_t> shape = {4, 16};
  Case launch = attentionCase(spec, "square",
                              {input(shape, normal(64, 1)), input(shape, normal(64, 2)),
                               input(shape, normal(64, 3)), rangeTable(spec.squares), output(shape),
                               output({4, 2})},
                              0);
  for (const KernelRegistry *backend : {&referenceBackend(), &cpuBackend()})
    EXPECT_THROW(runCase(*backend, launch, 1), Error);
}

} // namespace
