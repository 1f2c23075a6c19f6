#include "tools/sft-plan/Reports.h"

#include "runtime/plan/KernelSignature.h"

#include <algorithm>
#include <map>
#include <sstream>

using namespace sft;

namespace {

std::string lower(std::string text) {
  for (char &c : text)
    c = char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// Name of an enumerator as everything else spells it: "StepScalars" is step_scalars.
std::string snakeCase(const char *name) {
  std::string text;
  for (const char *c = name; *c; ++c) {
    if (*c >= 'A' && *c <= 'Z' && c != name)
      text += '_';
    text += *c;
  }
  return lower(text);
}

std::string whenName(fb::When when) {
  switch (when) {
  case fb::When::First:
    return "first";
  case fb::When::NotFirst:
    return "not first";
  case fb::When::Last:
    return "last";
  case fb::When::Always:
    break;
  }
  return "always";
}

std::string hexText(uint64_t value) {
  std::ostringstream os;
  os << "0x" << std::hex << value;
  return os.str();
}

template <typename List> std::string join(const List &list, const char *separator) {
  std::ostringstream os;
  const char *before = "";
  for (const auto &entry : list) {
    os << before << entry;
    before = separator;
  }
  return os.str();
}

std::string shapeText(const std::vector<int64_t> &shape) { return "[" + join(shape, ", ") + "]"; }

Json parameterValue(const fb::Parameter_T &parameter) {
  switch (parameter.kind) {
  case fb::ValueKind::Integer:
    return parameter.i;
  case fb::ValueKind::Float:
    return parameter.f;
  case fb::ValueKind::String:
    return parameter.s;
  }
  return {};
}

Json parametersObject(const std::vector<std::unique_ptr<fb::Parameter_T>> &parameters) {
  Json object = Json::object();
  for (const auto &parameter : parameters)
    object[parameter->name] = parameterValue(*parameter);
  return object;
}

/// Makes the JSON form of one plan.
class PlanJson {
public:
  PlanJson(const PlanFile &file, int64_t rank) : file_(file), plan_(file.plan), rank_(rank) {
    for (const auto &parameter : plan_.parameters) {
      checkpointNames_[parameter->buffer] = parameter->name;
      if (plan_.groups[parameter->group]->trainable)
        checkpointNames_[parameter->gradient] = parameter->name;
    }
  }

  Json make() {
    Json programs = makePrograms(); // also collects the collectives and launches
    return {{"version", std::to_string(file_.major) + "." + std::to_string(file_.minor)},
            {"hash", file_.hash},
            {"producer", plan_.producer},
            {"command_line", plan_.command_line},
            {"mesh", mesh()},
            {"target", target()},
            {"precision", plan_.precision},
            {"tokens", plan_.tokens},
            {"padded_tokens", plan_.padded_tokens},
            {"max_documents", plan_.max_documents},
            {"pad_reasons", padReasons()},
            {"cp_method", plan_.cp_method},
            {"token_order", plan_.token_order},
            {"token_axes", plan_.token_axes},
            {"batch_axes", plan_.batch_axes},
            {"symbols", symbols()},
            {"parameters", parameters()},
            {"groups", groups()},
            {"tables", tables()},
            {"memory", memory()},
            {"buffers", buffers()},
            {"programs", programs},
            {"kernels", kernels()},
            {"collectives", collectives_},
            {"remarks", remarks()}};
  }

private:
  Json mesh() const {
    Json axes = Json::object();
    for (const auto &axis : plan_.mesh)
      axes[axis->name] = axis->size;
    return axes;
  }

  Json target() const {
    const fb::TargetT &target = *plan_.target;
    return {{"name", target.name},
            {"kind", target.kind},
            {"cpu", target.cpu},
            {"features", target.features},
            {"memory_bytes", target.memory_bytes}};
  }

  Json padReasons() const {
    Json list = Json::array();
    for (const auto &reason : plan_.pad_reasons)
      list.push_back({{"op", reason->op}, {"multiple", reason->multiple}, {"why", reason->why}});
    return list;
  }

  Json symbols() const {
    Json list = Json::array();
    for (const auto &symbol : plan_.symbols)
      list.push_back({{"name", symbol->name},
                      {"capacity", symbol->capacity},
                      {"uniform_axes", symbol->uniform_axes}});
    return list;
  }

  Json parameters() const {
    Json list = Json::array();
    for (const auto &parameter : plan_.parameters) {
      const fb::BufferT &buffer = *plan_.buffers[parameter->buffer];
      Json dimensions = Json::array();
      for (const auto &dimension : parameter->dimensions)
        dimensions.push_back({{"axes", dimension->axes}, {"pad", dimension->pad}});
      list.push_back({{"name", parameter->name},
                      {"aliases", parameter->aliases},
                      {"shape", parameter->global_shape},
                      {"local_shape", buffer.shape},
                      {"dimensions", dimensions},
                      {"dtype", lower(fb::EnumNameDType(buffer.dtype))},
                      {"group", plan_.groups[parameter->group]->name},
                      {"buffer", buffer.name},
                      {"element_offset", parameter->element_offset},
                      {"location", locationText(plan_, parameter->location)}});
    }
    return list;
  }

  Json groups() const {
    Json list = Json::array();
    for (const auto &group : plan_.groups)
      list.push_back({{"name", group->name},
                      {"dtype", lower(fb::EnumNameDType(group->dtype))},
                      {"trainable", group->trainable},
                      {"decay", group->decay},
                      {"reduce_axes", group->reduce_axes},
                      {"elements", group->elements}});
    return list;
  }

  Json tables() const {
    Json list = Json::array();
    for (const auto &table : plan_.tables)
      list.push_back({{"kind", table->kind},
                      {"whole", table->whole},
                      {"persistent", table->persistent},
                      {"buffer", plan_.buffers[table->buffer]->name},
                      {"parameters", parametersObject(table->parameters)}});
    return list;
  }

  Json memory() const {
    MemoryReport report = reportMemory(plan_, rank_);
    return {{"persistent", report.persistent},
            {"activations", report.activations},
            {"workspace", report.workspace},
            {"peak", report.total}};
  }

  Json buffers() const {
    Json list = Json::array();
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const fb::BufferT &buffer = *plan_.buffers[i];
      auto checkpoint = checkpointNames_.find(uint32_t(i));
      list.push_back(
          {{"name", buffer.name},
           {"class", snakeCase(fb::EnumNameBufferClass(buffer.class_))},
           {"dtype", lower(fb::EnumNameDType(buffer.dtype))},
           {"shape", buffer.shape},
           {"arena", plan_.arenas[buffer.arena]->name},
           {"offset", bufferOffset(plan_, buffer, rank_)},
           {"bytes", bufferBytes(buffer)},
           {"slice_axes", buffer.slice_axes},
           {"location", locationText(plan_, buffer.location)},
           {"checkpoint_name", checkpoint == checkpointNames_.end() ? "" : checkpoint->second}});
    }
    return list;
  }

  Json makePrograms() {
    Json list = Json::array();
    for (const auto &program : plan_.programs) {
      std::vector<std::string> results;
      for (uint32_t result : program->results)
        results.push_back(plan_.buffers[result]->name);
      list.push_back({{"name", program->name},
                      {"stage", program->stage},
                      {"arguments", program->arguments},
                      {"results", results},
                      {"instructions", instructions(program->name, program->instructions)}});
    }
    return list;
  }

  Json instructions(const std::string &program,
                    const std::vector<std::unique_ptr<fb::InstructionT>> &block) {
    Json list = Json::array();
    for (const auto &instruction : block)
      list.push_back(instructionJson(program, *instruction));
    return list;
  }

  Json instructionJson(const std::string &program, const fb::InstructionT &instruction) {
    std::string name = instructionName(plan_, instruction),
                place = locationText(plan_, instruction.location);
    Json json = {{"kind", lower(fb::EnumNameInstructionKind(instruction.kind))}, {"name", name}};
    if (instruction.when != fb::When::Always)
      json["when"] = whenName(instruction.when);
    if (instruction.kind == fb::InstructionKind::Repeat) {
      json["symbol"] = plan_.symbols[instruction.symbol]->name;
      json["body"] = instructions(program, instruction.body);
    } else {
      json["operands"] = operands(instruction);
    }
    if (instruction.kind == fb::InstructionKind::Launch) {
      const fb::KernelT &kernel = *plan_.kernels[instruction.kernel];
      if (!kernel.symbol.empty())
        json["symbol"] = kernel.symbol;
      json["parameters"] = parametersObject(instruction.parameters);
      ++launches_[instruction.kernel];
      std::vector<std::string> &places = kernelLocations_[instruction.kernel];
      if (!place.empty() && std::find(places.begin(), places.end(), place) == places.end())
        places.push_back(place);
    }
    if (instruction.kind == fb::InstructionKind::Collective)
      noteCollective(program, instruction, json);
    if (instruction.workspace >= 0)
      json["workspace"] = plan_.buffers[size_t(instruction.workspace)]->name;
    json["stream"] = instruction.stream;
    if (!instruction.waits.empty())
      json["waits"] = instruction.waits;
    if (!instruction.signals.empty())
      json["signals"] = instruction.signals;
    json["location"] = place;
    return json;
  }

  /// `bytes` of a collective: the larger of input and output on one rank.
  void noteCollective(const std::string &program, const fb::InstructionT &instruction, Json &json) {
    json["axes"] = instruction.axes;
    json["bytes"] = std::max(bufferBytes(*plan_.buffers[instruction.operands[0]->buffer]),
                             bufferBytes(*plan_.buffers[instruction.operands[1]->buffer]));
    if (instruction.collective == fb::CollectiveKind::ReduceScatter ||
        instruction.collective == fb::CollectiveKind::AllReduce)
      json["reduction"] = lower(fb::EnumNameReduction(instruction.reduction));
    Json entry = {{"kind", json["name"]},
                  {"axes", json["axes"]},
                  {"bytes", json["bytes"]},
                  {"program", program}};
    if (json.contains("reduction"))
      entry["reduction"] = json["reduction"];
    entry["location"] = locationText(plan_, instruction.location);
    collectives_.push_back(entry);
  }

  /// Operands by the names of the kernel's signature.
  Json operands(const fb::InstructionT &instruction) const {
    Json list = Json::array();
    const KernelSignature *signature = nullptr;
    const fb::RowBodyT *body = nullptr;
    if (instruction.kind == fb::InstructionKind::Launch) {
      signature = findKernel(plan_.kernels[instruction.kernel]->name);
      body = plan_.kernels[instruction.kernel]->body.get();
    }
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      Json operand;
      bool output;
      if (body) {
        operand["name"] = snakeCase(fb::EnumNameRowAccess(body->operands[i]->access));
        output = body->operands[i]->output;
      } else if (signature) {
        operand["name"] = signature->operands[i].name;
        output = signature->operands[i].out;
      } else {
        operand["name"] = i == 0 ? "input" : "output";
        output = i == 1;
      }
      operand["output"] = output;
      if (instruction.operands[i]->absent) {
        operand["buffer"] = nullptr;
      } else {
        const fb::BufferT &buffer = *plan_.buffers[instruction.operands[i]->buffer];
        operand["buffer"] = buffer.name;
        operand["shape"] = buffer.shape;
      }
      list.push_back(operand);
    }
    return list;
  }

