#include "passes/codegen/EmitCpu.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace sftc;

namespace {

/// Independent partial results of a reduction: enough to hide the latency of an addition, and
/// shorter chains of roundings.
constexpr int64_t kAccumulators = 4;

/// A vector may not straddle the end of a period or of half a period; otherwise the target's width,
/// less for narrow rows.
int64_t chooseVectorWidth(const RowKernel &kernel, const CpuTarget &target) {
  int64_t width = std::min<int64_t>(target.vectorWidth(), llvm::PowerOf2Ceil(kernel.getWidth()));
  for (const RowKernelOperand &operand : kernel.getOperands()) {
    int64_t period = operand.access.getPeriod();
    if (operand.kind() == AccessKind::Partner)
      width = std::gcd(width, period / 2);
    else if ((operand.kind() == AccessKind::Periodic || operand.kind() == AccessKind::Gathered) &&
             period < kernel.getWidth())
      width = std::gcd(width, period);
  }
  return width;
}

class CpuRowEmitter {
public:
  CpuRowEmitter(ImplicitLocOpBuilder &b, const RowKernel &kernel, const CpuTarget &target)
      : b(b), kernel(kernel), target(target), vectorWidth(chooseVectorWidth(kernel, target)),
        contract(arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::contract)) {}

  /// Fills the function's body.
  LogicalResult emit(func::FuncOp function);

private:
  /// A place in the row: `width` columns from `column` on, of which `mask` (null: all) exist.
  struct Columns {
    Value column, mask;
  };
  /// Partial results of the reductions of a stage: [reduction][accumulator].
  using Accumulators = SmallVector<SmallVector<Value>>;

  Value constant(int64_t value) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); }
  Type pointerType() { return LLVM::LLVMPointerType::get(b.getContext()); }
  VectorType vectorOf(Type type) { return VectorType::get({vectorWidth}, type); }
  Value splat(TypedAttr value) {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(vectorOf(value.getType()), Attribute(value)));
  }
  Value advance(Value pointer, Type elementType, Value elements) {
    return LLVM::GEPOp::create(b, pointerType(), elementType, pointer, ValueRange{elements});
  }
  int64_t bytes(Type type) { return type.getIntOrFloatBitWidth() / 8; }

  Value widenBf16(Value bits);
  Value roundToBf16(Value value);
  Value loadScalar(unsigned operand, Value index);
  void storeScalar(unsigned operand, Value index, Value value);
  Value loadVector(Value pointer, Type type, Value mask);
  void storeVector(Value pointer, Type type, Value value, Value mask);

  LogicalResult emitScalarOps(RowLevel level, unsigned stage);
  LogicalResult emitRow(Value row);
  void placeGathered(unsigned operand, Value row);
  Value inPeriod(Value column, int64_t period);
  Value loadElements(unsigned operand, const Columns &at);
  LogicalResult emitStage(unsigned stage);
  LogicalResult emitColumns(unsigned stage, const Columns &at, Accumulators &accumulators,
                            unsigned slot);
  Value combine(ReductionKind kind, Value lhs, Value rhs);
  void zeroColumnSums();

  ImplicitLocOpBuilder &b;
  const RowKernel &kernel;
  const CpuTarget &target;
  int64_t vectorWidth;
  arith::FastMathFlagsAttr contract;

  SmallVector<Value> pointers;    ///< element 0 of each operand
  SmallVector<Value> rowPointers; ///< its row, for operands that are reached element by element
  SmallVector<Value> inside;      ///< Gathered: whether the row is inside the table
  IRMapping scalars;              ///< uniform and row values
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// f32 of i16 bits, scalar or vector.
Value CpuRowEmitter::widenBf16(Value bits) {
  auto like = [&](Type type) -> Type {
    auto vector = dyn_cast<VectorType>(bits.getType());
    return vector ? Type(vector.clone(type)) : type;
  };
  Value wide = arith::ExtUIOp::create(b, like(b.getI32Type()), bits);
  Value sixteen = arith::ConstantOp::create(b, b.getI32IntegerAttr(16));
  if (isa<VectorType>(bits.getType()))
    sixteen = splat(b.getI32IntegerAttr(16));
  return arith::BitcastOp::create(b, like(b.getF32Type()), arith::ShLIOp::create(b, wide, sixteen));
}

