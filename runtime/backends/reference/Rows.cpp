// Interprets the body of a generated row kernel (RowBody in plan.fbs), one row after another. Every
// operation is made for a whole row in f32, as the generated code does; sums over a row and over a
// column are made in fp64.

#include "runtime/backends/reference/Reference.h"

#include "runtime/base/Error.h"

#include <algorithm>
#include <cmath>

using namespace sft;
using namespace sft::reference;

namespace {

/// The element of `operand` that column `column` of row `row` reads or writes; negative where a
/// gathered row is outside its table.
int64_t elementIndex(const fb::RowBodyT &body, const std::vector<TensorRef> &tensors,
                     size_t operand, int64_t row, int64_t column) {
  const fb::RowOperandT &spec = *body.operands[operand];
  switch (spec.access) {
  case fb::RowAccess::Row:
    return row * spec.width + column;
  case fb::RowAccess::Column:
  case fb::RowAccess::ColumnSum:
    return column;
  case fb::RowAccess::Scalar:
    return row;
  case fb::RowAccess::Uniform:
    return spec.element;
  case fb::RowAccess::Periodic:
    return row * spec.width + column % spec.period;
  case fb::RowAccess::Partner: {
    int64_t half = spec.period / 2;
    return row * spec.width + (column % spec.period < half ? column + half : column - half);
  }
  case fb::RowAccess::Gathered: {
    int64_t from = tensors[size_t(spec.index)].as<int32_t>()[row];
    if (spec.index_offset >= 0) {
      size_t offset = size_t(spec.index_offset);
      from -= tensors[offset].as<int32_t>()[body.operands[offset]->element];
    }
    if (from < 0 || from >= spec.rows)
      return -1;
    return from * spec.width + (spec.period ? column % spec.period : column);
  }
  }
  failInternal("row operand ", operand, " has access ", int(spec.access));
}

/// A value of the body over one row. Only one of the two is meaningful, except for constants, which
/// serve as either.
struct RowValue {
  std::vector<float> f;
  std::vector<int32_t> i;
};

class RowInterpreter {
public:
  explicit RowInterpreter(const KernelCall &call)
      : body_(*call.row_body), tensors_(call.operands), width_(body_.width),
        values_(body_.ops.size()), columnSums_(call.operands.size()) {
    for (RowValue &value : values_) {
      value.f.resize(size_t(width_));
      value.i.resize(size_t(width_));
    }
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (body_.operands[i]->access == fb::RowAccess::ColumnSum)
        columnSums_[i].assign(size_t(width_), 0.0);
  }

