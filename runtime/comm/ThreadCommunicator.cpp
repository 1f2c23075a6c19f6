#include "runtime/comm/ThreadCommunicator.h"

#include "runtime/base/Error.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>

namespace sft {

namespace {

enum class CallKind : uint8_t { AllGather, ReduceScatter, AllReduce, AllToAll, Barrier };
constexpr const char *callNames[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                     "barrier"};

/// What a rank brings to a rendezvous.
struct Call {
  CallKind kind = CallKind::Barrier;
  const char *input = nullptr;
  char *output = nullptr;
  int64_t count = 0; ///< bytes of one part, or elements for reductions
  DType dtype = DType::U8;
  ReduceOperator op = ReduceOperator::Sum;

  bool matches(const Call &other) const {
    return kind == other.kind && count == other.count && dtype == other.dtype && op == other.op;
  }
  std::string describe() const {
    std::string text = callNames[size_t(kind)];
    if (kind == CallKind::ReduceScatter || kind == CallKind::AllReduce)
      return concat(text, " ", op == ReduceOperator::Max ? "max" : "sum", " of ", count, " x ",
                    dtypeName(dtype));
    return kind == CallKind::Barrier ? text : concat(text, " of ", count, " bytes");
  }
};

std::string join(const std::vector<std::string> &parts, const char *separator) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : separator) + part;
  return text;
}

} // namespace

struct ThreadWorld::Group {
  std::vector<int> members; ///< ranks, by index
  std::string axes;         ///< for messages
  std::condition_variable arrival;
  std::vector<Call> calls;      ///< by index
  std::vector<uint8_t> arrived; ///< by index, at the open rendezvous
  int count = 0;
  uint64_t generation = 0;
};

namespace {

// Elements reduced at a time: what stays in the first-level cache while the peers' parts are added
// to it.
constexpr int64_t kReduceBlock = 2048;

struct Bf16 {
  uint16_t bits;
};
template <typename T> struct Accumulator {
  using Type = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};
template <> struct Accumulator<Bf16> {
  using Type = float;
  static float load(Bf16 value) { return bf16ToFloat(value.bits); }
  static Bf16 store(float value) { return {floatToBf16(value)}; }
};

/// output[i] = the reduction over all calls, by index, of input[offset + i].
template <typename T>
void reduceTyped(const std::vector<Call> &calls, int64_t offset, int64_t count, ReduceOperator op,
                 char *output) {
  using Access = Accumulator<T>;
  typename Access::Type sum[kReduceBlock];
  for (int64_t begin = 0; begin < count; begin += kReduceBlock) {
    int64_t length = std::min(kReduceBlock, count - begin);
    for (size_t peer = 0; peer < calls.size(); ++peer) {
      const T *input = reinterpret_cast<const T *>(calls[peer].input) + offset + begin;
      if (peer == 0)
        for (int64_t i = 0; i < length; ++i)
          sum[i] = Access::load(input[i]);
      else if (op == ReduceOperator::Sum)
        for (int64_t i = 0; i < length; ++i)
          sum[i] += Access::load(input[i]);
      else // a NaN on either side stays
        for (int64_t i = 0; i < length; ++i) {
          auto value = Access::load(input[i]);
          sum[i] = value > sum[i] || value != value ? value : sum[i];
        }
    }
    T *out = reinterpret_cast<T *>(output) + begin;
    for (int64_t i = 0; i < length; ++i)
      out[i] = Access::store(sum[i]);
  }
}

void reduce(const std::vector<Call> &calls, int64_t offset, int64_t count, DType dtype,
            ReduceOperator op, char *output) {
  switch (dtype) {
  case DType::F32:
    return reduceTyped<float>(calls, offset, count, op, output);
  case DType::BF16:
    return reduceTyped<Bf16>(calls, offset, count, op, output);
  case DType::F64:
    return reduceTyped<double>(calls, offset, count, op, output);
  case DType::I32:
    return reduceTyped<int32_t>(calls, offset, count, op, output);
  case DType::I64:
    return reduceTyped<int64_t>(calls, offset, count, op, output);
  default:
    fail("cannot reduce this type between ranks (dtype): ", dtypeName(dtype),
         "; use f32, bf16, f64, i32 or i64");
  }
}

void copyBytes(char *output, const char *input, size_t bytes) {
  if (output != input && bytes > 0)
    std::memcpy(output, input, bytes);
}

} // namespace

class ThreadCommunicator : public Communicator {
public:
  ThreadCommunicator(ThreadWorld &world, ThreadWorld::Group &group, int index)
      : world_(world), group_(group), index_(index) {}

  int rank() const override { return index_; }
  int size() const override { return int(group_.members.size()); }

  void allGather(const void *input, void *output, size_t bytes) override {
    enter({CallKind::AllGather, static_cast<const char *>(input), static_cast<char *>(output),
           int64_t(bytes)});
    for (int step = 0; step < size();
         ++step) { // from the own part on, so that not all ranks read the same memory
      int peer = (index_ + step) % size();
      copyBytes(static_cast<char *>(output) + size_t(peer) * bytes,
                group_.calls[size_t(peer)].input, bytes);
    }
    rendezvous();
  }

  void reduceScatter(const void *input, void *output, int64_t count, DType dtype,
                     ReduceOperator op) override {
    enter({CallKind::ReduceScatter, static_cast<const char *>(input), static_cast<char *>(output),
           count, dtype, op});
    reduce(group_.calls, index_ * count, count, dtype, op, static_cast<char *>(output));
    rendezvous();
  }

