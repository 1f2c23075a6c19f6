#include "runtime/executor/Executor.h"

#include "runtime/base/Error.h"

namespace sft {

Executor::Executor(const ExecutorShared &shared, const Mesh &mesh, int rank, Device &device,
                   WorkerPool &pool, CommunicatorFactory communicators,
                   const ExecutorOptions &options)
    : shared_(shared), mesh_(mesh), rank_(rank), device_(device), pool_(pool),
      make_communicator_(std::move(communicators)), options_(options),
      symbols_(shared.plan->symbols.size()) {
  arenas_.reserve(shared_.plan->arenas.size());
  for (const auto &arena : shared_.plan->arenas) {
    arenas_.push_back({device_.allocate(arena->bytes), arena->bytes});
    if (options_.fill_nan)
      device_.fill(arenas_.back().address, 0xFF, arena->bytes);
  }
}

Executor::~Executor() {
  for (const std::vector<Arena> *arenas : {&arenas_, &compare_storage_})
    for (const Arena &arena : *arenas)
      device_.release(arena.address, arena.bytes);
}

TensorRef Executor::buffer(size_t index) const {
  const fb::BufferT &buffer = *shared_.plan->buffers[index];
  size_t offset =
      buffer.offset + size_t(mesh_.index(rank_, buffer.slice_axes)) * buffer.slice_stride;
  TensorRef tensor;
  tensor.data = static_cast<char *>(arenas_[buffer.arena].address) + offset;
  tensor.dtype = DType(uint8_t(buffer.dtype));
  tensor.shape = buffer.shape;
  return tensor;
}

void Executor::setSymbol(const std::string &name, int64_t value) {
  const auto &symbols = shared_.plan->symbols;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i]->name != name)
      continue;
    if (value < 0 || value > symbols[i]->capacity)
      fail("a count lies outside its capacity (symbol ", name, "): ", value, "; valid are 0 to ",
           symbols[i]->capacity);
    symbols_[i] = value;
    return;
  }
  fail("the plan has no such count (symbol): ", name);
}

Communicator &Executor::communicator(const std::vector<std::string> &axes) {
  std::unique_ptr<Communicator> &entry = communicators_[axes];
  if (!entry)
    entry = make_communicator_(axes);
  return *entry;
}

void *Executor::compareStorage(size_t bytes) {
  compare_storage_.push_back({device_.allocate(bytes), bytes});
  return compare_storage_.back().address;
}

} // namespace sft