  void run(int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      for (size_t op = 0; op < body_.ops.size(); ++op)
        compute(op, row);
      // Results may lie where operands lie, so they are written when the row has been read.
      for (const auto &op : body_.ops)
        if (op->op == "store")
          write(*op, row);
    }
    for (size_t i = 0; i < tensors_.size(); ++i)
      for (size_t column = 0; column < columnSums_[i].size(); ++column)
        store(tensors_[i], int64_t(column), columnSums_[i][column]);
  }

private:
  void compute(size_t index, int64_t row) {
    const fb::RowOpT &op = *body_.ops[index];
    RowValue &out = values_[index];
    const std::string &name = op.op;
    auto argument = [&](size_t i) -> const RowValue & { return values_[size_t(op.args[i])]; };
    auto floats = [&](auto function) {
      for (size_t c = 0; c < size_t(width_); ++c)
        out.f[c] = function(c);
    };
    auto integers = [&](auto function) {
      for (size_t c = 0; c < size_t(width_); ++c)
        out.i[c] = function(c);
    };
    auto unary = [&](auto function) {
      const RowValue &a = argument(0);
      floats([&](size_t c) { return function(a.f[c]); });
    };
    auto binary = [&](auto function) {
      const RowValue &a = argument(0), &b = argument(1);
      floats([&](size_t c) { return function(a.f[c], b.f[c]); });
    };
    auto binaryInteger = [&](auto function) {
      const RowValue &a = argument(0), &b = argument(1);
      integers([&](size_t c) { return int32_t(function(a.i[c], b.i[c])); });
    };

    if (name == "store")
      return;
    if (name == "load")
      return read(size_t(op.attribute), row, out);
    if (name == "constant") {
      floats([&](size_t) { return float(op.f); });
      return integers([&](size_t) { return std::abs(op.f) < 2147483648.0 ? int32_t(op.f) : 0; });
    }
    if (name == "column_index")
      return integers([](size_t c) { return int32_t(c); });
    if (name == "add")
      return binary([](float a, float b) { return a + b; });
    if (name == "sub")
      return binary([](float a, float b) { return a - b; });
    if (name == "mul")
      return binary([](float a, float b) { return a * b; });
    if (name == "div")
      return binary([](float a, float b) { return a / b; });
    // A NaN on either side is the result.
    if (name == "max")
      return binary([](float a, float b) { return std::isnan(a) || a > b ? a : b; });
    if (name == "min")
      return binary([](float a, float b) { return std::isnan(a) || a < b ? a : b; });
    if (name == "neg")
      return unary([](float a) { return -a; });
    if (name == "exp")
      return unary([](float a) { return std::exp(a); });
    if (name == "log")
      return unary([](float a) { return std::log(a); });
    if (name == "sqrt")
      return unary([](float a) { return std::sqrt(a); });
    if (name == "rsqrt")
      return unary([](float a) { return 1.0f / std::sqrt(a); });
    if (name == "add_i")
      return binaryInteger([](int32_t a, int32_t b) { return uint32_t(a) + uint32_t(b); });
    if (name == "sub_i")
      return binaryInteger([](int32_t a, int32_t b) { return uint32_t(a) - uint32_t(b); });
    if (name == "eq_i")
      return binaryInteger([](int32_t a, int32_t b) { return a == b; });
    if (name == "lt_i")
      return binaryInteger([](int32_t a, int32_t b) { return a < b; });
    if (name == "ge_i")
      return binaryInteger([](int32_t a, int32_t b) { return a >= b; });
    if (name == "and")
      return binaryInteger([](int32_t a, int32_t b) { return a && b; });
    if (name == "select") {
      const RowValue &condition = argument(0), &yes = argument(1), &no = argument(2);
      floats([&](size_t c) { return condition.i[c] ? yes.f[c] : no.f[c]; });
      return integers([&](size_t c) { return condition.i[c] ? yes.i[c] : no.i[c]; });
    }
    if (name == "convert_i_f") {
      const RowValue &a = argument(0);
      return floats([&](size_t c) { return float(a.i[c]); });
    }
    if (name == "reduce_sum") {
      double sum = 0;
      for (float value : argument(0).f)
        sum += value;
      return floats([&](size_t) { return float(sum); });
    }
    if (name == "reduce_max") {
      float maximum = argument(0).f[0];
      for (float value : argument(0).f)
        maximum = std::isnan(maximum) || maximum > value ? maximum : value;
      return floats([&](size_t) { return maximum; });
    }
    failInternal("a row body uses the unknown operation ", name);
  }

  void read(size_t operand, int64_t row, RowValue &out) {
    const TensorRef &tensor = tensors_[operand];
    for (int64_t column = 0; column < width_; ++column) {
      int64_t index = elementIndex(body_, tensors_, operand, row, column);
      if (tensor.dtype == DType::I32)
        out.i[size_t(column)] = index < 0 ? 0 : tensor.as<int32_t>()[index];
      else
        out.f[size_t(column)] = index < 0 ? 0.0f : float(load(tensor, index));
    }
  }

  void write(const fb::RowOpT &op, int64_t row) {
    size_t operand = size_t(op.attribute);
    const RowValue &value = values_[size_t(op.args[0])];
    const TensorRef &tensor = tensors_[operand];
    fb::RowAccess access = body_.operands[operand]->access;
    bool oneElement = access == fb::RowAccess::Scalar || access == fb::RowAccess::Uniform;
    for (int64_t column = 0; column < (oneElement ? 1 : width_); ++column) {
      if (access == fb::RowAccess::ColumnSum)
        columnSums_[operand][size_t(column)] += value.f[size_t(column)];
      else if (tensor.dtype == DType::I32)
        tensor.as<int32_t>()[elementIndex(body_, tensors_, operand, row, column)] =
            value.i[size_t(column)];
      else
        store(tensor, elementIndex(body_, tensors_, operand, row, column), value.f[size_t(column)]);
    }
  }

  const fb::RowBodyT &body_;
  const std::vector<TensorRef> &tensors_;
  int64_t width_;
  std::vector<RowValue> values_; ///< of the ops, in order
  std::vector<std::vector<double>> columnSums_;
};

void checkRows(const KernelCall &call) {
  checkDTypes(call);
  RowLaunch launch(call);
  if (!call.row_body)
    fail("cannot interpret a row kernel (", call.location,
         "): its body is missing; compile the plan again");
  if (call.row_body->operands.size() != call.operands.size())
    fail("cannot interpret a row kernel (", call.location, "): ", call.operands.size(),
         " operands; its body has ", call.row_body->operands.size());
}

void runRows(const KernelCall &call, WorkerPool &) {
  RowInterpreter(call).run(RowLaunch(call).rows);
}

} // namespace

void reference::registerRows(KernelRegistry &registry) {
  registry.add(functionKernel("row_kernel", checkRows, runRows));
}