  void allReduce(const void *input, void *output, int64_t count, DType dtype,
                 ReduceOperator op) override {
    enter({CallKind::AllReduce, static_cast<const char *>(input), static_cast<char *>(output),
           count, dtype, op});
    // Each rank reduces one share for all. In place this is safe: a share of any rank is read and
    // written by its reducer alone until the second rendezvous.
    int64_t width = int64_t(dtypeBytes(dtype));
    auto shareBegin = [&](int peer) { return count * peer / size(); };
    auto shareOf = [&](char *output, int peer) { return output + shareBegin(peer) * width; };
    reduce(group_.calls, shareBegin(index_), shareBegin(index_ + 1) - shareBegin(index_), dtype, op,
           shareOf(static_cast<char *>(output), index_));
    rendezvous();
    for (int step = 1; step < size(); ++step) {
      int peer = (index_ + step) % size();
      copyBytes(shareOf(static_cast<char *>(output), peer),
                shareOf(group_.calls[size_t(peer)].output, peer),
                size_t((shareBegin(peer + 1) - shareBegin(peer)) * width));
    }
    rendezvous();
  }

  void allToAll(const void *input, void *output, size_t bytes) override {
    enter({CallKind::AllToAll, static_cast<const char *>(input), static_cast<char *>(output),
           int64_t(bytes)});
    for (int step = 0; step < size(); ++step) {
      int peer = (index_ + step) % size();
      copyBytes(static_cast<char *>(output) + size_t(peer) * bytes,
                group_.calls[size_t(peer)].input + size_t(index_) * bytes, bytes);
    }
    rendezvous();
  }

  void barrier() override { enter({}); }

private:
  /// Publishes this rank's call and waits until all ranks have published one that matches.
  void enter(const Call &call) {
    std::unique_lock<std::mutex> lock(world_.mutex_);
    group_.calls[size_t(index_)] = call;
    wait(lock, true);
  }

  /// Waits until every rank has come this far in the present call.
  void rendezvous() {
    std::unique_lock<std::mutex> lock(world_.mutex_);
    wait(lock, false);
  }

  void throwPeerFailed() { throw Error(ErrorKind::PeerFailed, world_.failure_); }

  void wait(std::unique_lock<std::mutex> &lock, bool opening) {
    if (world_.failed_)
      throwPeerFailed();
    group_.arrived[size_t(index_)] = 1;
    if (++group_.count == size()) {
      if (opening)
        checkCallsMatch();
      group_.count = 0;
      std::fill(group_.arrived.begin(), group_.arrived.end(), 0);
      ++group_.generation;
      group_.arrival.notify_all();
      return;
    }
    uint64_t seen = group_.generation;
    auto ready = [&] { return group_.generation != seen || world_.failed_; };
    if (world_.timeout_ <= 0)
      group_.arrival.wait(lock, ready);
    else if (!group_.arrival.wait_for(lock, std::chrono::duration<double>(world_.timeout_), ready))
      failTimeout();
    if (group_.generation == seen)
      throwPeerFailed();
  }

  void checkCallsMatch() {
    const std::vector<Call> &calls = group_.calls;
    for (size_t peer = 1; peer < calls.size(); ++peer)
      if (!calls[peer].matches(calls[0]))
        failHere(concat("collectives of a group do not match (axes ", group_.axes, "): rank ",
                        group_.members[0], " calls ", calls[0].describe(), ", rank ",
                        group_.members[peer], " calls ", calls[peer].describe(),
                        "; all ranks must make the same calls in the same order"));
  }

  void failTimeout() {
    std::vector<std::string> missing;
    for (size_t peer = 0; peer < group_.members.size(); ++peer)
      if (!group_.arrived[peer])
        missing.push_back(std::to_string(group_.members[peer]));
    failHere(concat("waited too long for other ranks (", group_.calls[size_t(index_)].describe(),
                    ", axes ", group_.axes, "): rank ", join(missing, ", "),
                    " did not come within ", world_.timeout_,
                    " s; raise --timeout if a step can take longer"));
  }

  [[noreturn]] void failHere(const std::string &message) {
    world_.abortLocked(group_.members[size_t(index_)], message);
    throw Error(ErrorKind::BadInput, message);
  }

  ThreadWorld &world_;
  ThreadWorld::Group &group_;
  int index_;
};

// Above thirty years the nanoseconds of a wait would overflow: that is for ever.
ThreadWorld::ThreadWorld(Mesh mesh, double timeout)
    : mesh_(std::move(mesh)), timeout_(timeout < 1e9 ? timeout : 0) {}
ThreadWorld::~ThreadWorld() = default;

std::unique_ptr<Communicator> ThreadWorld::create(int rank, const std::vector<std::string> &axes) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<int> members = mesh_.group(rank, axes);
  std::unique_ptr<Group> &group = groups_[members];
  if (!group) {
    group = std::make_unique<Group>();
    group->members = members;
    group->axes = join(axes, ",");
    group->calls.resize(members.size());
    group->arrived.resize(members.size());
  }
  return std::make_unique<ThreadCommunicator>(*this, *group, mesh_.index(rank, axes));
}

void ThreadWorld::abort(int rank, const std::string &message) {
  std::lock_guard<std::mutex> lock(mutex_);
  abortLocked(rank, message);
}

void ThreadWorld::abortLocked(int rank, const std::string &message) {
  if (failed_)
    return;
  failed_ = true;
  failure_ = mesh_.ranks() == 1 ? message : concat("rank ", rank, ": ", message);
  for (auto &[members, group] : groups_)
    group->arrival.notify_all();
}

bool ThreadWorld::failed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return failed_;
}

std::string ThreadWorld::failure() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}

} // namespace sft
