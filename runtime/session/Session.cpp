#include "runtime/session/Session.h"

#include "runtime/base/Error.h"
#include "runtime/session/Flops.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace sft {

namespace {

TokenLayout layoutOf(const fb::PlanT &plan, const Mesh &mesh) {
  TokenLayout layout;
  layout.padded_tokens = plan.padded_tokens;
  layout.ranks = mesh.size(plan.token_axes);
  layout.zigzag = plan.token_order == "zigzag";
  layout.max_documents = plan.max_documents;
  return layout;
}

std::string updateProgram(const std::string &optimizer) {
  return optimizer == "sgd" ? "update_sgd" : "update";
}

} // namespace

Mesh planMesh(const fb::PlanT &plan) {
  std::vector<std::pair<std::string, int>> axes;
  for (const auto &axis : plan.mesh)
    axes.emplace_back(axis->name, int(axis->size));
  return Mesh(std::move(axes));
}

Session::Session(PlanFile file, const SessionOptions &options)
    : file_(std::move(file)), options_(options), mesh_(planMesh(file_.plan)),
      layout_(layoutOf(file_.plan, mesh_)), world_(mesh_, options.timeout),
      ranks_(size_t(mesh_.ranks())), threads_(world_) {
  const fb::PlanT &plan = file_.plan;
  if (options_.optimizer != "adamw" && options_.optimizer != "sgd")
    fail("unknown optimizer (--optimizer): ", options_.optimizer, "; choose adamw or sgd");
  if (!plan.symbols.empty())
    fail("the plan counts something per batch that this build does not know (symbol): ",
         plan.symbols[0]->name, "; use the sft-run of the compiler's version");
  checkTarget(plan);
  checkParameters();
  if (options_.train)
    checkLossResult("train");
  if (options_.evaluate)
    checkLossResult("evaluate");
  code_ = std::make_unique<GeneratedCode>(plan);
  if (!options_.reference || options_.compare) {
    backend_ = std::make_unique<KernelRegistry>();
    BackendModule("cpu").registerKernels(*backend_);
  }
  if (options_.reference || options_.compare) {
    reference_ = std::make_unique<KernelRegistry>();
    registerReferenceKernels(*reference_);
  }
  shared_ = {&plan, code_.get(), backend_.get(), reference_.get()};
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (plan.buffers[i]->name == "grad_norm")
      grad_norm_ = i;
  if (options_.train && !grad_norm_)
    fail("the plan cannot train (buffer): grad_norm is missing; recompile it");

  int threads = options_.threads > 0 ? options_.threads
                                     : int(std::max(1u, std::thread::hardware_concurrency()));
  threads_per_rank_ = std::max(1, threads / mesh_.ranks());
  threads_.run([&](int rank) {
    createRank(rank);
    bindPrograms(rank);
  });
  fillPersistentTables();
}

Session::~Session() = default;

void Session::checkLossResult(const std::string &name) const {
  const fb::ProgramT *program = findProgram(name);
  if (!program || program->results.empty())
    fail("the plan has no program that leaves token losses (program): ", name, "; recompile it");
  const fb::BufferT &losses = *file_.plan.buffers[program->results[0]];
  if (losses.dtype != fb::DType::F32 || losses.shape != std::vector<int64_t>{layout_.rows()})
    fail("the token losses of a program do not fit the rows of a rank (program ", name, ", buffer ",
         losses.name, "); f32[", layout_.rows(), "] is needed");
}

void Session::createRank(int rank) {
  Rank &state = ranks_[size_t(rank)];
  state.device = createHostDevice();
  state.pool = std::make_unique<WorkerPool>(threads_per_rank_);
  state.executor = std::make_unique<Executor>(
      shared_, mesh_, rank, *state.device, *state.pool,
      [this, rank](const std::vector<std::string> &axes) { return world_.create(rank, axes); },
      ExecutorOptions{.reference = options_.reference,
                      .compare = options_.compare,
                      .fill_nan = options_.fill_nan});
  size_t largest = 0;
  for (const auto &table : file_.plan.tables)
    if (!table->persistent)
      largest = std::max(largest, state.executor->buffer(table->buffer).bytes());
  state.staging.resize(largest);
}

void Session::bindPrograms(int rank) {
  Executor &executor = *ranks_[size_t(rank)].executor;
  if (options_.evaluate)
    executor.bind({"evaluate"});
  if (!options_.train)
    return;
  executor.bind({updateProgram(options_.optimizer)});
  // A step may have fewer packs than the largest, so a single round always exists.
  int64_t rounds = (options_.max_packs + dataParallelRanks() - 1) / dataParallelRanks();
  executor.bind({"train", true, true});
  if (rounds > 1) {
    executor.bind({"train", true, false});
    executor.bind({"train", false, true});
  }
  if (rounds > 2)
    executor.bind({"train", false, false});
}

size_t Session::arenaBytes() const {
  size_t bytes = 0;
  for (const auto &arena : file_.plan.arenas)
    bytes += arena->bytes;
  return bytes;
}

const fb::ProgramT *Session::findProgram(const std::string &name) const {
  for (const auto &program : file_.plan.programs)
    if (program->name == name)
      return program.get();
  return nullptr;
}

