#include "runtime/base/Error.h"
#include "runtime/executor/Collectives.h"
#include "runtime/executor/Compare.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/KernelSignature.h"

#include <algorithm>

namespace sft {

namespace {

class LaunchStep : public BoundStep {
public:
  LaunchStep(std::unique_ptr<BoundKernel> kernel, WorkerPool &pool)
      : kernel_(std::move(kernel)), pool_(pool) {}
  void run() override { kernel_->run(pool_); }

private:
  std::unique_ptr<BoundKernel> kernel_;
  WorkerPool &pool_;
};

class RepeatStep : public BoundStep {
public:
  RepeatStep(BoundProgram body, const int64_t &rounds) : body_(std::move(body)), rounds_(rounds) {}
  void run() override {
    for (int64_t round = 0; round < rounds_; ++round)
      for (std::unique_ptr<BoundStep> &step : body_)
        step->run();
  }

private:
  BoundProgram body_;
  const int64_t &rounds_; ///< set between runs
};

} // namespace

/// Binds one instance of a program: first all launches are made and checked, so that all failures
/// are reported together; then they are bound in the same order.
class ProgramBinder {
public:
  ProgramBinder(Executor &executor, const fb::ProgramT &program, const ProgramInstance &instance)
      : executor_(executor), plan_(*executor.shared_.plan), program_(program), instance_(instance) {
  }

  BoundProgram bind() {
    prepare(program_.instructions);
    if (!failures_.empty()) {
      std::string list;
      for (const std::string &failure : failures_)
        list += "\n  " + failure;
      fail("a program of the plan cannot run here (", program_.name, "): ", failures_.size(),
           " launch", failures_.size() == 1 ? "" : "es", " failed the check", list);
    }
    if (executor_.options_.compare) {
      size_t bytes = 0;
      for (const Launch &launch : launches_)
        bytes = std::max(bytes, compareBytes(launch));
      compare_storage_ = executor_.compareStorage(bytes);
    }
    return bindAll(program_.instructions);
  }

private:
  using Instructions = std::vector<std::unique_ptr<fb::InstructionT>>;

  /// Whether an instruction belongs to this instance.
  bool selected(const fb::InstructionT &instruction) const {
    switch (instruction.when) {
    case fb::When::Always:
      return true;
    case fb::When::First:
      return instance_.first;
    case fb::When::NotFirst:
      return !instance_.first;
    case fb::When::Last:
      return instance_.last;
    }
    failInternal("unknown condition of an instruction: ", int(instruction.when));
  }

  void prepare(const Instructions &instructions) {
    for (size_t i = 0; i < instructions.size(); ++i) {
      const fb::InstructionT &instruction = *instructions[i];
      if (!selected(instruction))
        continue;
      if (instruction.kind == fb::InstructionKind::Repeat)
        prepare(instruction.body);
      if (instruction.kind != fb::InstructionKind::Launch)
        continue;
      launches_.push_back(
          makeLaunch(instruction, concat("instruction ", i, " of ", program_.name)));
      check(launches_.back());
    }
  }

  Launch makeLaunch(const fb::InstructionT &instruction, const std::string &name) const {
    const fb::KernelT &kernel = *plan_.kernels[instruction.kernel];
    const KernelSignature *signature = findKernel(kernel.name);
    if (!signature)
      failInternal("unknown kernel in a verified plan: ", kernel.name);
    Launch launch;
    KernelCall &call = launch.call;
    call.kernel = kernel.name;
    call.location = locationText(instruction.location);
    launch.place = name + ", " + call.location;
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      const fb::OperandT &operand = *instruction.operands[i];
      call.operands.push_back(operand.absent ? TensorRef() : executor_.buffer(operand.buffer));
      bool inBody = kernel.body != nullptr;
      launch.writes.push_back(!operand.absent && (inBody ? kernel.body->operands[i]->output
                                                         : signature->operands[i].out));
      launch.operands.push_back(
          concat(inBody ? concat("operand ", i) : signature->operands[i].name, " = ",
                 operand.absent ? "absent" : plan_.buffers[operand.buffer]->name));
    }
    for (const ParameterSignature &parameter : signature->parameters)
      if (!parameter.required)
        setDefault(call, parameter);
    for (const auto &parameter : instruction.parameters)
      switch (parameter->kind) {
      case fb::ValueKind::Integer:
        call.integers[parameter->name] = parameter->i;
        break;
      case fb::ValueKind::Float:
        call.floats[parameter->name] = parameter->f;
        break;
      case fb::ValueKind::String:
        call.strings[parameter->name] = parameter->s;
        break;
      }
    if (auto accumulate = call.integers.find("accumulate");
        accumulate != call.integers.end() && accumulate->second == 2)
      accumulate->second = instance_.first ? 0 : 1;
    if (instruction.workspace >= 0) {
      TensorRef workspace = executor_.buffer(size_t(instruction.workspace));
      call.workspace = workspace.data;
      call.workspace_bytes = workspace.bytes();
    }
    call.row_function =
        executor_.shared_.code ? executor_.shared_.code->function(instruction.kernel) : nullptr;
    call.row_body = kernel.body.get();
    return launch;
  }

