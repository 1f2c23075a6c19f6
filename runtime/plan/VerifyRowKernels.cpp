// Generated row kernels: their bodies, and the buffers that launches hand them.

#include "runtime/plan/PlanChecks.h"

#include <algorithm>

using namespace sft;

namespace {

/// What the attribute of an operation names.
enum class Attribute { None, LoadedOperand, StoredOperand };

struct OpKind {
  const char *name;
  size_t args;
  Attribute attribute = Attribute::None;
};
constexpr OpKind kOpKinds[] = {
    {"load", 0, Attribute::LoadedOperand},
    {"store", 1, Attribute::StoredOperand},
    {"constant", 0},
    {"column_index", 0},
    {"add", 2},
    {"sub", 2},
    {"mul", 2},
    {"div", 2},
    {"max", 2},
    {"min", 2},
    {"neg", 1},
    {"exp", 1},
    {"log", 1},
    {"sqrt", 1},
    {"rsqrt", 1},
    {"add_i", 2},
    {"sub_i", 2},
    {"eq_i", 2},
    {"lt_i", 2},
    {"ge_i", 2},
    {"and", 2},
    {"select", 3},
    {"convert_i_f", 1},
    {"reduce_sum", 1},
    {"reduce_max", 1},
};

const OpKind *findOp(const std::string &name) {
  auto kind = std::find_if(std::begin(kOpKinds), std::end(kOpKinds),
                           [&](const OpKind &candidate) { return name == candidate.name; });
  return kind == std::end(kOpKinds) ? nullptr : kind;
}

bool isStored(fb::RowAccess access) {
  return access == fb::RowAccess::Row || access == fb::RowAccess::Scalar ||
         access == fb::RowAccess::ColumnSum;
}

/// An operand that another one reads its row from: `index` of the wanted access, i32, an input.
void checkIndexOperand(PlanChecks &checks, const std::string &where, const fb::RowBodyT &body,
                       int32_t index, fb::RowAccess access) {
  if (!checks.inRange(where, "operand", index, body.operands.size()))
    return;
  const fb::RowOperandT &operand = *body.operands[size_t(index)];
  if (operand.access != access || operand.dtype != fb::DType::I32 || operand.output)
    checks.report("index operand does not fit (", where, "): operand ", index,
                  "; an i32 input of access ", fb::EnumNameRowAccess(access));
}

/// Every element that the operand reads or writes lies inside its row.
void checkOperand(PlanChecks &checks, const std::string &where, const fb::RowBodyT &body,
                  const fb::RowOperandT &operand) {
  using fb::RowAccess;
  if (!checks.known(where, "access", operand.access) ||
      !checks.known(where, "dtype", operand.dtype))
    return;
  if (operand.output && !isStored(operand.access))
    checks.report("operand cannot be written (", where, "): access ",
                  fb::EnumNameRowAccess(operand.access), "; Row, Scalar or ColumnSum");
  if (operand.access == RowAccess::ColumnSum &&
      (!operand.output || operand.dtype != fb::DType::F32))
    checks.report("column sum does not fit (", where, "): ", fb::EnumNameDType(operand.dtype),
                  "; an f32 output");
  switch (operand.access) {
  case RowAccess::Row:
  case RowAccess::Column:
  case RowAccess::ColumnSum:
    if (operand.width != body.width)
      checks.report("operand width differs (", where, "): ", operand.width,
                    "; the width of the body, ", body.width);
    break;
  case RowAccess::Scalar:
    if (operand.width != 1)
      checks.report("operand width differs (", where, "): ", operand.width, "; 1 for a scalar");
    break;
  case RowAccess::Uniform:
    if (operand.element < 0)
      checks.report("operand element is negative (", where, "): ", operand.element, "; at least 0");
    break;
  case RowAccess::Partner:
    if (operand.width != body.width || operand.period < 2 || operand.period % 2 != 0 ||
        operand.width % operand.period != 0)
      checks.report("partner does not fit (", where, "): width ", operand.width, ", period ",
                    operand.period, "; the width of the body, ", body.width,
                    ", in whole periods of even length");
    break;
  case RowAccess::Gathered:
    if (operand.rows < 1)
      checks.report("gathered table is empty (", where, "): ", operand.rows, " rows; at least 1");
    checkIndexOperand(checks, where, body, operand.index, RowAccess::Scalar);
    if (operand.index_offset != -1)
      checkIndexOperand(checks, where, body, operand.index_offset, RowAccess::Uniform);
    [[fallthrough]];
  case RowAccess::Periodic:
    if (operand.period < 1 || operand.period > operand.width)
      checks.report("period does not fit (", where, "): ", operand.period,
                    "; 1 to the operand's width, ", operand.width);
    break;
  }
}

void checkOp(PlanChecks &checks, const std::string &where, const fb::RowBodyT &body, size_t index) {
  const fb::RowOpT &op = *body.ops[index];
  const OpKind *kind = findOp(op.op);
  if (!kind) {
    checks.report("unknown operation (", where, "): ", op.op,
                  "; this build has those that plan.fbs lists");
    return;
  }
  if (op.args.size() != kind->args)
    checks.report("operation has the wrong number of arguments (", where, "): ", op.args.size(),
                  "; ", kind->args);
  for (int32_t arg : op.args)
    if (arg < 0 || size_t(arg) >= index || body.ops[size_t(arg)]->op == "store")
      checks.report("operation refers to no earlier value (", where, "): ", arg,
                    "; a result of operations 0 to ", int64_t(index) - 1);
  if (kind->attribute == Attribute::None ||
      !checks.inRange(where, "operand", op.attribute, body.operands.size()))
    return;
  const fb::RowOperandT &operand = *body.operands[size_t(op.attribute)];
  if (kind->attribute == Attribute::StoredOperand ? !operand.output
                                                  : operand.access == fb::RowAccess::ColumnSum)
    checks.report("operation does not fit its operand (", where, "): operand ", op.attribute,
                  " of access ", fb::EnumNameRowAccess(operand.access),
                  "; stores go to outputs, and column sums are only written");
}

/// Elements of the buffer behind an operand of a launch over `rows` rows; nothing for Uniform,
/// which reads one element.
std::optional<int64_t> wantedElements(const fb::RowOperandT &operand, int64_t rows) {
  using fb::RowAccess;
  switch (operand.access) {
  case RowAccess::Column:
  case RowAccess::ColumnSum:
    return operand.width;
  case RowAccess::Gathered:
    return PlanChecks::elements({operand.rows, operand.width});
  case RowAccess::Uniform:
    return std::nullopt;
  default:
    return PlanChecks::elements({rows, operand.width});
  }
}

} // namespace