double Session::runPacks(const std::string &program, const Dataset &dataset, const Step &step,
                         double weightSum) {
  // Packs are dealt in turn; a rank without one runs padding, which contributes zero, since it must
  // join the collectives. One round is laid out at a time: host memory does not grow with the step.
  int64_t columns = dataParallelRanks();
  int64_t rounds = (int64_t(step.packs.size()) + columns - 1) / columns;
  size_t lossBuffer = findProgram(program)->results[0];
  round_.resize(size_t(columns));
  double loss = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    for (int64_t column = 0; column < columns; ++column) {
      PackRun &run = round_[size_t(column)];
      size_t p = size_t(round * columns + column);
      run.rows =
          layOutPack(dataset, p < step.packs.size() ? step.packs[p] : Pack(), weightSum, layout_);
      run.token_loss.resize(size_t(layout_.padded_tokens));
    }
    threads_.run([&](int rank) { runPack(rank, program, lossBuffer, round == 0, round == rounds - 1); });
    for (const PackRun &run : round_)
      loss += collectLosses(dataset, run);
  }
  return loss;
}

void Session::runPack(int rank, const std::string &program, size_t lossBuffer, bool first, bool last) {
  Executor &executor = *ranks_[size_t(rank)].executor;
  PackRun &run = round_[size_t(mesh_.index(rank, file_.plan.batch_axes))];
  fillPackTables(rank, run.rows);
  executor.run(executor.bind({program, first, last}));
  std::vector<std::string> cut = file_.plan.batch_axes;
  cut.insert(cut.end(), file_.plan.token_axes.begin(), file_.plan.token_axes.end());
  int replica = rank;
  for (int other : mesh_.group(rank, cut))
    replica = std::min(replica, other);
  if (replica != 0)
    return; // another rank has the same rows
  int part = mesh_.index(rank, file_.plan.token_axes);
  const float *losses = executor.buffer(lossBuffer).as<const float>();
  for (int slot = 0; slot < layout_.slots(); ++slot)
    executor.device().copyToHost(run.token_loss.data() + layout_.slotBegin(part, slot),
                                 losses + slot * layout_.slotRows(),
                                 size_t(layout_.slotRows()) * sizeof(float));
}

double Session::collectLosses(const Dataset &dataset, const PackRun &run) {
  double loss = 0;
  for (size_t row = 0; row < run.token_loss.size(); ++row) {
    int64_t index = run.rows.sample_index[row];
    if (index < 0)
      continue;
    const Sample &sample = dataset.samples[size_t(index)];
    std::vector<float> *kept = nullptr;
    if (keep_token_losses_) {
      kept = &token_losses_[sample.number];
      kept->resize(sample.input_ids.size());
    }
    if (run.rows.weights[row] == 0)
      continue;
    loss += double(run.rows.weights[row]) * double(run.token_loss[row]);
    if (kept)
      (*kept)[size_t(run.rows.sample_token[row]) + 1] =
          run.token_loss[row]; // the row's target is the token after it
  }
  return loss;
}

std::optional<double> Session::accumulate(const Dataset &dataset, const Step &step) {
  ++steps_;
  token_losses_.clear();
  if (!(step.weight_sum > 0))
    return std::nullopt;
  if (int64_t(step.packs.size()) > options_.max_packs)
    fail("a step has more packs than the session was made for (step ", steps_,
         "): ", step.packs.size(), "; at most ", options_.max_packs);
  double loss = runPacks("train", dataset, step, step.weight_sum);
  if (!std::isfinite(loss))
    fail("the loss is not finite (step ", steps_, "): ", loss,
         "; lower --lr, or run with --compare to see which instruction makes the first bad number");
  return loss;
}

double Session::update(const UpdateScalars &scalars) {
  ++updates_;
  float norm = 0;
  threads_.run([&](int rank) {
    Executor &executor = *ranks_[size_t(rank)].executor;
    fillStepScalars(rank, scalars);
    executor.run(executor.bind({updateProgram(options_.optimizer)}));
    if (rank == 0)
      executor.device().copyToHost(&norm, executor.buffer(*grad_norm_).data, sizeof norm);
  });
  if (!std::isfinite(norm))
    fail("the gradient norm is not finite (step ", steps_, "): ", norm,
         "; lower --lr, or run with --compare to see which instruction makes the first bad number");
  return norm;
}

Session::Evaluation Session::evaluate(const Dataset &dataset, const std::vector<Step> &steps) {
  token_losses_.clear();
  Evaluation result;
  double weightSum = 0;
  for (const Step &step : steps) {
    weightSum += step.weight_sum;
    result.trained_tokens += step.trained_tokens;
  }
  // Without a trained token there is no loss; the samples still run so that their token losses, all
  // zero, can be kept.
  double loss = 0, divisor = weightSum > 0 ? weightSum : 1;
  for (const Step &step : steps)
    loss += runPacks("evaluate", dataset, step, divisor);
  if (!std::isfinite(loss))
    fail("the evaluation loss is not finite (after step ", steps_, "): ", loss,
         "; run with --compare to see which instruction makes the first bad number");
  if (weightSum > 0)
    result.loss = loss;
  return result;
}

double Session::stepFlops(const Dataset &dataset, const Step &step) const {
  FlopCount count = countFlops(file_.plan, *findProgram("train"));
  int64_t columns = dataParallelRanks();
  double rounds = double((int64_t(step.packs.size()) + columns - 1) / columns), pairs = 0;
  for (const Pack &pack : step.packs)
    for (int64_t document : pack.documents) {
      double length = double(dataset.samples[size_t(document)].input_ids.size());
      pairs += length * (length + 1) / 2;
    }
  return rounds * count.per_pack + count.per_pair * pairs / double(columns * layout_.ranks);
}

} // namespace sft
