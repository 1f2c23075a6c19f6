#include "passes/codegen/CpuTarget.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace sftc;

/// Names that read most like `name`, at most three.
static std::vector<StringRef> nearestNames(StringRef name, const llvm::MCSubtargetInfo &info) {
  std::vector<std::pair<unsigned, StringRef>> ranked;
  for (const llvm::SubtargetSubTypeKV &cpu : info.getAllProcessorDescriptions())
    ranked.push_back({name.edit_distance(cpu.Key), cpu.Key});
  llvm::sort(ranked);
  std::vector<StringRef> nearest;
  for (auto [distance, candidate] : ranked)
    if (nearest.size() < 3)
      nearest.push_back(candidate);
  return nearest;
}

FailureOr<CpuTarget> sftc::resolveCpuTarget(StringRef name, Location location) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86TargetMC();
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string problem;
  const llvm::Target *x86 = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (!x86)
    return emitError(location) << "this LLVM cannot generate x86-64 code: " << problem;

  const bool native = name == "native";
  const std::string cpu = native ? llvm::sys::getHostCPUName().str() : name.str();
  std::unique_ptr<llvm::MCSubtargetInfo> generic(x86->createMCSubtargetInfo(triple, "x86-64", ""));
  if (!generic->isCPUStringValid(cpu)) {
    InFlightDiagnostic diagnostic = emitError(location) << "unknown CPU '" << cpu << "'";
    diagnostic.attachNote() << "the nearest names are "
                            << llvm::join(nearestNames(cpu, *generic), ", ")
                            << "; 'native' is this machine";
    return diagnostic;
  }

  // A machine may lack what its CPU has (virtual machines hide features), so `native` asks the
  // machine.
  llvm::StringMap<bool> host;
  if (native)
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      host[feature.getKey()] = feature.getValue();
  std::unique_ptr<llvm::MCSubtargetInfo> info(x86->createMCSubtargetInfo(triple, cpu, ""));
  auto has = [&](StringRef feature) {
    return native ? host.lookup(feature) : info->checkFeatures(("+" + feature).str());
  };

  CpuTarget target{cpu, {}};
  for (StringRef feature : {"avx2", "fma"}) {
    if (!has(feature)) {
      InFlightDiagnostic diagnostic = emitError(location) << "CPU '" << cpu << "' lacks " << feature
                                                          << ", which row kernels need";
      diagnostic.attachNote()
          << "the oldest CPUs with it are haswell and znver1; x86-64-v3 runs on all that have it";
      return diagnostic;
    }
    target.features.push_back(feature.str());
  }
  // The four together, or none: vectors of 512 bits need masks and integers as well.
  constexpr StringLiteral wide[] = {"avx512f", "avx512bw", "avx512dq", "avx512vl"};
  if (llvm::all_of(wide, has)) {
    for (StringRef feature : wide)
      target.features.push_back(feature.str());
    if (has("avx512bf16"))
      target.features.push_back("avx512bf16");
  }
  return target;
}
