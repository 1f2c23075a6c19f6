//===- Session.h - fine-tuning with a compiled plan ------------------------------===//
//
// The public C++ interface of the runtime. A session holds a plan, the weights and the optimizer's
// state, on all ranks of the plan's mesh, each rank a thread of this process:
//
//   Session session(readPlan("model.plan"), {});
//   session.loadWeights("CKPT_DIR");
//   for (const Step &step : planEpoch(dataset, ...))
//     if (session.accumulate(dataset, step))   // gradients of the step's loss
//       session.update({.lr = 1e-5});          // one optimizer step
//   writeModelFolder("final", session.weights(), session.plan().config, "CKPT_DIR");
//
// Calls are made from one thread. Every function throws sft::Error; after a rank has failed all
// further calls throw its message.
//
//===--------------------------------------------------------------------------===//
#ifndef RUNTIME_SESSION_SESSION_H
#define RUNTIME_SESSION_SESSION_H

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/comm/ThreadCommunicator.h"
#include "runtime/data/Data.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/PlanFile.h"
#include "runtime/session/RankThreads.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sft {

struct SessionOptions {
  int threads =
      0; ///< of the process, split over the ranks, at least one each; 0: one per hardware thread
  bool reference = false;          ///< run the plain kernels
  bool compare = false;            ///< run both and stop at the first launch that differs
  bool fill_nan = false;           ///< fill the arenas with NaN first (tests)
  std::string optimizer = "adamw"; ///< or "sgd"
  int64_t max_packs = 1; ///< most packs of a step: decides which instances of `train` are bound
  bool train = true;     ///< `accumulate` and `update` will be called
  bool evaluate = true;  ///< `evaluate` will be called
  double timeout = 0;    ///< seconds that a rank waits for another; 0: for ever
};

/// What one update needs to know; see Session::update.
struct UpdateScalars {
  double lr = 1e-5, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.01; ///< of the groups that decay (matrices)
  double clip = 1;            ///< largest 2-norm of the gradient; 0: not clipped
};

/// Cross entropy of each token as a target, unweighted, aligned with Sample::input_ids; 0 where the
/// token is not trained. By Sample::number.
using TokenLosses = std::map<int64_t, std::vector<float>>;

/// Tensors with checkpoint names and global shapes. The data lies in `storage`, or in the memory of
/// a session.
struct NamedTensors {
  std::vector<std::vector<float>> storage;
  std::vector<TensorToWrite> tensors;
};

/// The mesh of a plan.
Mesh planMesh(const fb::PlanT &plan);
/// Positions of tokens lie below this: the rows of the plan's rotary tables.
int64_t planMaxPositions(const fb::PlanT &plan);

class Session {
public:
  /// Checks the plan against this machine, reserves the memory of all ranks, binds the programs
  /// that the options ask for, and fills the tables that never change. Weights must be loaded
  /// before anything runs.
  Session(PlanFile file, const SessionOptions &options);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const fb::PlanT &plan() const { return file_.plan; }
  const std::string &planHash() const { return file_.hash; }
  const Mesh &mesh() const { return mesh_; }
  int threadsPerRank() const { return threads_per_rank_; }
  /// Ranks along the axes over which packs differ.
  int dataParallelRanks() const { return mesh_.size(file_.plan.batch_axes); }
  /// Bytes of all arenas of a rank, the same on every rank.
  size_t arenaBytes() const;
  const TokenLayout &layout() const { return layout_; }

  /// Checks the folder's tensors against the plan and loads them into every rank; resets the
  /// optimizer.
  void loadWeights(const std::string &folder);
  /// N(0, initializer_range of the plan's config, 0.02 without one); norm weights are 1 and biases
  /// 0; resets the optimizer.
  void randomWeights(uint64_t seed);

  /// Runs the packs of a step: leaves the gradient of the step's loss, sum(weight * cross entropy)
  /// / sum(weight), and returns the loss, which is added up from the token losses in double in pack
  /// order. Nothing when the step has no trained token: then nothing was run. Throws when the loss
  /// is not finite.
  std::optional<double> accumulate(const Dataset &dataset, const Step &step);

