// Row kernels: what the compiler generates is tested with the compiler. Here hand-written functions
// take its place, beside the interpreted body, so the dealing of rows, the column sums and every
// kind of access are checked.

#include "test/conformance/Conformance.h"

#include "runtime/base/Error.h"

#include <algorithm>
#include <cmath>

using namespace sft;
using namespace sft::test;

namespace {

/// Builds a RowBody; every op method returns the number of its value.
class BodyBuilder {
public:
  explicit BodyBuilder(int64_t width) : body_(std::make_shared<fb::RowBodyT>()) {
    body_->width = width;
  }

  fb::RowOperandT &operand(fb::RowAccess access, bool isOutput, int64_t width,
                           fb::DType dtype = fb::DType::F32) {
    body_->operands.push_back(std::make_unique<fb::RowOperandT>());
    fb::RowOperandT &made = *body_->operands.back();
    made.access = access;
    made.output = isOutput;
    made.dtype = dtype;
    made.width = width;
    return made;
  }

  int op(const std::string &name, std::vector<int32_t> args = {}, int attribute = 0, double f = 0) {
    body_->ops.push_back(std::make_unique<fb::RowOpT>());
    fb::RowOpT &made = *body_->ops.back();
    made.op = name;
    made.args = std::move(args);
    made.attribute = attribute;
    made.f = f;
    return int(body_->ops.size()) - 1;
  }
  int load(int operand) { return op("load", {}, operand); }
  int constant(double value) { return op("constant", {}, 0, value); }
  void store(int operand, int value) { op("store", {value}, operand); }

