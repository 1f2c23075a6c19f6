#include "runtime/executor/Modules.h"

#include "runtime/base/Error.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <sstream>
#include <sys/mman.h>
#include <unistd.h>

namespace sft {

std::string recompileCommand(const fb::PlanT &plan, const std::string &flag,
                             const std::string &value) {
  std::istringstream words(plan.command_line.empty() ? "sftc compile MODEL.mlir -o MODEL.plan"
                                                     : plan.command_line);
  std::string command, word;
  bool replaced = false;
  while (words >> word) {
    if (word == flag) {
      word += " " + value;
      std::string old;
      words >> old;
      replaced = true;
    } else if (word.rfind(flag + "=", 0) == 0) {
      word = flag + "=" + value;
      replaced = true;
    }
    command += (command.empty() ? "" : " ") + word;
  }
  return replaced ? command : command + " " + flag + " " + value;
}

#if defined(__x86_64__)
namespace {
// __builtin_cpu_supports takes literals only; it also asks whether the operating system saves the
// registers.
#define SFT_CPU_FEATURES(X)                                                                        \
  X("sse3")                                                                                        \
  X("ssse3") X("sse4.1") X("sse4.2") X("sse4a") X("popcnt") X("lzcnt") X("movbe") X("avx")         \
      X("avx2") X("fma") X("fma4") X("xop") X("f16c") X("bmi") X("bmi2") X("aes") X("pclmul")      \
          X("gfni") X("vaes") X("vpclmulqdq") X("avx512f") X("avx512cd") X("avx512bw")             \
              X("avx512dq") X("avx512vl") X("avx512ifma") X("avx512vbmi") X("avx512vbmi2")         \
                  X("avx512vnni") X("avx512bitalg") X("avx512vpopcntdq") X("avx512vp2intersect")   \
                      X("avx512bf16") X("avx512fp16") X("avxvnni") X("avxifma") X("avxvnniint8")   \
                          X("avxneconvert") X("avxvnniint16")
bool cpuHas(const std::string &feature) {
#define SFT_CHECK_FEATURE(name)                                                                    \
  if (feature == name)                                                                             \
    return __builtin_cpu_supports(name);
  SFT_CPU_FEATURES(SFT_CHECK_FEATURE)
#undef SFT_CHECK_FEATURE
  return false; // a name this build does not know cannot be promised
}
#undef SFT_CPU_FEATURES
} // namespace
#endif

void checkTarget(const fb::PlanT &plan) {
  if (!plan.target)
    return;
  const fb::TargetT &target = *plan.target;
  if (target.kind != "cpu")
    fail("this build runs plans for the CPU only (plan's target): ", target.name, " of kind ",
         target.kind, "; recompile with: ", recompileCommand(plan, "--target", "cpu"));
  std::string missing;
#if defined(__x86_64__)
  for (const std::string &feature : target.features) {
    if (!feature.empty() && feature[0] == '-')
      continue;
    std::string name = !feature.empty() && feature[0] == '+' ? feature.substr(1) : feature;
    if (!cpuHas(name))
      missing += (missing.empty() ? "" : ", ") + name;
  }
#else
  if (!plan.blobs.empty())
    missing = "x86-64";
#endif
  if (!missing.empty())
    fail("the plan's code needs CPU features that this machine lacks (target ",
         target.cpu.empty() ? target.name : target.cpu, "): ", missing,
         "; recompile with: ", recompileCommand(plan, "--target-cpu", "native"));
}

GeneratedCode::GeneratedCode(const fb::PlanT &plan)
    : objects_(plan.blobs.size()), functions_(plan.kernels.size()) {
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const fb::KernelT &kernel = *plan.kernels[i];
    if (kernel.blob < 0)
      continue;
    Object &object = objects_[size_t(kernel.blob)];
    if (!object.handle)
      load(*plan.blobs[size_t(kernel.blob)], size_t(kernel.blob), object);
    functions_[i] = reinterpret_cast<RowFunction>(dlsym(object.handle, kernel.symbol.c_str()));
    if (!functions_[i])
      fail("generated code lacks a kernel's function (blob ", kernel.blob, "): ", kernel.symbol,
           "; the plan is damaged, recompile it");
  }
}

void GeneratedCode::load(const fb::BlobT &blob, size_t index, Object &object) {
  if (blob.format != "elf-x86-64")
    fail("generated code has a format that this build cannot load (blob ", index,
         "): ", blob.format, "; it loads elf-x86-64, recompile with --target cpu");
  object.fd = memfd_create("sft-generated-code", MFD_CLOEXEC);
  if (object.fd < 0)
    fail("cannot make a memory file for generated code (blob ", index, "): ", std::strerror(errno));
  for (size_t written = 0; written < blob.bytes.size();) {
    ssize_t n = write(object.fd, blob.bytes.data() + written, blob.bytes.size() - written);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      fail("cannot store generated code (blob ", index, ", bytes ", blob.bytes.size(),
           "): ", std::strerror(errno));
    written += size_t(n);
  }
  object.handle = dlopen(concat("/proc/self/fd/", object.fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object.handle)
    fail("cannot load generated code (blob ", index, "): ", dlerror(),
         "; recompile the plan on this machine");
}

GeneratedCode::~GeneratedCode() {
  for (Object &object : objects_) {
    if (object.handle)
      dlclose(object.handle);
    if (object.fd >= 0)
      close(object.fd);
  }
}

BackendModule::BackendModule(const std::string &name) {
  namespace fs = std::filesystem;
  std::string file = "libsft_" + name + ".so";
  std::error_code ignored;
  fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  fs::path places[] = {folder / file, folder.parent_path() / "lib" / file};
  std::string looked;
  for (const fs::path &place : places) {
    looked += (looked.empty() ? "" : ", ") + place.string();
    if (!fs::exists(place, ignored))
      continue;
    void *handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      fail("cannot load the ", name, " backend (", place.string(), "): ", dlerror(),
           "; install what it needs or use --reference");
    register_ = reinterpret_cast<RegisterKernelsFunction>(dlsym(handle, "sft_register_kernels"));
    if (!register_)
      fail("not a backend of this program (", place.string(),
           "): it lacks sft_register_kernels; rebuild it");
    return;
  }
  fail("the ", name, " backend is missing (looked for ", looked, "); build the target sft_", name,
       " or use --reference");
}

} // namespace sft