  Json kernels() const {
    Json list = Json::array();
    for (size_t i = 0; i < plan_.kernels.size(); ++i) {
      const fb::KernelT &kernel = *plan_.kernels[i];
      auto launches = launches_.find(uint32_t(i));
      auto places = kernelLocations_.find(uint32_t(i));
      Json json = {{"name", kernel.name}, {"signature_hash", hexText(kernel.signature_hash)}};
      if (kernel.blob >= 0) {
        json["symbol"] = kernel.symbol;
        json["format"] = plan_.blobs[size_t(kernel.blob)]->format;
      }
      json["launches"] = launches == launches_.end() ? 0 : launches->second;
      json["locations"] =
          places == kernelLocations_.end() ? std::vector<std::string>() : places->second;
      list.push_back(json);
    }
    return list;
  }

  Json remarks() const {
    Json list = Json::array();
    for (const auto &remark : plan_.remarks)
      list.push_back({{"pass", remark->pass_},
                      {"message", remark->message},
                      {"location", locationText(plan_, remark->location)}});
    return list;
  }

  const PlanFile &file_;
  const fb::PlanT &plan_;
  int64_t rank_;
  std::map<uint32_t, std::string> checkpointNames_; ///< by buffer
  std::map<uint32_t, int64_t> launches_;            ///< by kernel
  std::map<uint32_t, std::vector<std::string>> kernelLocations_;
  Json collectives_ = Json::array();
};

