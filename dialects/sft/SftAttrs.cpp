#include "dialects/sft/SftAttrs.h"
#include "dialects/sft/SftDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace sftc;

#include "dialects/sft/SftEnums.cpp.inc"

// Prints sizes as [1, 2] instead of array<i64: 1, 2>.
static ParseResult parseSizes(AsmParser &parser, DenseI64ArrayAttr &sizes) {
  SmallVector<int64_t> values;
  auto parseSize = [&] { return parser.parseInteger(values.emplace_back()); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSize))
    return failure();
  sizes = DenseI64ArrayAttr::get(parser.getContext(), values);
  return success();
}
static void printSizes(AsmPrinter &printer, DenseI64ArrayAttr sizes) {
  printer << '[';
  llvm::interleaveComma(sizes.asArrayRef(), printer);
  printer << ']';
}

#define GET_ATTRDEF_CLASSES
#include "dialects/sft/SftAttrs.cpp.inc"

void SftDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/sft/SftAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// MeshAttr
//===----------------------------------------------------------------------===//

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayAttr names, DenseI64ArrayAttr sizes) {
  if (int64_t(names.size()) != sizes.size()) // C1
    return emitError() << "mesh has " << names.size() << " names but " << sizes.size() << " sizes";
  llvm::StringSet<> seen;
  for (auto [name, size] : llvm::zip(names, sizes.asArrayRef())) {
    auto string = dyn_cast<StringAttr>(name);
    if (!string || !seen.insert(string.getValue()).second) // C2
      return emitError() << "mesh axis " << name << " is not a name of its own";
    if (size < 1) // C3
      return emitError() << "mesh axis " << name << " has size " << size << "; sizes are at least 1";
  }
  return success();
}

int64_t MeshAttr::getSize(StringRef axis) const {
  for (auto [name, size] : llvm::zip(getNames(), getSizes().asArrayRef()))
    if (cast<StringAttr>(name).getValue() == axis)
      return size;
  return 1;
}

int64_t MeshAttr::getSize(ArrayAttr axes) const {
  int64_t product = 1;
  for (StringAttr axis : axes.getAsRange<StringAttr>())
    product *= getSize(axis.getValue());
  return product;
}

bool MeshAttr::hasAxis(StringRef axis) const {
  return llvm::any_of(getNames(), [&](Attribute name) { return cast<StringAttr>(name).getValue() == axis; });
}

//===----------------------------------------------------------------------===//
// ShardingAttr
//===----------------------------------------------------------------------===//

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayAttr dimensions, ArrayAttr partialSum,
                                   ArrayAttr partialMax) {
  llvm::StringSet<> seen;
  auto add = [&](Attribute axis) -> LogicalResult {
    auto name = dyn_cast<StringAttr>(axis);
    if (!name)
      return emitError() << "expected an axis name, got " << axis;
    if (!seen.insert(name.getValue()).second) // C1
      return emitError() << "axis " << name << " occurs twice in one sharding";
    return success();
  };
  for (Attribute dimension : dimensions) {
    auto axes = dyn_cast<ArrayAttr>(dimension);
    if (!axes)
      return emitError() << "expected a list of axes for each dimension, got " << dimension;
    for (Attribute axis : axes)
      if (failed(add(axis)))
        return failure();
  }
  for (ArrayAttr partial : {partialSum, partialMax})
    for (Attribute axis : partial)
      if (failed(add(axis)))
        return failure();
  return success();
}

ShardingAttr ShardingAttr::replicated(MLIRContext *context, int64_t rank) {
  ArrayAttr none = ArrayAttr::get(context, {});
  return get(context, ArrayAttr::get(context, SmallVector<Attribute>(rank, none)), none, none);
}

bool ShardingAttr::isReplicated() const {
  return getPartialSum().empty() && getPartialMax().empty() &&
         llvm::all_of(getDimensions(), [](Attribute axes) { return cast<ArrayAttr>(axes).empty(); });
}

ArrayAttr ShardingAttr::getAxes(unsigned dimension) const { return cast<ArrayAttr>(getDimensions()[dimension]); }