/// i16 bits of a vector of f32, rounded to nearest, ties to even; a NaN stays one.
Value CpuRowEmitter::roundToBf16(Value value) {
  if (target.has("avx512bf16"))
    return arith::BitcastOp::create(b, vectorOf(b.getI16Type()),
                                    arith::TruncFOp::create(b, vectorOf(b.getBF16Type()), value));
  // Without the instruction, LLVM calls a function of libgcc for every element.
  auto integer = [&](int64_t v) { return splat(b.getI32IntegerAttr(v)); };
  Value bits = arith::BitcastOp::create(b, vectorOf(b.getI32Type()), value);
  Value odd = arith::AndIOp::create(b, arith::ShRUIOp::create(b, bits, integer(16)), integer(1));
  Value rounded = arith::AddIOp::create(b, bits, arith::AddIOp::create(b, odd, integer(0x7fff)));
  Value quiet = arith::OrIOp::create(b, bits, integer(0x400000));
  Value nan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, value, value);
  Value chosen = arith::SelectOp::create(b, nan, quiet, rounded);
  return arith::TruncIOp::create(b, vectorOf(b.getI16Type()),
                                 arith::ShRUIOp::create(b, chosen, integer(16)));
}

Value CpuRowEmitter::loadScalar(unsigned operand, Value index) {
  Type type = kernel.getOperands()[operand].type;
  Value pointer = advance(pointers[operand], type, index);
  if (type.isBF16())
    return widenBf16(LLVM::LoadOp::create(b, b.getI16Type(), pointer, bytes(type)));
  return LLVM::LoadOp::create(b, type, pointer, bytes(type));
}

void CpuRowEmitter::storeScalar(unsigned operand, Value index, Value value) {
  Type type = kernel.getOperands()[operand].type;
  Value pointer = advance(pointers[operand], type, index);
  if (type.isBF16()) {
    Value vector = vector::BroadcastOp::create(b, vectorOf(value.getType()), value);
    value = vector::ExtractOp::create(b, roundToBf16(vector), ArrayRef<int64_t>{0});
  }
  LLVM::StoreOp::create(b, value, pointer, bytes(type));
}

Value CpuRowEmitter::loadVector(Value pointer, Type type, Value mask) {
  Type stored = type.isBF16() ? b.getI16Type() : type;
  Value loaded;
  if (mask) {
    Value zeros = splat(cast<TypedAttr>(b.getZeroAttr(stored)));
    loaded = LLVM::MaskedLoadOp::create(b, vectorOf(stored), pointer, mask, zeros,
                                        uint32_t(bytes(type)));
  } else {
    loaded = LLVM::LoadOp::create(b, vectorOf(stored), pointer, bytes(type));
  }
  return type.isBF16() ? widenBf16(loaded) : loaded;
}

void CpuRowEmitter::storeVector(Value pointer, Type type, Value value, Value mask) {
  if (type.isBF16())
    value = roundToBf16(value);
  if (mask)
    LLVM::MaskedStoreOp::create(b, value, pointer, mask, uint32_t(bytes(type)));
  else
    LLVM::StoreOp::create(b, value, pointer, bytes(type));
}

//===----------------------------------------------------------------------===//
// Values that are the same for a whole row
//===----------------------------------------------------------------------===//

/// Lets a product and a sum become one FMA.
void allowContraction(Operation *op, arith::FastMathFlagsAttr contract) {
  if (auto fast = dyn_cast<arith::ArithFastMathInterface>(op))
    op->setAttr(
        fast.getFastMathAttrName(),
        arith::FastMathFlagsAttr::get(op->getContext(), fast.getFastMathFlagsAttr().getValue() |
                                                            contract.getValue()));
}