  std::shared_ptr<fb::RowBodyT> take() { return body_; }

private:
  std::shared_ptr<fb::RowBodyT> body_;
};

/// y = x * rsqrt(mean(x^2) + 1e-5) * w, r = that rsqrt, s = column sums of x * r. Operands: x, w,
/// y, r, s.
template <int64_t width> void normRows(void *const *operands, int64_t begin, int64_t end) {
  const float *x = static_cast<const float *>(operands[0]),
              *w = static_cast<const float *>(operands[1]);
  float *y = static_cast<float *>(operands[2]), *r = static_cast<float *>(operands[3]),
        *s = static_cast<float *>(operands[4]);
  std::fill(s, s + width, 0.0f);
  for (int64_t row = begin; row < end; ++row) {
    float squares = 0;
    for (int64_t j = 0; j < width; ++j)
      squares += x[row * width + j] * x[row * width + j];
    r[row] = 1.0f / std::sqrt(squares * (1.0f / width) + 1e-5f);
    for (int64_t j = 0; j < width; ++j) {
      float normed = x[row * width + j] * r[row];
      y[row * width + j] = normed * w[j];
      s[j] += normed;
    }
  }
}

template <int64_t width> Case normCase(int64_t rows, int64_t blockRows) {
  BodyBuilder b(width);
  b.operand(fb::RowAccess::Row, false, width);
  b.operand(fb::RowAccess::Column, false, width);
  b.operand(fb::RowAccess::Row, true, width);
  b.operand(fb::RowAccess::Scalar, true, 1);
  b.operand(fb::RowAccess::ColumnSum, true, width);
  int x = b.load(0);
  int mean = b.op("mul", {b.op("reduce_sum", {b.op("mul", {x, x})}), b.constant(1.0 / width)});
  int r = b.op("rsqrt", {b.op("add", {mean, b.constant(1e-5)})});
  int normed = b.op("mul", {x, r});
  b.store(2, b.op("mul", {normed, b.load(1)}));
  b.store(3, r);
  b.store(4, normed);
  Case launch;
  launch.kernel = "row_kernel";
  launch.name = "norm_rows" + std::to_string(rows) + "_width" + std::to_string(width) + "_block" +
                std::to_string(blockRows);
  launch.operands = {input({rows, width}, normal(rows * width, 11)),
                     input({width}, normal(width, 12)), output({rows, width}), output({rows}),
                     output({width})};
  launch.integers = {{"rows", rows}, {"block_rows", blockRows}, {"column_sums", 1 << 4}};
  launch.rowFunction = normRows<width>;
  launch.rowBody = b.take();
  launch.tolerance = 2e-6;
  return launch;
}

/// Rotary embedding with a table: y = x * cos[p] + sign * partner(x) * cos[p] where p = position -
/// offset lies inside the table and 0 elsewhere; m = largest entry of the row, or -1 where the
/// position is smaller than the offset. Operands: x, x again for the partner, cos [tableRows,
/// period], positions, offset, sign [rows, period], y, m.
template <int64_t width, int64_t period, int64_t tableRows>
void rotaryRows(void *const *operands, int64_t begin, int64_t end) {
  const float *x = static_cast<const float *>(operands[0]),
              *other = static_cast<const float *>(operands[1]);
  const float *table = static_cast<const float *>(operands[2]),
              *sign = static_cast<const float *>(operands[5]);
  const int32_t *positions = static_cast<const int32_t *>(operands[3]),
                *offset = static_cast<const int32_t *>(operands[4]);
  float *y = static_cast<float *>(operands[6]), *m = static_cast<float *>(operands[7]);
  for (int64_t row = begin; row < end; ++row) {
    int64_t p = positions[row] - offset[1];
    float largest = -INFINITY;
    for (int64_t j = 0; j < width; ++j) {
      float cosine = p < 0 || p >= tableRows ? 0 : table[p * period + j % period];
      int64_t partner = j % period < period / 2 ? j + period / 2 : j - period / 2;
      float value = x[row * width + j] * cosine +
                    sign[row * period + j % period] * other[row * width + partner] * cosine;
      y[row * width + j] = value;
      largest = std::max(largest, value);
    }
    m[row] = p >= 0 ? largest : -1.0f;
  }
}

template <int64_t width, int64_t period, int64_t tableRows> Case rotaryCase(int64_t rows) {
  BodyBuilder b(width);
  b.operand(fb::RowAccess::Row, false, width);
  b.operand(fb::RowAccess::Partner, false, width).period = period;
  fb::RowOperandT &cosine = b.operand(fb::RowAccess::Gathered, false, period);
  cosine.period = period;
  cosine.index = 3;
  cosine.index_offset = 4;
  cosine.rows = tableRows;
  b.operand(fb::RowAccess::Scalar, false, 1, fb::DType::I32);
  b.operand(fb::RowAccess::Uniform, false, 2, fb::DType::I32).element = 1;
  b.operand(fb::RowAccess::Periodic, false, period).period = period;
  b.operand(fb::RowAccess::Row, true, width);
  b.operand(fb::RowAccess::Scalar, true, 1);
  int cos = b.load(2);
  int turned = b.op("mul", {b.op("mul", {b.load(5), b.load(1)}), cos});
  int value = b.op("add", {b.op("mul", {b.load(0), cos}), turned});
  b.store(6, value);
  int inside = b.op("ge_i", {b.load(3), b.load(4)});
  b.store(7, b.op("select", {inside, b.op("reduce_max", {value}), b.constant(-1)}));
  std::vector<int32_t> positions;
  for (int64_t row = 0; row < rows; ++row)
    positions.push_back(int32_t(row % (tableRows + 5)));
  Case launch;
  launch.kernel = "row_kernel";
  launch.name = "rotary_rows" + std::to_string(rows) + "_width" + std::to_string(width);
  launch.operands = {input({rows, width}, normal(rows * width, 13)),
                     input({rows, width}, normal(rows * width, 13)),
                     input({tableRows, period}, normal(tableRows * period, 14)),
                     input({rows}, positions),
                     input({2}, std::vector<int32_t>{99, 2}),
                     input({rows, period}, normal(rows * period, 15)),
                     output({rows, width}),
                     output({rows})};
  launch.integers = {{"rows", rows}, {"block_rows", 64}, {"column_sums", 0}};
  launch.rowFunction = rotaryRows<width, period, tableRows>;
  launch.rowBody = b.take();
  launch.tolerance = 1e-6;
  return launch;
}

std::vector<Case> rowCases() {
  return {normCase<64>(1, 64),         normCase<577>(577, 64), normCase<13>(64, 64),
          normCase<33>(130, 7),        normCase<1>(65, 64),    rotaryCase<96, 16, 10>(1),
          rotaryCase<96, 16, 10>(577), rotaryCase<8, 8, 3>(13)};
}

class Rows : public ::testing::TestWithParam<Case> {};

TEST_P(Rows, Conforms) { conform(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Cases, Rows, ::testing::ValuesIn(rowCases()), caseName);

/// What the interpreter makes of one operation on two rows of two columns: {1, -2}, {3, 0.5} as a
/// and {4, 2}, {-1, 0.5} as b.
std::vector<float> interpret(const std::string &op, size_t arguments) {
  BodyBuilder b(2);
  b.operand(fb::RowAccess::Row, false, 2);
  b.operand(fb::RowAccess::Row, false, 2);
  b.operand(fb::RowAccess::Row, true, 2);
  std::vector<int32_t> args = {b.load(0), b.load(1)};
  args.resize(arguments);
  b.store(2, b.op(op, args));
  Case launch{op,
              "row_kernel",
              {input({2, 2}, std::vector<float>{1, -2, 3, 0.5}),
               input({2, 2}, std::vector<float>{4, 2, -1, 0.5}), output({2, 2})},
              {{"rows", 2}, {"block_rows", 64}, {"column_sums", 0}},
              {},
              nullptr,
              b.take(),
              0};
  return floats(runCase(referenceBackend(), launch, 1)[2]);
}

TEST(RowInterpreter, FloatOperations) {
  EXPECT_EQ(interpret("add", 2), (std::vector<float>{5, 0, 2, 1}));
  EXPECT_EQ(interpret("sub", 2), (std::vector<float>{-3, -4, 4, 0}));
  EXPECT_EQ(interpret("mul", 2), (std::vector<float>{4, -4, -3, 0.25}));
  EXPECT_EQ(interpret("div", 2), (std::vector<float>{0.25, -1, -3, 1}));
  EXPECT_EQ(interpret("max", 2), (std::vector<float>{4, 2, 3, 0.5}));
  EXPECT_EQ(interpret("min", 2), (std::vector<float>{1, -2, -1, 0.5}));
  EXPECT_EQ(interpret("neg", 1), (std::vector<float>{-1, 2, -3, -0.5}));
  EXPECT_EQ(interpret("exp", 1),
            (std::vector<float>{std::exp(1.0f), std::exp(-2.0f), std::exp(3.0f), std::exp(0.5f)}));
  EXPECT_EQ(interpret("reduce_sum", 1), (std::vector<float>{-1, -1, 3.5, 3.5}));
  EXPECT_EQ(interpret("reduce_max", 1), (std::vector<float>{1, 1, 3, 3}));
  std::vector<float> roots = interpret("sqrt", 1), inverse = interpret("rsqrt", 1),
                     logs = interpret("log", 1);
  EXPECT_EQ(roots[2], std::sqrt(3.0f));
  EXPECT_EQ(inverse[3], 1.0f / std::sqrt(0.5f));
  EXPECT_EQ(logs[2], std::log(3.0f));
  EXPECT_TRUE(std::isnan(roots[1]));
}

TEST(RowInterpreter, IntegerOperations) {
  struct {
    const char *op;
    std::vector<float> expected;
  } cases[] = {{"add_i", {2, 3, 4}},
               {"sub_i", {-2, -1, 0}},
               {"eq_i", {0, 0, 1}},
               {"lt_i", {1, 1, 0}},
               {"ge_i", {0, 0, 1}}};
  for (const auto &[op, expected] : cases) {
    BodyBuilder b(3);
    b.operand(fb::RowAccess::Row, true, 3);
    b.store(0, b.op("convert_i_f", {b.op(op, {b.op("column_index"), b.constant(2)})}));
    Case launch{
        op, "row_kernel", {output({1, 3})}, {{"rows", 1}, {"block_rows", 64}, {"column_sums", 0}},
        {}, nullptr,      b.take(),         0};
    EXPECT_EQ(floats(runCase(referenceBackend(), launch, 1)[0]), expected) << op;
  }
}

TEST(RowInterpreter, GatheredRowOutsideTheTableReadsZero) {
  BodyBuilder b(2);
  fb::RowOperandT &table = b.operand(fb::RowAccess::Gathered, false, 2);
  table.index = 1;
  table.rows = 2;
  b.operand(fb::RowAccess::Scalar, false, 1, fb::DType::I32);
  b.operand(fb::RowAccess::Row, true, 2);
  b.store(2, b.load(0));
  Case launch{"gather",
              "row_kernel",
              {input({2, 2}, std::vector<float>{1, 2, 3, 4}),
               input({4}, std::vector<int32_t>{1, -1, 2, 0}), output({4, 2})},
              {{"rows", 4}, {"block_rows", 64}, {"column_sums", 0}},
              {},
              nullptr,
              b.take(),
              0};
  EXPECT_EQ(floats(runCase(referenceBackend(), launch, 1)[2]),
            (std::vector<float>{3, 4, 0, 0, 0, 0, 1, 2}));
}

TEST(RowErrors, GeneratedCodeMissing) {
  Case launch = normCase<13>(5, 64);
  launch.rowFunction = nullptr;
  EXPECT_THROW(runCase(cpuBackend(), launch, 1), Error);
}

TEST(RowErrors, BodyMissing) {
  Case launch = normCase<13>(5, 64);
  launch.rowBody = nullptr;
  EXPECT_THROW(runCase(referenceBackend(), launch, 1), Error);
}

} // namespace
