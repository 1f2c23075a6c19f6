#include "passes/codegen/RowKernel.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sftc;

//===----------------------------------------------------------------------===//
// RowKernel
//===----------------------------------------------------------------------===//

static RowKernelOperand describeOperand(AccessAttr access, RankedTensorType type, int64_t width,
                                        bool output) {
  int64_t rowWidth = 1, tableRows = 0;
  switch (access.getKind()) {
  case AccessKind::Row:
  case AccessKind::Column:
  case AccessKind::Partner:
  case AccessKind::ColumnSum:
    rowWidth = width;
    break;
  case AccessKind::Periodic:
    rowWidth = access.getPeriod();
    break;
  case AccessKind::Gathered:
    rowWidth = access.getPeriod();
    tableRows = type.getDimSize(0);
    break;
  case AccessKind::Scalar:
  case AccessKind::Uniform:
    break;
  }
  return {access, type.getElementType(), rowWidth, tableRows, output};
}

static RowLevel levelOf(AccessKind kind) {
  switch (kind) {
  case AccessKind::Uniform:
    return RowLevel::Uniform;
  case AccessKind::Scalar:
    return RowLevel::Row;
  default:
    return RowLevel::Element;
  }
}

RowKernel::RowKernel(FusedOp op) : op(op), body(&op.getBody().front()), width(op.getWidth()) {
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    operands.push_back(
        describeOperand(op.getInputAccess(i), tensorType(input), width, /*output=*/false));
    values[body->getArgument(i)] = {levelOf(operands.back().kind()), 0};
  }
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    operands.push_back(
        describeOperand(op.getOutputAccess(i), tensorType(result), width, /*output=*/true));

  for (Operation &inner : body->without_terminator()) {
    ValueInfo info;
    for (Value operand : inner.getOperands()) {
      ValueInfo of = values.lookup(operand);
      info.level = std::max(info.level, of.level);
      info.stage = std::max(info.stage, of.stage);
    }
    if (auto reduce = dyn_cast<RowReduceOp>(inner)) {
      if (reductions.size() <= info.stage)
        reductions.resize(info.stage + 1);
      reductions[info.stage].push_back(reduce);
      info = {RowLevel::Row, info.stage + 1};
    } else if (isa<ColumnIndexOp>(inner)) {
      info.level = RowLevel::Element;
    }
    for (Value result : inner.getResults())
      values[result] = info;
  }

  stages = reductions.size();
  for (unsigned i = getNumInputs(); i < operands.size(); ++i)
    if (operands[i].kind() != AccessKind::Scalar)
      stages = std::max(stages, getStage(getStored(i)) + 1);
}

Value RowKernel::getStored(unsigned operand) const {
  return cast<YieldOp>(body->getTerminator()).getValues()[operand - getNumInputs()];
}

SmallVector<RowReduceOp> RowKernel::getReductions(unsigned stage) const {
  return stage < reductions.size() ? reductions[stage] : SmallVector<RowReduceOp>();
}

