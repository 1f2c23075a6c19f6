#include "runtime/backends/cpu/Cpu.h"

using namespace sft;

extern "C" __attribute__((visibility("default"))) void
sft_register_kernels(KernelRegistry &registry) {
  cpu::registerMatmul(registry);
  cpu::registerAttention(registry);
  cpu::registerEmbedding(registry);
  cpu::registerRows(registry);
  cpu::registerMemory(registry);
}