  /// Updates the weights with the gradient that `accumulate` left; returns its global 2-norm before
  /// clipping. Throws when the norm is not finite. The optimizer's step count, from 1, counts these
  /// calls.
  double update(const UpdateScalars &scalars);

  struct Evaluation {
    std::optional<double> loss; ///< sum(weight * cross entropy) / sum(weight) over all steps;
                                ///< nothing without a trained token
    int64_t trained_tokens = 0;
  };
  Evaluation evaluate(const Dataset &dataset, const std::vector<Step> &steps);

  /// Keeps the token losses of each `accumulate` and `evaluate` from now on.
  void keepTokenLosses(bool keep) { keep_token_losses_ = keep; }
  /// Of the last `accumulate` or `evaluate`.
  const TokenLosses &tokenLosses() const { return token_losses_; }

  /// Throws, with its name, when a weight is not finite: such a model must not be exported.
  void checkWeightsFinite() const;
  /// Every parameter, in the memory of rank 0: valid until the next call that changes the weights.
  std::vector<TensorToWrite> weights() const;
  /// The gradient that `accumulate` left, before clipping, collected from all ranks; of the
  /// trainable parameters.
  NamedTensors gradients() const;

  /// Floating point operations of one rank, on average, for a step of training: matmuls at full
  /// size (2 M N K), attention by the pairs of positions that see each other, backward twice the
  /// forward.
  double stepFlops(const Dataset &dataset, const Step &step) const;

private:
  struct Rank {
    std::unique_ptr<Device> device;
    std::unique_ptr<WorkerPool> pool;
    std::unique_ptr<Executor> executor;
    std::vector<char> staging; ///< of the largest table
  };
  /// A pack of the running round on its way through the ranks.
  struct PackRun {
    PackRows rows;
    std::vector<float> token_loss; ///< of every row of `rows`
  };

  // Session.cpp
  void checkLossResult(const std::string &program) const;
  void createRank(int rank);
  void bindPrograms(int rank);
  /// Runs all packs of a step and returns the sum of weight times token loss.
  double runPacks(const std::string &program, const Dataset &dataset, const Step &step,
                  double weightSum);
  void runPack(int rank, const std::string &program, size_t lossBuffer, bool first, bool last);
  double collectLosses(const Dataset &dataset, const PackRun &run);
  const fb::ProgramT *findProgram(const std::string &name) const;

  // Tables.cpp
  void fillPersistentTables();
  void fillPackTables(int rank, const PackRows &rows);
  void fillTableBuffer(int rank, const fb::TableT &table, const PackRows &rows);
  void fillStepScalars(int rank, const UpdateScalars &scalars);
  void writeBuffer(int rank, size_t buffer, const void *data);

  // Weights.cpp
  void checkParameters() const;
  using ParameterFill =
      std::function<void(const fb::ModelParameterT &, int64_t begin, int64_t count, float *out)>;
  /// Fills every parameter on every rank, a range of elements at a time.
  void fillParameters(const ParameterFill &fill);
  void resetOptimizer();

  PlanFile file_;
  SessionOptions options_;
  Mesh mesh_;
  TokenLayout layout_;
  int threads_per_rank_ = 1;
  std::unique_ptr<GeneratedCode> code_;
  std::unique_ptr<KernelRegistry> backend_, reference_;
  ExecutorShared shared_;
  ThreadWorld world_;
  std::vector<Rank> ranks_; ///< outlives the threads: peers may read a failed rank's memory
  std::vector<PackRun> round_; ///< one a data-parallel rank
  RankThreads threads_;
  std::optional<size_t> grad_norm_; ///< buffer
  int64_t steps_ = 0, updates_ = 0;
  bool keep_token_losses_ = false;
  TokenLosses token_losses_;
};

} // namespace sft

#endif // RUNTIME_SESSION_SESSION_H