SmallVector<Operation *> RowKernel::getElementOps(unsigned stage) const {
  llvm::DenseSet<Value> needed;
  for (RowReduceOp reduce : getReductions(stage))
    needed.insert(reduce.getValue());
  if (stage + 1 == stages)
    for (unsigned i = getNumInputs(); i < operands.size(); ++i)
      if (operands[i].kind() != AccessKind::Scalar)
        needed.insert(getStored(i));
  SmallVector<Operation *> ops;
  for (Operation &inner : llvm::reverse(body->without_terminator())) {
    if (inner.getNumResults() != 1 || !needed.contains(inner.getResult(0)) ||
        getLevel(inner.getResult(0)) != RowLevel::Element)
      continue;
    ops.push_back(&inner);
    needed.insert(inner.operand_begin(), inner.operand_end());
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

std::string RowKernel::getStructuralKey() const {
  std::string key;
  llvm::raw_string_ostream stream(key);
  stream << width;
  for (const RowKernelOperand &operand : operands)
    stream << (operand.output ? ";out " : ";in ") << operand.access << ' ' << operand.type << ' '
           << operand.tableRows;
  llvm::DenseMap<Value, unsigned> numbers;
  for (BlockArgument argument : body->getArguments())
    numbers[argument] = numbers.size();
  for (Operation &inner : *body) {
    stream << '\n' << inner.getName();
    for (Value operand : inner.getOperands())
      stream << ' ' << numbers.lookup(operand);
    stream << ' ' << inner.getAttrDictionary();
    for (Value result : inner.getResults()) {
      stream << ' ' << result.getType();
      numbers[result] = numbers.size();
    }
  }
  return key;
}

//===----------------------------------------------------------------------===//
// The interpreter's form
//===----------------------------------------------------------------------===//

static sft::fb::RowAccess toPlan(AccessKind kind) {
  switch (kind) {
  case AccessKind::Row:
    return sft::fb::RowAccess::Row;
  case AccessKind::Column:
    return sft::fb::RowAccess::Column;
  case AccessKind::Scalar:
    return sft::fb::RowAccess::Scalar;
  case AccessKind::Uniform:
    return sft::fb::RowAccess::Uniform;
  case AccessKind::Periodic:
    return sft::fb::RowAccess::Periodic;
  case AccessKind::Partner:
    return sft::fb::RowAccess::Partner;
  case AccessKind::Gathered:
    return sft::fb::RowAccess::Gathered;
  case AccessKind::ColumnSum:
    return sft::fb::RowAccess::ColumnSum;
  }
  llvm_unreachable("all kinds are named above");
}

namespace {
/// Numbers the values of a region and appends its operations.
class RowBodyBuilder {
public:
  explicit RowBodyBuilder(const RowKernel &kernel) : kernel(kernel) {}

  FailureOr<sft::fb::RowBodyT> build() {
    body.width = kernel.getWidth();
    for (const RowKernelOperand &operand : kernel.getOperands())
      if (failed(addOperand(operand)))
        return failure();
    for (BlockArgument argument : kernel.getBody().getArguments())
      if (!argument.use_empty())
        numbers[argument] = append("load", {}, argument.getArgNumber());
    for (Operation &op : kernel.getBody().without_terminator())
      if (failed(addOperation(op)))
        return failure();
    for (unsigned i = kernel.getNumInputs(); i < kernel.getOperands().size(); ++i)
      append("store", {numbers.lookup(kernel.getStored(i))}, i);
    return std::move(body);
  }

private:
  LogicalResult addOperand(const RowKernelOperand &operand) {
    auto out = std::make_unique<sft::fb::RowOperandT>();
    if (operand.type.isF32())
      out->dtype = sft::fb::DType::F32;
    else if (operand.type.isBF16())
      out->dtype = sft::fb::DType::BF16;
    else if (operand.type.isInteger(32))
      out->dtype = sft::fb::DType::I32;
    else
      return kernel.getOp().emitError()
             << "row kernels have no operands of type " << operand.type << "; f32, bf16 or i32";
    out->access = toPlan(operand.kind());
    out->output = operand.output;
    out->width = operand.width;
    out->period = operand.access.getPeriod();
    out->index = operand.access.getIndex();
    out->index_offset = operand.access.getOffset();
    out->element = operand.access.getElement();
    out->rows = operand.tableRows;
    body.operands.push_back(std::move(out));
    return success();
  }

  /// Returns the number of the new value.
  int32_t append(StringRef name, ArrayRef<int32_t> args, int32_t attribute = 0,
                 double constant = 0) {
    auto op = std::make_unique<sft::fb::RowOpT>();
    op->op = name.str();
    op->args.assign(args.begin(), args.end());
    op->attribute = attribute;
    op->f = constant;
    body.ops.push_back(std::move(op));
    return int32_t(body.ops.size()) - 1;
  }

  LogicalResult addOperation(Operation &op) {
    SmallVector<int32_t> args;
    for (Value operand : op.getOperands())
      args.push_back(numbers.lookup(operand));
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      double value = 0;
      if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
        value = real.getValueAsDouble();
      else if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
        value = integer.getType().isInteger(1) ? double(integer.getValue().getZExtValue())
                                               : double(integer.getInt());
      else
        return unknown(op);
      numbers[constant] = append("constant", {}, 0, value);
      return success();
    }
    StringRef name;
    if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
      switch (compare.getPredicate()) {
      case arith::CmpIPredicate::eq:
        name = "eq_i";
        break;
      case arith::CmpIPredicate::sgt:
        std::swap(args[0], args[1]);
        [[fallthrough]];
      case arith::CmpIPredicate::slt:
        name = "lt_i";
        break;
      case arith::CmpIPredicate::sle:
        std::swap(args[0], args[1]);
        [[fallthrough]];
      case arith::CmpIPredicate::sge:
        name = "ge_i";
        break;
      default:
        return unknown(op);
      }
    } else if (auto reduce = dyn_cast<RowReduceOp>(op)) {
      name = reduce.getKind() == ReductionKind::Sum ? "reduce_sum" : "reduce_max";
    } else {
      name = TypeSwitch<Operation *, StringRef>(&op)
                 .Case([](ColumnIndexOp) { return "column_index"; })
                 .Case([](arith::AddFOp) { return "add"; })
                 .Case([](arith::SubFOp) { return "sub"; })
                 .Case([](arith::MulFOp) { return "mul"; })
                 .Case([](arith::DivFOp) { return "div"; })
                 .Case<arith::MaximumFOp, arith::MaxNumFOp>([](auto) { return "max"; })
                 .Case<arith::MinimumFOp, arith::MinNumFOp>([](auto) { return "min"; })
                 .Case([](arith::NegFOp) { return "neg"; })
                 .Case([](math::ExpOp) { return "exp"; })
                 .Case([](math::LogOp) { return "log"; })
                 .Case([](math::SqrtOp) { return "sqrt"; })
                 .Case([](math::RsqrtOp) { return "rsqrt"; })
                 .Case([](arith::AddIOp) { return "add_i"; })
                 .Case([](arith::SubIOp) { return "sub_i"; })
                 .Case([](arith::AndIOp op) { return op.getType().isInteger(1) ? "and" : ""; })
                 .Case([](arith::SelectOp) { return "select"; })
                 .Case([](arith::SIToFPOp op) {
                   return op.getIn().getType().isInteger(32) ? "convert_i_f" : "";
                 })
                 .Default([](Operation *) { return ""; });
    }
    if (name.empty())
      return unknown(op);
    numbers[op.getResult(0)] = append(name, args);
    return success();
  }

  LogicalResult unknown(Operation &op) {
    InFlightDiagnostic diagnostic =
        op.emitError() << "the interpreter's form of a row kernel has no '" << op.getName() << "'";
    diagnostic.attachNote(kernel.getOp().getLoc()) << "in this region";
    return diagnostic;
  }

  const RowKernel &kernel;
  sft::fb::RowBodyT body;
  llvm::DenseMap<Value, int32_t> numbers;
};
} // namespace

FailureOr<sft::fb::RowBodyT> sftc::toRowBody(FusedOp op) {
  return RowBodyBuilder(RowKernel(op)).build();
}
