#include "runtime/backends/cpu/Scratch.h"

#include <atomic>
#include <memory>
#include <new>

using namespace sft;

namespace {

constexpr std::align_val_t kAlignment{64};

struct Release {
  void operator()(void *memory) const { ::operator delete(memory, kAlignment); }
};

std::atomic<size_t> reserved{64};
thread_local std::unique_ptr<void, Release> memory;
thread_local size_t allocated = 0;

} // namespace

void cpu::reserveScratch(size_t bytes) {
  size_t before = reserved.load();
  while (before < bytes && !reserved.compare_exchange_weak(before, bytes))
    ;
}

void *cpu::threadScratch() {
  size_t wanted = reserved.load(std::memory_order_relaxed);
  if (allocated < wanted) {
    memory.reset();
    memory.reset(::operator new(wanted, kAlignment));
    allocated = wanted;
  }
  return memory.get();
}
