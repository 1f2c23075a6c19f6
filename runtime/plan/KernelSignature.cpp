#include "runtime/plan/KernelSignature.h"

#include "runtime/base/Error.h"

#include <algorithm>
#include <string_view>
#include <xxhash.h>

using namespace sft;

namespace {

/// One SFT_KERNEL line of Kernels.def.
struct Entry {
  std::string_view name, operands, parameters, aliases, workspace;
};

constexpr Entry kEntries[] = {
#define SFT_KERNEL(name, operands, parameters, aliases, workspace)                                 \
  {#name, operands, parameters, aliases, workspace},
#include "runtime/plan/Kernels.def"
#undef SFT_KERNEL
};

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// The trimmed parts between separators; nothing for an empty text.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (trim(text).empty())
    return parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> splitNames(std::string_view text, char separator) {
  std::vector<std::string> names;
  for (std::string_view part : split(text, separator))
    names.emplace_back(part);
  return names;
}

/// "name:in|out|inout[?]:dtypes:dimensions"
OperandSignature parseOperand(std::string_view text) {
  std::vector<std::string_view> fields = split(text, ':');
  if (fields.size() != 4)
    failInternal("Kernels.def operand needs four fields: ", text);
  OperandSignature operand;
  operand.name = fields[0];
  std::string_view direction = fields[1];
  if (direction.ends_with('?')) {
    operand.optional = true;
    direction.remove_suffix(1);
  }
  operand.in = direction == "in" || direction == "inout";
  operand.out = direction == "out" || direction == "inout";
  if (!operand.in && !operand.out)
    failInternal("Kernels.def operand direction: ", text);
  operand.dtypes = splitNames(fields[2], '|');
  operand.dimensions = splitNames(fields[3], ',');
  return operand;
}

/// "name:int|float|string[=default]"
ParameterSignature parseParameter(std::string_view text) {
  std::vector<std::string_view> fields = split(text, ':');
  if (fields.size() != 2)
    failInternal("Kernels.def parameter needs two fields: ", text);
  ParameterSignature parameter;
  parameter.name = fields[0];
  size_t equals = fields[1].find('=');
  parameter.required = equals == std::string_view::npos;
  parameter.type = fields[1].substr(0, equals);
  if (!parameter.required)
    parameter.default_value = fields[1].substr(equals + 1);
  return parameter;
}

KernelSignature parseEntry(const Entry &entry) {
  KernelSignature signature;
  signature.name = entry.name;
  if (entry.operands != "...")
    for (std::string_view operand : split(entry.operands, ';'))
      signature.operands.push_back(parseOperand(operand));
  for (std::string_view parameter : split(entry.parameters, ';'))
    signature.parameters.push_back(parseParameter(parameter));
  signature.workspace = entry.workspace;
  std::string text = concat(entry.name, '\n', entry.operands, '\n', entry.parameters, '\n',
                            entry.aliases, '\n', entry.workspace);
  signature.hash = XXH3_64bits(text.data(), text.size());
  return signature;
}

const std::vector<KernelSignature> &signatures() {
  static const std::vector<KernelSignature> all = [] {
    std::vector<KernelSignature> parsed;
    for (const Entry &entry : kEntries)
      parsed.push_back(parseEntry(entry));
    return parsed;
  }();
  return all;
}

} // namespace

const KernelSignature *sft::findKernel(const std::string &name) {
  for (const KernelSignature &signature : signatures())
    if (signature.name == name)
      return &signature;
  return nullptr;
}

std::vector<std::string> sft::kernelNames() {
  std::vector<std::string> names;
  for (const KernelSignature &signature : signatures())
    names.push_back(signature.name);
  return names;
}
