#include "passes/parallel/FactorRule.h"

using namespace mlir;
using namespace sftc;

/// "t (g r d)" -> {t, g}.
static SmallVector<DimensionFactor> parseDimensions(StringRef text) {
  SmallVector<DimensionFactor> dimensions;
  text = text.trim();
  while (!text.empty()) {
    StringRef item;
    if (text.consume_front("(")) {
      std::tie(item, text) = text.split(')');
      item = item.split(' ').first;
    } else {
      std::tie(item, text) = text.split(' ');
    }
    bool fixed = item.consume_back("!");
    dimensions.push_back({item.str(), fixed});
    text = text.ltrim();
  }
  return dimensions;
}

static SmallVector<SmallVector<DimensionFactor>> parseValues(StringRef text) {
  SmallVector<SmallVector<DimensionFactor>> values;
  if (text.trim().empty())
    return values;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts)
    values.push_back(parseDimensions(part));
  return values;
}

FailureOr<FactorRule> FactorRule::get(ShardingRule op) {
  std::string text = op.getFactorString();
  auto [left, right] = StringRef(text).split("->");
  FactorRule rule{parseValues(left), parseValues(right)};
  bool fits = rule.operands.size() == op->getNumOperands() && rule.results.size() == op->getNumResults();
  SmallVector<Value> values = operandsAndResults(op);
  for (unsigned i = 0; fits && i < values.size(); ++i)
    fits = int64_t(rule.value(i).size()) == tensorType(values[i]).getRank();
  if (!fits)
    return op->emitError() << "factor string \"" << text << "\" does not fit the operands and results";
  return rule;
}

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
        return op_->emitError() << "factor " << factor.name << " of " << op_->getName() << " has " << size
                                << " elements, which cannot be cut over " << it->second << " of " << ranks
                                << " ranks; take a size that divides " << size;
    }
  return success();
}

SmallVector<Value> sftc::operandsAndResults(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  values.append(op->result_begin(), op->result_end());
  return values;
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