  static void setDefault(KernelCall &call, const ParameterSignature &parameter) {
    if (parameter.type == "int")
      call.integers[parameter.name] = std::stoll(parameter.default_value);
    else if (parameter.type == "float")
      call.floats[parameter.name] = std::stod(parameter.default_value);
    else
      call.strings[parameter.name] = parameter.default_value;
  }

  std::string locationText(uint32_t index) const {
    if (index >= plan_.locations.size() || plan_.locations[index]->file.empty())
      return "unknown location";
    const fb::LocationT &location = *plan_.locations[index];
    return concat(location.file, ":", location.line, ":", location.column,
                  location.name.empty() ? "" : " ", location.name);
  }

  void check(const Launch &launch) {
    const ExecutorOptions &options = executor_.options_;
    if (!options.reference || options.compare)
      checkIn(executor_.shared_.backend, "the backend", launch);
    if (options.reference || options.compare)
      checkIn(executor_.shared_.reference, "the reference", launch);
  }

  void checkIn(const KernelRegistry *registry, const char *what, const Launch &launch) {
    const KernelEntry *entry = registry ? registry->find(launch.call.kernel) : nullptr;
    if (!entry) {
      failures_.push_back(concat(launch.call.kernel, " (", launch.place, "): ", what,
                                 " does not have this kernel"));
      return;
    }
    try {
      entry->check(launch.call);
    } catch (const Error &error) {
      failures_.push_back(concat(launch.call.kernel, " (", launch.place, "): ", error.what()));
    }
  }

  BoundProgram bindAll(const Instructions &instructions) {
    BoundProgram steps;
    for (const auto &instruction : instructions) {
      if (!selected(*instruction))
        continue;
      switch (instruction->kind) {
      case fb::InstructionKind::Launch:
        steps.push_back(bindLaunch(launches_[next_launch_++]));
        break;
      case fb::InstructionKind::Collective:
        steps.push_back(bindCollective(*instruction,
                                       executor_.buffer(instruction->operands[0]->buffer),
                                       executor_.buffer(instruction->operands[1]->buffer),
                                       executor_.communicator(instruction->axes)));
        break;
      case fb::InstructionKind::Repeat:
        steps.push_back(std::make_unique<RepeatStep>(bindAll(instruction->body),
                                                     executor_.symbols_[instruction->symbol]));
        break;
      }
    }
    return steps;
  }

  std::unique_ptr<BoundStep> bindLaunch(const Launch &launch) {
    const ExecutorShared &shared = executor_.shared_;
    const std::string &kernel = launch.call.kernel;
    if (executor_.options_.compare)
      return bindCompare(launch, *shared.backend->find(kernel), *shared.reference->find(kernel),
                         compare_storage_, executor_.pool_);
    const KernelRegistry &registry =
        executor_.options_.reference ? *shared.reference : *shared.backend;
    return std::make_unique<LaunchStep>(registry.find(kernel)->bind(launch.call), executor_.pool_);
  }

  Executor &executor_;
  const fb::PlanT &plan_;
  const fb::ProgramT &program_;
  const ProgramInstance &instance_;
  std::vector<Launch> launches_;
  std::vector<std::string> failures_;
  size_t next_launch_ = 0;
  void *compare_storage_ = nullptr;
};

BoundProgram &Executor::bind(const ProgramInstance &instance) {
  std::string key = concat(instance.name, " first=", instance.first, " last=", instance.last);
  auto found = programs_.find(key);
  if (found != programs_.end())
    return found->second;
  const fb::ProgramT *program = nullptr;
  std::string names;
  for (const auto &candidate : shared_.plan->programs) {
    if (candidate->name == instance.name)
      program = candidate.get();
    names += (names.empty() ? "" : ", ") + candidate->name;
  }
  if (!program)
    fail("the plan lacks a program (program): ", instance.name, "; it has ",
         names.empty() ? "none" : names);
  return programs_[key] = ProgramBinder(*this, *program, instance).bind();
}

} // namespace sft
