// Programs: launches against the kernels' signatures, collectives, repeats and events.

#include "runtime/plan/KernelSignature.h"
#include "runtime/plan/PlanChecks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

using namespace sft;

namespace {

constexpr const char *kProgramNames[] = {"train", "evaluate", "update", "update_sgd"};
constexpr size_t kMaxRepeatDepth = 8;

std::string dtypeText(fb::DType dtype) {
  std::string text = fb::EnumNameDType(dtype);
  for (char &c : text)
    c = char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// One program, instruction by instruction.
class ProgramChecks {
public:
  ProgramChecks(PlanChecks &checks, const fb::ProgramT &program)
      : checks_(checks), program_(program) {}

  void run() {
    std::string where = "program " + program_.name;
    for (const std::string &argument : program_.arguments)
      if (argument != "first" && argument != "last")
        checks_.report("unknown argument (", where, "): ", argument, "; first or last");
    checkBlock(where, program_.instructions);
    for (uint32_t result : program_.results)
      checks_.buffer(where + ", result", result);
  }

private:
  using Block = std::vector<std::unique_ptr<fb::InstructionT>>;

  bool hasArgument(const char *name) const {
    return std::find(program_.arguments.begin(), program_.arguments.end(), name) !=
           program_.arguments.end();
  }

  void checkBlock(const std::string &where, const Block &block) {
    for (size_t i = 0; i < block.size(); ++i)
      checkInstruction(concat(where, ", instruction ", i), *block[i]);
  }

  void checkInstruction(const std::string &where, const fb::InstructionT &instruction) {
    checks_.location(where, instruction.location);
    checkWhen(where, instruction);
    if (!checks_.known(where, "kind", instruction.kind))
      return;
    switch (instruction.kind) {
    case fb::InstructionKind::Launch:
      checkLaunch(where, instruction);
      break;
    case fb::InstructionKind::Collective:
      checkCollective(where + " (collective)", instruction);
      break;
    case fb::InstructionKind::Repeat:
      checkRepeat(where + " (repeat)", instruction);
      break;
    }
  }

  /// The instance that an instruction belongs to exists, and in it every awaited event has been
  /// signalled before.
  void checkWhen(const std::string &where, const fb::InstructionT &instruction) {
    using fb::When;
    if (!checks_.known(where, "condition", instruction.when))
      return;
    bool needsFirst = instruction.when == When::First || instruction.when == When::NotFirst;
    const char *argument = needsFirst ? "first" : "last";
    if (instruction.when != When::Always && !hasArgument(argument))
      checks_.report("instruction depends on an argument that the program lacks (", where,
                     "): ", argument, "; list it in the program's arguments");
    for (uint32_t event : instruction.waits)
      if (!signalled_[When::Always].count(event) && !signalled_[instruction.when].count(event))
        checks_.report(
            "wait for an event that no earlier instruction of the same instance signals (", where,
            "): event ", event, "; signal it first");
    signalled_[instruction.when].insert(instruction.signals.begin(), instruction.signals.end());
  }

  void checkLaunch(const std::string &place, const fb::InstructionT &instruction) {
    if (!checks_.inRange(place, "kernel", instruction.kernel, checks_.plan.kernels.size()))
      return;
    const fb::KernelT &kernel = *checks_.plan.kernels[instruction.kernel];
    const KernelSignature *signature = findKernel(kernel.name);
    if (!signature)
      return; // reported with the kernel
    std::string where = place + " (" + kernel.name + ")";
    std::map<std::string, int64_t> integers = checkParameters(where, instruction, *signature);
    std::vector<const fb::BufferT *> operands = operandBuffers(where, instruction);
    if (kernel.name != "row_kernel") {
      checkOperands(where, operands, *signature);
    } else if (kernel.body) {
      if (integers["rows"] < 1 || integers["block_rows"] < 1) {
        checks_.report("launch has no rows (", where, "): rows ", integers["rows"], ", block_rows ",
                       integers["block_rows"], "; at least 1 each");
        return;
      }
      checkRowLaunch(checks_, where, *kernel.body, operands, integers["rows"],
                     integers["column_sums"]);
    }
    checkWorkspace(where, instruction, *signature, operands, integers);
  }

  /// Null for an absent operand, and for one that does not exist after a report.
  std::vector<const fb::BufferT *> operandBuffers(const std::string &where,
                                                  const fb::InstructionT &instruction) {
    std::vector<const fb::BufferT *> buffers;
    for (const auto &operand : instruction.operands)
      buffers.push_back(operand->absent ? nullptr : checks_.buffer(where, operand->buffer));
    return buffers;
  }

  /// Returns the integer parameters, defaults filled in.
  std::map<std::string, int64_t> checkParameters(const std::string &where,
                                                 const fb::InstructionT &instruction,
                                                 const KernelSignature &signature) {
    std::map<std::string, int64_t> integers;
    std::set<std::string> given;
    for (const ParameterSignature &parameter : signature.parameters)
      if (parameter.type == "int" && !parameter.required)
        integers[parameter.name] = std::stoll(parameter.default_value);
    for (const auto &parameter : instruction.parameters) {
      auto known = std::find_if(
          signature.parameters.begin(), signature.parameters.end(),
          [&](const ParameterSignature &candidate) { return candidate.name == parameter->name; });
      if (known == signature.parameters.end()) {
        checks_.report("unknown parameter (", where, "): ", parameter->name, "; the kernel has ",
                       parameterNames(signature));
        continue;
      }
      if (!given.insert(parameter->name).second)
        checks_.report("parameter is given twice (", where, "): ", parameter->name, "; once");
      if (typeName(parameter->kind) != known->type)
        checks_.report("parameter has the wrong type (", where, "): ", parameter->name, " is ",
                       typeName(parameter->kind), "; ", known->type);
      else if (known->type == "int")
        integers[parameter->name] = parameter->i;
    }
    for (const ParameterSignature &parameter : signature.parameters)
      if (parameter.required && !given.count(parameter.name))
        checks_.report("parameter is missing (", where, "): ", parameter.name,
                       "; every launch gives it");
    if (auto accumulate = integers.find("accumulate"); accumulate != integers.end()) {
      if (accumulate->second < 0 || accumulate->second > 2)
        checks_.report("accumulate is unknown (", where, "): ", accumulate->second, "; 0, 1 or 2");
      if (accumulate->second == 2 && !hasArgument("first"))
        checks_.report("instruction depends on an argument that the program lacks (", where,
                       "): first, for accumulate = 2; list it in the program's arguments");
    }
    return integers;
  }

  static std::string typeName(fb::ValueKind kind) {
    switch (kind) {
    case fb::ValueKind::Integer:
      return "int";
    case fb::ValueKind::Float:
      return "float";
    case fb::ValueKind::String:
      return "string";
    }
    return concat("kind ", unsigned(kind));
  }

  static std::string parameterNames(const KernelSignature &signature) {
    std::string names;
    for (const ParameterSignature &parameter : signature.parameters)
      names += (names.empty() ? "" : ", ") + parameter.name;
    return names.empty() ? "none" : names;
  }

  void checkOperands(const std::string &where, const std::vector<const fb::BufferT *> &operands,
                     const KernelSignature &signature) {
    if (operands.size() != signature.operands.size()) {
      checks_.report("launch has the wrong number of operands (", where, "): ", operands.size(),
                     "; ", signature.operands.size());
      return;
    }
    std::map<std::string, std::pair<int64_t, std::string>>
        sizes; // of a dimension name, and the operand that set it
    for (size_t i = 0; i < operands.size(); ++i) {
      const OperandSignature &wanted = signature.operands[i];
      if (operands[i])
        checkOperand(concat(where, ", operand ", wanted.name), *operands[i], wanted, sizes);
      else if (!wanted.optional)
        checks_.report("operand is absent (", where, ", operand ", wanted.name,
                       "); only optional operands may be");
    }
  }

  void checkOperand(const std::string &where, const fb::BufferT &buffer,
                    const OperandSignature &wanted,
                    std::map<std::string, std::pair<int64_t, std::string>> &sizes) {
    std::string dtypes;
    for (const std::string &dtype : wanted.dtypes)
      dtypes += (dtypes.empty() ? "" : " or ") + dtype;
    if (std::find(wanted.dtypes.begin(), wanted.dtypes.end(), dtypeText(buffer.dtype)) ==
        wanted.dtypes.end())
      checks_.report("operand has the wrong dtype (", where, "): ", buffer.name, " is ",
                     dtypeText(buffer.dtype), "; ", dtypes);
    const std::vector<std::string> &dimensions = wanted.dimensions;
    if (dimensions.size() == 1 && dimensions[0] == "*")
      return;
    if (buffer.shape.size() != dimensions.size()) {
      checks_.report("operand has the wrong rank (", where, "): ", buffer.name, " is ",
                     shapeText(buffer.shape), "; ", dimensions.size(), " dimensions");
      return;
    }
    for (size_t i = 0; i < dimensions.size(); ++i) {
      const std::string &name = dimensions[i];
      if (name == "*")
        continue;
      bool literal = name.find_first_not_of("0123456789") == std::string::npos;
      auto [known, isNew] =
          sizes.emplace(name, std::pair(literal ? std::stoll(name) : buffer.shape[i], wanted.name));
      if (known->second.first != buffer.shape[i])
        checks_.report("operand has the wrong shape (", where, "): ", buffer.name, " is ",
                       shapeText(buffer.shape), "; dimension ", i,
                       literal ? concat(" is ", name)
                               : concat(" (", name, ") is ", known->second.first, " as in operand ",
                                        known->second.second));
    }
  }

  void checkWorkspace(const std::string &where, const fb::InstructionT &instruction,
                      const KernelSignature &signature,
                      const std::vector<const fb::BufferT *> &operands,
                      const std::map<std::string, int64_t> &integers) {
    const fb::BufferT *workspace = nullptr;
    if (instruction.workspace != -1 &&
        !(workspace = checks_.buffer(where + ", workspace", instruction.workspace)))
      return;
    std::vector<std::vector<int64_t>> shapes;
    for (const fb::BufferT *operand : operands)
      shapes.push_back(operand ? operand->shape : std::vector<int64_t>());
    size_t needed;
    try {
      needed = kernelWorkspaceBytes(signature, shapes, integers);
    } catch (const Error &error) {
      checks_.report(error.what());
      return;
    }
    int64_t have = workspace ? PlanChecks::bytes(*workspace).value_or(0) : 0;
    if (uint64_t(have) < needed)
      checks_.report("workspace is too small (", where, "): ", have, " bytes; ", needed);
  }

  void checkCollective(const std::string &where, const fb::InstructionT &instruction) {
    int64_t ranks = checks_.groupSize(where, instruction.axes);
    if (instruction.axes.empty())
      checks_.report("collective has no axes (", where, "); name the mesh axes of its group");
    for (const fb::SymbolT *symbol : repeats_)
      for (const std::string &axis : instruction.axes)
        if (std::find(symbol->uniform_axes.begin(), symbol->uniform_axes.end(), axis) ==
            symbol->uniform_axes.end())
          checks_.report("collective inside a repeat whose rounds differ between its ranks (",
                         where, "): axis ", axis, ", symbol ", symbol->name,
                         "; the symbol must be uniform over the axis");
    if (!checks_.known(where, "collective", instruction.collective) ||
        !checks_.known(where, "reduction", instruction.reduction))
      return;
    std::vector<const fb::BufferT *> operands = operandBuffers(where, instruction);
    if (operands.size() != 2 || !operands[0] || !operands[1]) {
      checks_.report("collective needs an input and an output (", where, "): ", operands.size(),
                     " operands; 2 that are present");
      return;
    }
    checkCollectiveSizes(where, instruction.collective, ranks, *operands[0], *operands[1]);
  }

  void checkCollectiveSizes(const std::string &where, fb::CollectiveKind kind, int64_t ranks,
                            const fb::BufferT &input, const fb::BufferT &output) {
    using fb::CollectiveKind;
    if (input.dtype != output.dtype)
      checks_.report("collective changes the dtype (", where, "): ", input.name, " is ",
                     dtypeText(input.dtype), ", ", output.name, " is ", dtypeText(output.dtype),
                     "; the same");
    std::optional<int64_t> in = PlanChecks::elements(input.shape),
                           out = PlanChecks::elements(output.shape);
    if (!in || !out)
      return; // reported with the buffer
    // Division, since the product of a damaged size could wrap.
    bool fits = false;
    const char *rule = "";
    switch (kind) {
    case CollectiveKind::AllGather:
      fits = *out % ranks == 0 && *out / ranks == *in;
      rule = "output = input x ranks";
      break;
    case CollectiveKind::ReduceScatter:
      fits = *in % ranks == 0 && *in / ranks == *out;
      rule = "input = output x ranks";
      break;
    case CollectiveKind::AllReduce:
      fits = *in == *out;
      rule = "input = output";
      break;
    case CollectiveKind::AllToAll:
      fits = *in == *out && *in % ranks == 0;
      rule = "input = output, a multiple of ranks";
      break;
    }
    if (!fits)
      checks_.report("collective sizes do not match (", where,
                     "): ", fb::EnumNameCollectiveKind(kind), " over ", ranks, " ranks, input ",
                     input.name, " ", shapeText(input.shape), ", output ", output.name, " ",
                     shapeText(output.shape), "; ", rule);
  }

  void checkRepeat(const std::string &where, const fb::InstructionT &instruction) {
    if (!checks_.inRange(where, "symbol", instruction.symbol, checks_.plan.symbols.size()))
      return;
    if (repeats_.size() == kMaxRepeatDepth) {
      checks_.report("repeats are nested too deep (", where, "): more than ", kMaxRepeatDepth,
                     "; at most that many");
      return;
    }
    repeats_.push_back(checks_.plan.symbols[instruction.symbol].get());
    checkBlock(where, instruction.body);
    repeats_.pop_back();
  }

  PlanChecks &checks_;
  const fb::ProgramT &program_;
  std::vector<const fb::SymbolT *> repeats_;         ///< symbols of the repeats around
  std::map<fb::When, std::set<uint32_t>> signalled_; ///< events by the instances in which they are
};

} // namespace

void sft::checkPrograms(PlanChecks &checks) {
  std::set<std::string> seen;
  for (const auto &program : checks.plan.programs) {
    if (std::find(std::begin(kProgramNames), std::end(kProgramNames), program->name) ==
            std::end(kProgramNames) ||
        !seen.insert(program->name).second)
      checks.report("program name is unknown or used twice (programs): ", program->name,
                    "; train, evaluate, update and update_sgd, each once");
    ProgramChecks(checks, *program).run();
  }
}
