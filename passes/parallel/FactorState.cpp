#include "passes/parallel/FactorState.h"

using namespace mlir;
using namespace sftc;

void FactorState::join(unsigned index, ArrayRef<ArrayAttr> axes) {
  for (auto [factor, dimension] : llvm::zip(rule_.value(index), axes)) {
    if (factor.fixed || dimension.empty() || axes_.count(factor.name))
      continue;
    bool taken = llvm::any_of(axes_, [&](const auto &other) {
      return llvm::any_of(dimension, [&](Attribute axis) { return llvm::is_contained(other.second, axis); });
    });
    if (!taken)
      axes_[factor.name] = dimension;
  }
}

DimensionAxes FactorState::dimensions(unsigned index, MLIRContext *context) const {
  DimensionAxes result;
  for (const DimensionFactor &factor : rule_.value(index)) {
    auto it = axes_.find(factor.name);
    result.push_back(factor.fixed || it == axes_.end() ? ArrayAttr::get(context, {}) : it->second);
  }
  return result;
}

LogicalResult FactorState::verifyDivisible(MeshAttr mesh) {
  for (auto [index, value] : llvm::enumerate(operandsAndResults(op_)))
    for (auto [dimension, factor] : llvm::enumerate(rule_.value(index))) {
      auto it = axes_.find(factor.name);
      if (factor.fixed || it == axes_.end())
        continue;
      int64_t ranks = mesh.getSize(it->second);
      int64_t size = op_.getLeadingFactorSize(index, dimension, tensorType(value).getDimSize(dimension));
      if (size % ranks != 0)
        return emitError(op_->getLoc()) << "factor " << factor.name << " of " << op_->getName() << " has " << size
                                << " elements, which cannot be cut over " << it->second << " of " << ranks
                                << " ranks; take mesh sizes whose product divides " << size;
    }
  return success();
}

DimensionAxes sftc::axesOfRoles(ModuleOp module, ArrayAttr roles) {
  auto table = module->getAttrOfType<DictionaryAttr>(kRoleAxesAttr);
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  DimensionAxes result;
  for (StringAttr role : roles.getAsRange<StringAttr>()) {
    SmallVector<Attribute> axes;
    if (auto listed = table ? table.getAs<ArrayAttr>(role) : ArrayAttr())
      for (StringAttr axis : listed.getAsRange<StringAttr>())
        if (mesh && mesh.getSize(axis.getValue()) > 1)
          axes.push_back(axis);
    result.push_back(ArrayAttr::get(module.getContext(), axes));
  }
  return result;
}