std::string text(const Json &value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string pairs(const Json &object) {
  std::string line;
  for (const auto &[name, value] : object.items())
    line += (line.empty() ? "" : ", ") + name + "=" + text(value);
  return line;
}

std::string names(const Json &list) {
  return list.empty() ? "none" : join(list.get<std::vector<std::string>>(), ", ");
}

/// "name=buffer[2, 3]" for the inputs or the outputs.
std::string operandsText(const Json &operands, bool output) {
  std::string line;
  for (const Json &operand : operands)
    if (operand["output"].get<bool>() == output && !operand["buffer"].is_null())
      line += (line.empty() ? "" : ", ") + text(operand["name"]) + "=" + text(operand["buffer"]) +
              shapeText(operand["shape"].get<std::vector<int64_t>>());
  return line;
}

void printInstructions(std::ostream &os, const Json &block, const std::string &prefix) {
  for (size_t i = 0; i < block.size(); ++i) {
    const Json &instruction = block[i];
    std::string index = prefix + std::to_string(i);
    os << "  " << index << "  " << text(instruction["name"]);
    if (instruction.contains("symbol"))
      os << ' ' << text(instruction["symbol"]);
    if (instruction.contains("when"))
      os << " [" << text(instruction["when"]) << ']';
    if (instruction.contains("axes"))
      os << " over " << names(instruction["axes"]);
    if (instruction.contains("operands")) {
      std::string inputs = operandsText(instruction["operands"], false);
      os << (inputs.empty() ? "" : " ") << inputs << " -> "
         << operandsText(instruction["operands"], true);
    }
    if (instruction.contains("parameters") && !instruction["parameters"].empty())
      os << "  {" << pairs(instruction["parameters"]) << '}';
    if (instruction.contains("bytes"))
      os << "  " << bytesText(instruction["bytes"].get<uint64_t>());
    if (!instruction["location"].get<std::string>().empty())
      os << "  @" << text(instruction["location"]);
    os << '\n';
    if (instruction.contains("body"))
      printInstructions(os, instruction["body"], index + ".");
  }
}

void printHead(std::ostream &os, const Json &plan) {
  os << "plan " << text(plan["version"]) << ", hash " << text(plan["hash"]) << '\n'
     << "made by: " << text(plan["producer"]) << '\n'
     << "command: " << text(plan["command_line"]) << '\n'
     << "mesh: " << pairs(plan["mesh"]) << '\n'
     << "target: " << text(plan["target"]["name"])
     << (text(plan["target"]["cpu"]).empty() ? "" : " (" + text(plan["target"]["cpu"]) + ")")
     << ", precision " << text(plan["precision"]) << '\n'
     << "tokens: " << plan["tokens"] << ", padded to " << plan["padded_tokens"] << ", in at most "
     << plan["max_documents"] << " documents\n";
  for (const Json &reason : plan["pad_reasons"])
    os << "  a multiple of " << reason["multiple"] << " for " << text(reason["op"]) << ": "
       << text(reason["why"]) << '\n';
  os << "context parallelism: " << text(plan["cp_method"]) << ", token order "
     << text(plan["token_order"]) << "; tokens are cut over " << names(plan["token_axes"])
     << ", packs over " << names(plan["batch_axes"]) << '\n';
  const Json &memory = plan["memory"];
  os << "memory of a rank: persistent " << bytesText(memory["persistent"].get<uint64_t>())
     << ", activations " << bytesText(memory["activations"].get<uint64_t>()) << ", workspace "
     << bytesText(memory["workspace"].get<uint64_t>()) << ", together "
     << bytesText(memory["peak"].get<uint64_t>()) << '\n';
}

} // namespace