void sft::checkRowBody(PlanChecks &checks, const std::string &where, const fb::RowBodyT &body) {
  if (body.width < 1)
    checks.report("row is empty (", where, "): width ", body.width, "; at least 1");
  if (body.operands.size() > 64)
    checks.report("too many operands (", where, "): ", body.operands.size(), "; at most 64");
  for (size_t i = 0; i < body.operands.size(); ++i)
    checkOperand(checks, concat(where, ", operand ", i), body, *body.operands[i]);
  for (size_t i = 0; i < body.ops.size(); ++i)
    checkOp(checks, concat(where, ", operation ", i, " ", body.ops[i]->op), body, i);
}

void sft::checkRowLaunch(PlanChecks &checks, const std::string &where, const fb::RowBodyT &body,
                         const std::vector<const fb::BufferT *> &operands, int64_t rows,
                         int64_t columnSums) {
  if (operands.size() != body.operands.size()) {
    checks.report("launch has the wrong number of operands (", where, "): ", operands.size(),
                  "; the body has ", body.operands.size());
    return;
  }
  uint64_t sums = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const fb::RowOperandT &operand = *body.operands[i];
    std::string name = concat(where, ", operand ", i);
    if (operand.access == fb::RowAccess::ColumnSum && i < 64)
      sums |= uint64_t(1) << i;
    const fb::BufferT *buffer = operands[i];
    if (!buffer) {
      checks.report("operand is absent (", name, "); row kernels have no optional operands");
      continue;
    }
    if (buffer->dtype != operand.dtype)
      checks.report("operand has the wrong dtype (", name, "): ", buffer->name, " is ",
                    fb::EnumNameDType(buffer->dtype), "; ", fb::EnumNameDType(operand.dtype));
    checks.wantElements(name, buffer, wantedElements(operand, rows));
    std::optional<int64_t> elements = PlanChecks::elements(buffer->shape);
    if (operand.access == fb::RowAccess::Uniform && elements && operand.element >= *elements)
      checks.report("operand element is out of range (", name, "): ", operand.element, "; ",
                    buffer->name, " has ", *elements);
  }
  if (uint64_t(columnSums) != sums)
    checks.report("column_sums does not match the body (", where, "): ", columnSums, "; ", sums);
}