LogicalResult CpuRowEmitter::emitScalarOps(RowLevel level, unsigned stage) {
  for (Operation &op : kernel.getBody().without_terminator()) {
    if (isa<RowReduceOp>(op) || op.getNumResults() != 1 ||
        kernel.getLevel(op.getResult(0)) != level || kernel.getStage(op.getResult(0)) != stage)
      continue;
    if (!op.hasTrait<OpTrait::Vectorizable>() && !isa<arith::ConstantOp>(op))
      return op.emitError() << "row kernels cannot be generated from '" << op.getName() << "'";
    allowContraction(b.clone(op, scalars), contract);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

LogicalResult CpuRowEmitter::emit(func::FuncOp function) {
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  for (unsigned i = 0; i < kernel.getOperands().size(); ++i) {
    Value slot = advance(entry->getArgument(0), pointerType(), constant(i));
    pointers.push_back(LLVM::LoadOp::create(b, pointerType(), slot, /*alignment=*/8));
  }
  rowPointers = pointers;
  inside.resize(pointers.size());
  zeroColumnSums();
  for (auto [i, operand] : llvm::enumerate(kernel.getOperands()))
    if (operand.kind() == AccessKind::Uniform)
      scalars.map(kernel.getBody().getArgument(i),
                  loadScalar(i, constant(operand.access.getElement())));
  if (failed(emitScalarOps(RowLevel::Uniform, 0)))
    return failure();

  auto loop = scf::ForOp::create(b, entry->getArgument(1), entry->getArgument(2), constant(1));
  func::ReturnOp::create(b);
  b.setInsertionPointToStart(loop.getBody());
  return emitRow(loop.getInductionVar());
}

/// The function overwrites its block's partial sums, whatever rows it gets.
void CpuRowEmitter::zeroColumnSums() {
  for (auto [i, operand] : llvm::enumerate(kernel.getOperands())) {
    if (operand.kind() != AccessKind::ColumnSum)
      continue;
    int64_t whole = kernel.getWidth() / vectorWidth * vectorWidth;
    Value zeros = splat(b.getF32FloatAttr(0));
    auto loop = scf::ForOp::create(b, constant(0), constant(whole), constant(vectorWidth));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      storeVector(advance(pointers[i], operand.type, loop.getInductionVar()), operand.type, zeros,
                  Value());
    }
    for (int64_t column = whole; column < kernel.getWidth(); ++column)
      storeScalar(i, constant(column), arith::ConstantOp::create(b, b.getF32FloatAttr(0)));
  }
}

LogicalResult CpuRowEmitter::emitRow(Value row) {
  for (auto [i, operand] : llvm::enumerate(kernel.getOperands())) {
    switch (operand.kind()) {
    case AccessKind::Row:
    case AccessKind::Partner:
    case AccessKind::Periodic:
      rowPointers[i] = advance(pointers[i], operand.type,
                               arith::MulIOp::create(b, row, constant(operand.width)));
      break;
    case AccessKind::Gathered:
      placeGathered(i, row);
      break;
    case AccessKind::Scalar:
      if (!operand.output)
        scalars.map(kernel.getBody().getArgument(i), loadScalar(i, row));
      break;
    case AccessKind::Column:
    case AccessKind::ColumnSum:
    case AccessKind::Uniform:
      break;
    }
  }
  for (unsigned stage = 0;; ++stage) {
    if (failed(emitScalarOps(RowLevel::Row, stage)))
      return failure();
    if (stage == kernel.getNumStages())
      break;
    if (failed(emitStage(stage)))
      return failure();
  }
  for (unsigned i = kernel.getNumInputs(); i < kernel.getOperands().size(); ++i)
    if (kernel.getOperands()[i].kind() == AccessKind::Scalar)
      storeScalar(i, row, scalars.lookup(kernel.getStored(i)));
  return success();
}

/// Row index - offset of the table, or row 0, whose elements are then replaced, where that lies
/// outside.
void CpuRowEmitter::placeGathered(unsigned i, Value row) {
  const RowKernelOperand &operand = kernel.getOperands()[i];
  auto wide = [&](Value value) { return arith::ExtSIOp::create(b, b.getI64Type(), value); };
  Value from = wide(loadScalar(operand.access.getIndex(), row));
  if (int64_t offset = operand.access.getOffset(); offset >= 0)
    from = arith::SubIOp::create(
        b, from,
        wide(loadScalar(offset, constant(kernel.getOperands()[offset].access.getElement()))));
  // Unsigned, so that negative rows are large.
  inside[i] =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, from, constant(operand.tableRows));
  from = arith::SelectOp::create(b, inside[i], from, constant(0));
  rowPointers[i] =
      advance(pointers[i], operand.type, arith::MulIOp::create(b, from, constant(operand.width)));
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

Value CpuRowEmitter::inPeriod(Value column, int64_t period) {
  return period == kernel.getWidth()
             ? column
             : arith::RemUIOp::create(b, column, constant(period)).getResult();
}

Value CpuRowEmitter::loadElements(unsigned i, const Columns &at) {
  const RowKernelOperand &operand = kernel.getOperands()[i];
  int64_t period = operand.access.getPeriod();
  Value column = at.column;
  if (operand.kind() == AccessKind::Periodic || operand.kind() == AccessKind::Gathered) {
    column = inPeriod(column, period);
  } else if (operand.kind() == AccessKind::Partner) {
    Value half = constant(period / 2);
    Value first =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, inPeriod(column, period), half);
    column = arith::SelectOp::create(b, first, arith::AddIOp::create(b, column, half),
                                     arith::SubIOp::create(b, column, half));
  }
  Value loaded = loadVector(advance(rowPointers[i], operand.type, column), operand.type, at.mask);
  if (!inside[i])
    return loaded;
  Value keep = vector::BroadcastOp::create(b, vectorOf(b.getI1Type()), inside[i]);
  return arith::SelectOp::create(
      b, keep, loaded,
      splat(cast<TypedAttr>(b.getZeroAttr(getElementTypeOrSelf(loaded.getType())))));
}

