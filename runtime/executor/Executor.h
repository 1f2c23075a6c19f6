//===- Executor.h - the programs of a plan on one rank ---------------------------===//
//
// An executor owns the memory of one rank. It binds instances of programs, once, and runs them any
// number of times; a run allocates nothing that grows with the problem.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_EXECUTOR_EXECUTOR_H
#define RUNTIME_EXECUTOR_EXECUTOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/Mesh.h"
#include "runtime/device/Device.h"
#include "runtime/executor/Modules.h"
#include "runtime/kernels/Kernel.h"
#include "runtime/kernels/WorkerPool.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sft {

struct ExecutorOptions {
  bool reference = false; ///< run the plain kernels instead of the backend's
  bool compare = false; ///< run both, stop at the first launch whose outputs differ (see Compare.h)
  bool fill_nan = false; ///< fill all arenas with 0xFF bytes, a NaN in every float type, before
                         ///< anything is written
};

/// What the ranks of a process share: made once, outlives their executors.
struct ExecutorShared {
  const fb::PlanT *plan = nullptr; ///< verified (readPlan)
  const GeneratedCode *code = nullptr;
  const KernelRegistry *backend = nullptr; ///< may be null when only the reference runs
  const KernelRegistry *reference =
      nullptr; ///< may be null when neither `reference` nor `compare` is set
};

/// Which instance of a program: its arguments `first` and `last` (see plan.fbs, Program).
struct ProgramInstance {
  std::string name;
  bool first = true, last = true;
};

/// One bound instruction.
class BoundStep {
public:
  virtual ~BoundStep() = default;
  virtual void run() = 0;
};

/// An instance of a program, ready to run.
using BoundProgram = std::vector<std::unique_ptr<BoundStep>>;

class Executor {
public:
  /// Makes the communicator of this rank over a set of mesh axes.
  using CommunicatorFactory =
      std::function<std::unique_ptr<Communicator>(const std::vector<std::string> &axes)>;

  /// Reserves the arenas on `device`. `device` and `pool` are used by this rank alone and outlive
  /// the executor.
  Executor(const ExecutorShared &shared, const Mesh &mesh, int rank, Device &device,
           WorkerPool &pool, CommunicatorFactory communicators, const ExecutorOptions &options);
  ~Executor();
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  int rank() const { return rank_; }
  Device &device() { return device_; }

  /// Where a buffer of the plan lies on this rank; for slices, this rank's share.
  TensorRef buffer(size_t index) const;

  /// Binds every instruction of an instance, or throws one error that lists all launches that
  /// cannot be bound. The result lives as long as the executor; asking again returns the same.
  BoundProgram &bind(const ProgramInstance &instance);

  /// Runs a bound program in order. Throws what a kernel or a collective throws.
  void run(BoundProgram &program) {
    for (std::unique_ptr<BoundStep> &step : program)
      step->run();
  }

  /// Rounds of the `repeat` instructions of a symbol, from the next run on. Throws when the name is
  /// unknown or the value lies outside 0 .. capacity.
  void setSymbol(const std::string &name, int64_t value);

private:
  friend class ProgramBinder;

  struct Arena {
    void *address = nullptr;
    size_t bytes = 0;
  };

  Communicator &communicator(const std::vector<std::string> &axes);
  /// Memory outside the arenas for --compare: grows while programs are bound, never while they run.
  void *compareStorage(size_t bytes);

  ExecutorShared shared_;
  const Mesh &mesh_;
  int rank_;
  Device &device_;
  WorkerPool &pool_;
  CommunicatorFactory make_communicator_;
  ExecutorOptions options_;
  std::vector<Arena> arenas_;
  std::vector<Arena> compare_storage_;
  std::map<std::vector<std::string>, std::unique_ptr<Communicator>> communicators_;
  std::vector<int64_t> symbols_; ///< rounds, by index into Plan.symbols
  std::map<std::string, BoundProgram> programs_;
};

} // namespace sft

#endif // RUNTIME_EXECUTOR_EXECUTOR_H
