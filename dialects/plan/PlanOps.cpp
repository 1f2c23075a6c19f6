#include "dialects/plan/PlanOps.h"

#include "runtime/plan/KernelSignature.h"

using namespace mlir;
using namespace sftc::plan;

#include "dialects/plan/PlanDialect.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/plan/PlanOps.cpp.inc"
      >();
}

int64_t sftc::plan::byteSize(MemRefType type) { return type.getNumElements() * (type.getElementTypeBitWidth() / 8); }

LogicalResult ArenaOp::verify() {
  static constexpr StringLiteral classes[] = {"parameter", "master", "moment", "gradient", "state", "activation", "workspace", "table"};
  if (!llvm::is_contained(classes, getBufferClass())) // C1
    return emitOpError() << "has class \"" << getBufferClass() << "\", which plan.fbs does not have";
  if (int64_t(getBytes()) < 0) // C2
    return emitOpError() << "has " << int64_t(getBytes()) << " bytes";
  return success();
}

LogicalResult GlobalOp::verify() {
  auto arena = SymbolTable::lookupNearestSymbolFrom<ArenaOp>(*this, getArenaAttr());
  if (!arena) // C1
    return emitOpError() << "lies in " << getArenaAttr() << ", which is no plan.arena";
  int64_t end = int64_t(getOffset()) + byteSize(cast<MemRefType>(getType()));
  if (int64_t(getOffset()) < 0 || end > int64_t(arena.getBytes())) { // C2
    InFlightDiagnostic diagnostic = emitOpError() << "ends at byte " << end << " of an arena of " << arena.getBytes();
    diagnostic.attachNote(arena.getLoc()) << "the arena";
    return diagnostic;
  }
  return success();
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto global = tables.lookupNearestSymbolFrom<GlobalOp>(*this, getGlobalAttr());
  if (!global) // C1
    return emitOpError() << "gets " << getGlobalAttr() << ", which is no plan.global";
  if (global.getType() != getBuffer().getType()) // C2
    return emitOpError() << "has type " << getBuffer().getType() << " but the global has type " << global.getType();
  return success();
}

static bool isWhen(StringRef when) { return when == "always" || when == "first" || when == "last"; }

LogicalResult LaunchOp::verify() {
  if (getPositions().size() != getArguments().size() || getAccesses().size() != getArguments().size()) // C1
    return emitOpError() << "has " << getArguments().size() << " operands, " << getPositions().size() << " positions and "
                         << getAccesses().size() << " accesses";
  if (!::sft::findKernel(getKernel().str())) // C2
    return emitOpError() << "runs \"" << getKernel() << "\", which is not in Kernels.def";
  for (StringAttr access : getAccesses().getAsRange<StringAttr>())
    if (access != "in" && access != "out" && access != "inout") // C3
      return emitOpError() << "has access " << access << "; it is in, out or inout";
  if (!isWhen(getWhen())) // C3
    return emitOpError() << "runs " << getWhenAttr() << "; it is always, first or last";
  int64_t operands = getArguments().size();
  if (getAliases().size() % 2 != 0 || llvm::any_of(getAliases(), [&](int64_t i) { return i < 0 || i >= operands; })) // C4
    return emitOpError() << "has aliases " << getAliasesAttr() << "; they are pairs of numbers of its " << operands << " operands";
  return success();
}

LogicalResult CollectiveOp::verify() {
  static constexpr StringLiteral kinds[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all"};
  if (!llvm::is_contained(kinds, getKind()) || (getReduction() != "sum" && getReduction() != "max") || !isWhen(getWhen())) // C1
    return emitOpError() << "is a " << getReduction() << " " << getKind() << " that runs " << getWhen() << ", which does not exist";
  auto input = cast<MemRefType>(getInput().getType()), output = cast<MemRefType>(getOutput().getType());
  int64_t in = input.getNumElements(), out = output.getNumElements();
  bool fits = input.getElementType() == output.getElementType() && in > 0 && out > 0;
  if (getKind() == "all_gather")
    fits = fits && out % in == 0;
  else if (getKind() == "reduce_scatter")
    fits = fits && in % out == 0;
  else
    fits = fits && in == out;
  if (!fits) // C2
    return emitOpError() << "cannot turn " << input << " into " << output;
  llvm::SmallDenseSet<Attribute> axes(getAxes().begin(), getAxes().end());
  if (axes.empty() || axes.size() != getAxes().size()) // C3
    return emitOpError() << "runs over " << getAxes() << "; it needs at least one axis, and each once";
  return success();
}