Json sft::showJson(const PlanFile &file, int64_t rank) { return PlanJson(file, rank).make(); }

std::string sft::showText(const PlanFile &file, int64_t rank) {
  Json plan = showJson(file, rank);
  std::ostringstream os;
  printHead(os, plan);
  os << "\nparameters: " << plan["parameters"].size() << '\n';
  for (const Json &parameter : plan["parameters"])
    os << "  " << text(parameter["name"]) << ' ' << text(parameter["dtype"])
       << shapeText(parameter["shape"].get<std::vector<int64_t>>()) << ", group "
       << text(parameter["group"]) << '\n';
  os << "\nkernels: " << plan["kernels"].size() << '\n';
  for (const Json &kernel : plan["kernels"])
    os << "  " << text(kernel["name"])
       << (kernel.contains("symbol") ? " " + text(kernel["symbol"]) : std::string()) << ", "
       << kernel["launches"] << (kernel["launches"] == 1 ? " launch\n" : " launches\n");
  for (const Json &program : plan["programs"]) {
    os << "\nprogram " << text(program["name"]) << '('
       << join(program["arguments"].get<std::vector<std::string>>(), ", ")
       << "), results: " << names(program["results"]) << '\n';
    printInstructions(os, program["instructions"], "");
  }
  if (!plan["remarks"].empty())
    os << "\nremarks: " << plan["remarks"].size() << '\n';
  for (const Json &remark : plan["remarks"])
    os << "  " << text(remark["pass"]) << ": " << text(remark["message"])
       << (text(remark["location"]).empty() ? std::string() : "  @" + text(remark["location"]))
       << '\n';
  return os.str();
}