Value CpuRowEmitter::combine(ReductionKind kind, Value lhs, Value rhs) {
  if (kind == ReductionKind::Sum)
    return arith::AddFOp::create(b, lhs, rhs, contract);
  // A NaN is kept; the order of -0 and 0 does not matter.
  return arith::MaximumFOp::create(
      b, lhs, rhs, arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::nsz));
}

static TypedAttr neutral(OpBuilder &b, ReductionKind kind) {
  return b.getF32FloatAttr(kind == ReductionKind::Sum ? 0.0f
                                                      : -std::numeric_limits<float>::infinity());
}

/// One vector of a stage's loop: loads, arithmetic, the reductions into accumulator `slot`, then
/// the stores.
LogicalResult CpuRowEmitter::emitColumns(unsigned stage, const Columns &at,
                                         Accumulators &accumulators, unsigned slot) {
  SmallVector<Operation *> ops = kernel.getElementOps(stage);
  SmallVector<RowReduceOp> reductions = kernel.getReductions(stage);
  bool last = stage + 1 == kernel.getNumStages();
  IRMapping elements;
  // The vector of an element value, or copies of a value of the row. Arguments are loaded when they
  // are first asked for: all of that happens before the stores below.
  auto vectorFor = [&](Value value) -> Value {
    if (Value known = elements.lookupOrNull(value))
      return known;
    Value made;
    if (kernel.getLevel(value) == RowLevel::Element)
      made = loadElements(cast<BlockArgument>(value).getArgNumber(), at);
    else
      made = vector::BroadcastOp::create(b, vectorOf(value.getType()), scalars.lookup(value));
    elements.map(value, made);
    return made;
  };

  for (Operation *op : ops) {
    Value result = op->getResult(0);
    if (isa<ColumnIndexOp>(op)) {
      SmallVector<int32_t> lanes(vectorWidth);
      std::iota(lanes.begin(), lanes.end(), 0);
      Value lane = arith::ConstantOp::create(
          b, DenseElementsAttr::get(vectorOf(b.getI32Type()), ArrayRef<int32_t>(lanes)));
      Value first = arith::TruncIOp::create(b, b.getI32Type(), at.column);
      Value start = vector::BroadcastOp::create(b, vectorOf(b.getI32Type()), first);
      elements.map(result, arith::AddIOp::create(b, start, lane).getResult());
      continue;
    }
    if (!op->hasTrait<OpTrait::Vectorizable>())
      return op->emitError() << "row kernels cannot be generated from '" << op->getName() << "'";
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.addOperands(vectorFor(operand));
    state.addTypes(vectorOf(result.getType()));
    state.addAttributes(op->getAttrs());
    Operation *vectorOp = b.create(state);
    allowContraction(vectorOp, contract);
    elements.map(result, vectorOp->getResult(0));
  }

  for (auto [i, reduce] : llvm::enumerate(reductions)) {
    Value value = vectorFor(reduce.getValue());
    if (at.mask)
      value = arith::SelectOp::create(b, at.mask, value, splat(neutral(b, reduce.getKind())));
    accumulators[i][slot] = combine(reduce.getKind(), accumulators[i][slot], value);
  }
  if (!last)
    return success();

  SmallVector<std::pair<unsigned, Value>> stores;
  for (unsigned i = kernel.getNumInputs(); i < kernel.getOperands().size(); ++i)
    if (kernel.getOperands()[i].kind() != AccessKind::Scalar)
      stores.push_back({i, vectorFor(kernel.getStored(i))});
  for (auto [i, value] : stores) {
    const RowKernelOperand &operand = kernel.getOperands()[i];
    Value pointer = advance(rowPointers[i], operand.type, at.column);
    if (operand.kind() == AccessKind::ColumnSum)
      value = combine(ReductionKind::Sum, loadVector(pointer, operand.type, at.mask), value);
    storeVector(pointer, operand.type, value, at.mask);
  }
  return success();
}

