#include "dialects/sft/FactorRule.h"
#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

/// "t (g r d)" -> {t, g}.
static SmallVector<DimensionFactor> parseDimensions(StringRef text) {
  SmallVector<DimensionFactor> dimensions;
  text = text.trim();
  while (!text.empty()) {
    StringRef item, compound;
    if (text.consume_front("(")) {
      std::tie(compound, text) = text.split(')');
      item = compound.split(' ').first;
    } else {
      std::tie(item, text) = text.split(' ');
    }
    bool fixed = item.consume_back("!");
    dimensions.push_back({item.str(), compound.str(), fixed});
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

FailureOr<FactorRule> FactorRule::get(Operation *op) {
  std::string text = cast<ShardingRule>(op).getFactorString();
  auto [left, right] = StringRef(text).split("->");
  FactorRule rule{parseValues(left), parseValues(right)};
  SmallVector<Value> values = operandsAndResults(op);
  bool fits = rule.operands.size() == op->getNumOperands() && rule.results.size() == op->getNumResults();
  for (unsigned i = 0; fits && i < values.size(); ++i)
    fits = int64_t(rule.value(i).size()) == tensorType(values[i]).getRank();
  if (!fits)
    return op->emitOpError() << "factor string \"" << text << "\" does not fit the operands and results";

  llvm::StringMap<int64_t> sizes;
  for (auto [index, value] : llvm::enumerate(values))
    for (auto [dimension, factor] : llvm::enumerate(rule.value(index))) {
      int64_t size = tensorType(value).getDimSize(dimension);
      if (ShapedType::isDynamic(size)) // the token axis, before it is fixed
        continue;
      StringRef name = factor.compound.empty() ? factor.name : factor.compound;
      auto [it, isNew] = sizes.try_emplace(name, size);
      if (isNew || it->second == size)
        continue;
      bool isOperand = index < op->getNumOperands();
      return op->emitOpError() << "factor \"" << name << "\" has " << it->second << " elements, but dimension " << dimension << " of "
                               << (isOperand ? "operand " : "result ") << (isOperand ? index : index - op->getNumOperands()) << " has "
                               << size;
    }
  return rule;
}

SmallVector<Value> sftc::operandsAndResults(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  values.append(op->result_begin(), op->result_end());
  return values;
}
