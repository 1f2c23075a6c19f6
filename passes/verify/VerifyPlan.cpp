//===- VerifyPlan.cpp - the contract of the plan level ---------------------------------------------===//

#include "dialects/plan/PlanOps.h"
#include "passes/Passes.h"
#include "runtime/plan/KernelSignature.h"

namespace sftc {
#define GEN_PASS_DEF_VERIFYPLAN
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {

/// Bytes of a transient buffer and the instructions between which they are in use.
struct Lifetime {
  plan::AllocOp alloc;
  int64_t begin, end;
  int64_t offset = 0;
};

struct VerifyPlanPass : public sftc::impl::VerifyPlanBase<VerifyPlanPass> {
  bool failed_ = false;

  InFlightDiagnostic report(Operation *op) {
    failed_ = true;
    return op->emitError() << "plan level: ";
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    failed_ = false;
    for (Operation &op : *module.getBody())
      if (!isa<plan::ArenaOp, plan::GlobalOp, plan::ProgramOp>(op))
        report(&op) << op.getName() << " is left";
    auto arena = module.lookupSymbol<plan::ArenaOp>("transient");
    if (!arena) {
      report(module) << "there is no transient arena; run sft-plan-memory first";
      return signalPassFailure();
    }
    for (auto program : module.getOps<plan::ProgramOp>())
      verifyProgram(program, arena.getBytes());
    markAllAnalysesPreserved();
    if (failed_)
      signalPassFailure();
  }

  void verifyProgram(plan::ProgramOp program, int64_t arenaBytes) {
    llvm::DenseMap<Value, Lifetime> lifetimes;
    int64_t time = 0;
    auto use = [&](Operation *op, Value buffer, bool reads, bool writes) {
      auto alloc = buffer.getDefiningOp<plan::AllocOp>();
      if (!alloc)
        return;
      auto it = lifetimes.find(buffer);
      if (it == lifetimes.end()) {
        if (reads)
          report(op) << "buffer \"" << alloc.getName() << "\" is read before it is written";
        lifetimes[buffer] = Lifetime{alloc, time, time};
      } else {
        it->second.end = time;
      }
    };
    for (Operation &op : program.getBody().front()) {
      if (isa<plan::GetOp, plan::AllocOp>(op))
        continue;
      if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
        verifySignature(launch);
        for (auto [buffer, access] : llvm::zip(launch.getArguments(), launch.getAccesses().getAsRange<StringAttr>()))
          use(launch, buffer, access != "out", access != "in");
        if (launch.getWorkspace())
          use(launch, launch.getWorkspace(), false, true);
      } else if (auto collective = dyn_cast<plan::CollectiveOp>(op)) {
        use(collective, collective.getInput(), true, false);
        use(collective, collective.getOutput(), false, true);
      } else {
        report(&op) << op.getName() << " is no instruction";
      }
      ++time;
    }
    SmallVector<Lifetime> placed;
    for (auto &[buffer, lifetime] : lifetimes) {
      if (lifetime.alloc.getIsResult())
        lifetime.end = time;
      if (!lifetime.alloc.getOffset()) {
        report(lifetime.alloc) << "buffer \"" << lifetime.alloc.getName() << "\" has no place";
        continue;
      }
      if (int64_t(*lifetime.alloc.getOffset()) + plan::byteSize(lifetime.alloc.getBuffer()) > arenaBytes)
        report(lifetime.alloc) << "buffer \"" << lifetime.alloc.getName() << "\" ends outside the transient arena";
      lifetime.offset = *lifetime.alloc.getOffset();
      placed.push_back(lifetime);
    }
    verifyDisjoint(placed);
  }

  /// Buffers that share bytes are not live together; an output may begin where an input at the same place ends.
  void verifyDisjoint(MutableArrayRef<Lifetime> placed) {
    llvm::sort(placed, [](const Lifetime &a, const Lifetime &b) { return a.offset < b.offset; });
    for (size_t i = 0; i < placed.size(); ++i) {
      int64_t begin = placed[i].offset, end = begin + plan::byteSize(placed[i].alloc.getBuffer());
      for (size_t j = i + 1; j < placed.size() && placed[j].offset < end; ++j) {
        Lifetime a = placed[i], b = placed[j];
        if (b.begin < a.begin || (b.begin == a.begin && b.end < a.end))
          std::swap(a, b);
        bool handedOver = a.end == b.begin && a.offset == b.offset && mayAlias(a.alloc, b.alloc);
        if (a.end >= b.begin && !handedOver)
          report(b.alloc) << "buffers \"" << a.alloc.getName() << "\" and \"" << b.alloc.getName() << "\" overlap while both are live";
      }
    }
  }

  static bool mayAlias(plan::AllocOp input, plan::AllocOp output) {
    for (Operation *user : output.getBuffer().getUsers())
      if (auto launch = dyn_cast<plan::LaunchOp>(user)) {
        ArrayRef<int64_t> aliases = launch.getAliases();
        for (size_t i = 0; i + 1 < aliases.size(); i += 2)
          if (launch.getArguments()[aliases[i]] == output.getBuffer() && launch.getArguments()[aliases[i + 1]] == input.getBuffer())
            return true;
      }
    return false;
  }

  void verifySignature(plan::LaunchOp launch) {
    const ::sft::KernelSignature *signature = ::sft::findKernel(launch.getKernel().str());
    std::map<std::string, int64_t> integers;
    for (NamedAttribute parameter : launch.getParameters()) {
      bool known = llvm::any_of(signature->parameters, [&](const auto &p) { return p.name == parameter.getName().getValue(); });
      if (!known)
        report(launch) << "kernel " << launch.getKernelAttr() << " has no parameter " << parameter.getName();
      if (auto integer = dyn_cast<IntegerAttr>(parameter.getValue()))
        integers[parameter.getName().str()] = integer.getInt();
    }
    for (const auto &parameter : signature->parameters)
      if (parameter.required && !launch.getParameters().contains(parameter.name))
        report(launch) << "kernel " << launch.getKernelAttr() << " needs parameter \"" << parameter.name << "\"";
    if (signature->operands.empty()) // row_kernel: its operands stand in the body
      return;
    std::vector<std::vector<int64_t>> shapes(signature->operands.size());
    for (auto [buffer, position, access] :
         llvm::zip(launch.getArguments(), launch.getPositions(), launch.getAccesses().getAsRange<StringAttr>())) {
      if (position < 0 || position >= int64_t(signature->operands.size())) {
        report(launch) << "kernel " << launch.getKernelAttr() << " has no operand " << position;
        continue;
      }
      const auto &operand = signature->operands[position];
      shapes[position] = cast<MemRefType>(buffer.getType()).getShape().vec();
      if ((access != "in" && !operand.out) || (access == "in" && !operand.in))
        report(launch) << "operand \"" << operand.name << "\" of kernel " << launch.getKernelAttr() << " is used as " << access;
    }
    for (auto [position, operand] : llvm::enumerate(signature->operands))
      if (!operand.optional && !llvm::is_contained(launch.getPositions(), int64_t(position)))
        report(launch) << "operand \"" << operand.name << "\" of kernel " << launch.getKernelAttr() << " is missing";
    int64_t needed = ::sft::kernelWorkspaceBytes(*signature, shapes, integers);
    int64_t given = launch.getWorkspace() ? plan::byteSize(launch.getWorkspace()) : 0;
    if (given < needed)
      report(launch) << "kernel " << launch.getKernelAttr() << " needs a workspace of " << needed << " bytes and gets " << given;
  }
};

} // namespace