/// The loop over the columns of one stage, and what its reductions come to.
LogicalResult CpuRowEmitter::emitStage(unsigned stage) {
  SmallVector<RowReduceOp> reductions = kernel.getReductions(stage);
  int64_t slots = reductions.empty() ? 1 : kAccumulators;
  int64_t step = slots * vectorWidth, width = kernel.getWidth();
  int64_t looped = width / step * step, whole = width / vectorWidth * vectorWidth;

  Accumulators accumulators;
  SmallVector<Value> flat;
  for (RowReduceOp reduce : reductions) {
    accumulators.emplace_back(slots, splat(neutral(b, reduce.getKind())));
    llvm::append_range(flat, accumulators.back());
  }
  auto unflatten = [&](ValueRange values) {
    for (auto [i, row] : llvm::enumerate(accumulators))
      for (int64_t slot = 0; slot < slots; ++slot)
        row[slot] = values[i * slots + slot];
  };
  if (looped) {
    auto loop = scf::ForOp::create(b, constant(0), constant(looped), constant(step), flat);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      unflatten(loop.getRegionIterArgs());
      for (int64_t slot = 0; slot < slots; ++slot) {
        Value column =
            arith::AddIOp::create(b, loop.getInductionVar(), constant(slot * vectorWidth));
        if (failed(emitColumns(stage, {column, Value()}, accumulators, slot)))
          return failure();
      }
      if (!reductions.empty()) {
        flat.clear();
        for (const SmallVector<Value> &row : accumulators)
          llvm::append_range(flat, row);
        scf::YieldOp::create(b, flat);
      }
    }
    unflatten(loop.getResults());
  }
  int64_t slot = 0;
  for (int64_t column = looped; column < whole; column += vectorWidth)
    if (failed(emitColumns(stage, {constant(column), Value()}, accumulators, slot++)))
      return failure();
  if (whole < width) {
    SmallVector<bool> exists(vectorWidth, false);
    std::fill_n(exists.begin(), width - whole, true);
    Value mask = arith::ConstantOp::create(
        b, DenseElementsAttr::get(vectorOf(b.getI1Type()), ArrayRef<bool>(exists)));
    if (failed(emitColumns(stage, {constant(whole), mask}, accumulators, slot)))
      return failure();
  }

  for (auto [i, reduce] : llvm::enumerate(reductions)) {
    ReductionKind kind = reduce.getKind();
    SmallVector<Value> &partial = accumulators[i];
    for (int64_t half = slots / 2; half > 0; half /= 2)
      for (int64_t slot = 0; slot < half; ++slot)
        partial[slot] = combine(kind, partial[slot], partial[slot + half]);
    Value all = partial[0];
    bool sum = kind == ReductionKind::Sum;
    scalars.map(reduce.getResult(),
                vector::ReductionOp::create(
                    b, sum ? vector::CombiningKind::ADD : vector::CombiningKind::MAXIMUMF, all,
                    sum ? arith::FastMathFlags::reassoc : arith::FastMathFlags::nsz)
                    .getResult());
  }
  return success();
}

} // namespace

LogicalResult sftc::emitCpuRowKernel(ModuleOp module, const RowKernel &kernel, StringRef name,
                                     const CpuTarget &target) {
  ImplicitLocOpBuilder b(FusedOp(kernel.getOp()).getLoc(), module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), row = b.getI64Type();
  auto function = func::FuncOp::create(b, name, b.getFunctionType({pointer, row, row}, {}));
  return CpuRowEmitter(b, kernel, target).emit(function);
}
