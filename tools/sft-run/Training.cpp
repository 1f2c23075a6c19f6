#include "tools/sft-run/Training.h"

#include "runtime/base/Error.h"
#include "runtime/session/Dump.h"
#include "runtime/session/Session.h"
#include "tools/sft-run/Report.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iomanip>
#include <iostream>

namespace sft {

namespace {

volatile std::sig_atomic_t signalled = 0;

/// The first SIGINT or SIGTERM ends the run after its step; a second one ends the process.
void installSignalHandlers() {
  struct sigaction action = {};
  action.sa_handler = [](int) { signalled = 1; };
  action.sa_flags = int(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Json orNull(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

/// The steps of all epochs in order, planned an epoch at a time.
class StepSource {
public:
  StepSource(const Dataset &dataset, const StepOptions &options)
      : dataset_(dataset), options_(options) {}

  /// Steps of the first `epochs` epochs.
  int64_t count(int64_t epochs) const {
    // The order differs between epochs, the lengths do not: every packing makes as many packs.
    return epochs * int64_t(planEpoch(dataset_, options_, 0).size());
  }

  const Step &next() {
    if (next_ == steps_.size()) {
      steps_ = planEpoch(dataset_, options_, epoch_++);
      next_ = 0;
    }
    return steps_[next_++];
  }
  /// Of the step that next() returned, from 1.
  int64_t epoch() const { return epoch_; }

private:
  const Dataset &dataset_;
  StepOptions options_;
  int64_t epoch_ = 0;
  size_t next_ = 0;
  std::vector<Step> steps_;
};

class Run {
public:
  explicit Run(const RunOptions &options)
      : options_(options), file_(readPlan(options.plan)), mesh_(planMesh(file_.plan)),
        folder_(options.output) {
    readData();
    planLength();
    SessionOptions session;
    session.threads = options.threads;
    session.reference = options.reference;
    session.compare = options.compare;
    session.optimizer = options.optimizer;
    session.max_packs = global_batch_;
    session.train = options.trains();
    session.evaluate = !options.eval_data.empty();
    session.timeout = options.timeout;
    session_ = std::make_unique<Session>(std::move(file_), session);
    session_->keepTokenLosses(!options.dump.empty());
    if (options.random_weights)
      session_->randomWeights(*options.random_weights);
    else
      session_->loadWeights(options.weights);
    folder_.make();
  }

  int run() {
    Progress progress(options_.quiet, last_);
    progress_ = &progress;
    announce();
    installSignalHandlers();
    if (!options_.trains())
      return evaluateOnly();
    evaluate(0);
    int64_t step = 0;
    while (step < last_ && !signalled) {
      trainStep(++step);
      if (step == last_ || signalled || (options_.eval_every && step % *options_.eval_every == 0))
        evaluate(step);
    }
    return finish(step);
  }

private:
  void readData() {
    DatasetOptions options;
    options.tokens = file_.plan.tokens;
    options.vocab_size = file_.plan.vocab_size;
    options.max_positions = planMaxPositions(file_.plan);
    options.over_long = options_.over_long;
    if (options_.trains()) {
      train_ = readDataset(options_.data, options, false);
      if (train_.samples.empty())
        fail("no sample to train on (--data ", options_.data[0],
             options_.data.size() > 1 ? ", ..." : "", "): 0 of ", train_.counts.lines, " lines, ",
             train_.counts.untrained, " without a trained token, ", train_.counts.dropped,
             " dropped as over-long; mark trained tokens in loss_mask or labels");
    }
    if (options_.eval_data.empty())
      return;
    // Untrained samples stay: their token losses are dumped.
    eval_ = readDataset(options_.eval_data, options, true);
    StepOptions steps = stepOptions();
    steps.global_batch = mesh_.size(file_.plan.batch_axes);
    steps.shuffle = false;
    eval_steps_ = planEpoch(eval_, steps, 0);
  }

  StepOptions stepOptions() const {
    StepOptions steps;
    steps.tokens = file_.plan.tokens;
    steps.max_documents = file_.plan.max_documents;
    steps.packing = options_.packing;
    steps.seed = options_.seed;
    steps.shuffle = options_.packing != Packing::Order;
    return steps;
  }

  void planLength() {
    global_batch_ = options_.global_batch.value_or(mesh_.size(file_.plan.batch_axes));
    StepOptions steps = stepOptions();
    steps.global_batch = global_batch_;
    source_ = std::make_unique<StepSource>(train_, steps);
    if (!options_.trains())
      return;
    total_ = options_.steps ? *options_.steps : source_->count(options_.epochs.value_or(1));
    last_ = std::min(total_, options_.stop_after.value_or(total_));
    schedule_.kind = options_.schedule;
    schedule_.lr = options_.lr;
    schedule_.min_lr = options_.min_lr;
    schedule_.total = total_;
    schedule_.warmup = options_.warmup_steps.value_or(int64_t(std::ceil(0.03 * double(total_))));
  }

  Json meshJson() const {
    Json mesh = Json::object();
    for (const auto &[name, size] : mesh_.axes())
      mesh[name] = size;
    return mesh;
  }

  static Json countsJson(const Dataset &dataset) {
    const DatasetCounts &counts = dataset.counts;
    return {{"lines", counts.lines},
            {"samples", counts.samples},
            {"tokens", counts.tokens},
            {"trained_tokens", counts.trained_tokens},
            {"untrained", counts.untrained},
            {"empty", counts.empty},
            {"ignored_keys", counts.ignored_keys},
            {"dropped", counts.dropped_samples},
            {"truncated", counts.truncated_samples}};
  }

  /// The start of the run: run.json, the first lines of metrics.jsonl, a few lines for people.
  void announce() {
    const fb::PlanT &plan = session_->plan();
    Json versions = {{"sft_run", SFT_VERSION}, {"plan_producer", plan.producer}};
    run_ = {{"plan", options_.plan},
            {"plan_hash", session_->planHash()},
            {"mesh", meshJson()},
            {"seed", options_.seed},
            {"versions", versions},
            {"command_line", options_.command_line},
            {"compile_command", plan.command_line},
            {"options", optionsJson()},
            {"arena_bytes", session_->arenaBytes()},
            {"host_peak_bytes", residentPeakBytes()}};
    Json line = {{"kind", "run"}};
    for (const char *key : {"plan_hash", "mesh", "seed", "versions", "command_line"})
      line[key] = run_[key];
    folder_.metric(line);
    std::string mesh;
    for (const auto &[name, size] : mesh_.axes())
      mesh += concat(mesh.empty() ? "" : ",", name, "=", size);
    progress_->say(concat("plan ", options_.plan, ": mesh ", mesh.empty() ? "1" : mesh, ", ",
                          plan.tokens, " tokens a pack (", plan.padded_tokens, " padded), ",
                          std::fixed, std::setprecision(2),
                          double(session_->arenaBytes()) / double(1 << 30), " GiB a rank, ",
                          session_->threadsPerRank(), " threads a rank"));
    if (options_.trains())
      announceData("data", train_,
                   concat(total_, " steps of ", global_batch_, " packs, token-mean loss"));
    if (!options_.eval_data.empty())
      announceData("eval_data", eval_, concat(eval_steps_.size(), " steps"));
    folder_.writeRun(run_);
  }

  void announceData(const char *name, const Dataset &dataset, const std::string &steps) {
    const DatasetCounts &counts = dataset.counts;
    Json json = countsJson(dataset);
    json["hash"] = concat(std::hex, std::setw(16), std::setfill('0'), dataset.hash);
    run_[name] = json;
    Json line = {{"kind", "event"}, {"event", name}};
    line.update(json);
    folder_.metric(line);
    progress_->say(concat(name, ": ", counts.samples, " samples, ", counts.trained_tokens,
                          " trained of ", counts.tokens, " tokens, ", counts.untrained,
                          " without a trained token, ", counts.dropped, " dropped, ",
                          counts.truncated, " truncated; ", steps));
    std::string ignored;
    for (const auto &[key, lines] : counts.ignored_keys)
      ignored += concat(ignored.empty() ? "" : ", ", key, " (", lines, " lines)");
    if (!ignored.empty())
      progress_->say(concat("warning: keys that mean nothing here (", name, "): ", ignored,
                            "; known are input_ids, loss_mask, labels and position_ids"));
  }

  Json optionsJson() const {
    Json json = {{"weights", options_.weights},
                 {"data", options_.data},
                 {"eval_data", options_.eval_data},
                 {"steps", total_},
                 {"stop_after", last_},
                 {"global_batch", global_batch_},
                 {"optimizer", options_.optimizer},
                 {"lr", options_.lr},
                 {"lr_schedule", options_.schedule},
                 {"warmup_steps", schedule_.warmup},
                 {"min_lr", options_.min_lr},
                 {"weight_decay", options_.weight_decay},
                 {"beta1", options_.beta1},
                 {"beta2", options_.beta2},
                 {"eps", options_.eps},
                 {"clip", options_.clip},
                 {"packing", options_.packing == Packing::None    ? "none"
                             : options_.packing == Packing::Order ? "order"
                                                                  : "ffd"},
                 {"threads_per_rank", session_->threadsPerRank()},
                 {"reference", options_.reference},
                 {"compare", options_.compare}};
    if (options_.random_weights)
      json["random_weights"] = *options_.random_weights;
    return json;
  }

  void trainStep(int64_t number) {
    auto begin = std::chrono::steady_clock::now();
    const Step &step = source_->next();
    UpdateScalars scalars{.lr = learningRate(schedule_, number),
                          .beta1 = options_.beta1,
                          .beta2 = options_.beta2,
                          .eps = options_.eps,
                          .weight_decay = options_.weight_decay,
                          .clip = options_.clip};
    std::optional<double> gradNorm;
    loss_ = session_->accumulate(train_, step);
    std::string dump = options_.dump.empty() ? "" : concat(options_.dump, "/step-", number);
    if (loss_) {
      if (!dump.empty())
        dumpGradients(*session_, dump);
      gradNorm = session_->update(scalars);
    } else {
      ++skipped_;
    }
    double seconds = secondsSince(begin);
    if (!dump.empty()) {
      dumpLosses(*session_, dump, number, loss_, gradNorm, step.trained_tokens);
      dumpWeights(*session_, dump);
    }
    tokens_ += step.tokens;
    int64_t ranks = mesh_.size(session_->plan().batch_axes);
    int64_t rounds = (int64_t(step.packs.size()) + ranks - 1) / ranks;
    folder_.metric(
        {{"kind", "train"},
         {"step", number},
         {"epoch", source_->epoch()},
         {"loss", orNull(loss_)},
         {"grad_norm", orNull(gradNorm)},
         {"lr", scalars.lr},
         {"trained_tokens", step.trained_tokens},
         {"tokens", step.tokens},
         {"padded_tokens", loss_ ? rounds * ranks * session_->plan().padded_tokens : 0},
         {"samples", step.samples},
         {"skipped", skipped_},
         {"step_time", seconds},
         {"tokens_per_second", double(step.tokens) / seconds},
         {"model_tflops",
          loss_ ? Json(session_->stepFlops(train_, step) / seconds / 1e12) : Json(nullptr)},
         {"peak_memory_bytes", session_->arenaBytes()}});
    progress_->step(number, loss_, double(step.tokens) / seconds, scalars.lr);
  }

  void evaluate(int64_t step) {
    if (options_.eval_data.empty())
      return;
    Session::Evaluation result = session_->evaluate(eval_, eval_steps_);
    eval_loss_ = result.loss;
    folder_.metric({{"kind", "eval"},
                    {"step", step},
                    {"eval_loss", orNull(result.loss)},
                    {"eval_tokens", result.trained_tokens}});
    progress_->say(concat("eval at step ", step, ": ",
                          result.loss
                              ? concat("loss ", std::fixed, std::setprecision(4), *result.loss)
                              : "no trained tokens",
                          " (", result.trained_tokens, " tokens)"));
    if (!options_.trains() && !options_.dump.empty())
      dumpLosses(*session_, options_.dump + "/eval", step, result.loss, std::nullopt,
                 result.trained_tokens);
  }

  int evaluateOnly() {
    evaluate(0);
    summarize(0, "");
    return 0;
  }

  int finish(int64_t step) {
    bool early = step < total_;
    if (early) {
      const char *why = signalled ? "signal" : "stop-after";
      folder_.metric({{"kind", "event"}, {"event", "stopped"}, {"step", step}, {"reason", why}});
      progress_->say(concat("stopped after step ", step, " of ", total_, " (", why, ")"));
    }
    std::string finalFolder;
    session_->checkWeightsFinite();
    if (folder_.present()) {
      finalFolder = folder_.path() + "/final";
      writeModelFolder(finalFolder, session_->weights(), session_->plan().config, options_.weights);
      progress_->say(concat("wrote ", finalFolder));
    }
    summarize(step, finalFolder);
    return early ? 3 : 0;
  }

  void summarize(int64_t step, const std::string &finalFolder) {
    run_["host_peak_bytes"] = residentPeakBytes();
    folder_.writeRun(run_);
    if (!options_.json)
      return;
    Json json = {{"steps", step},
                 {"total_steps", total_},
                 {"loss", orNull(loss_)},
                 {"eval_loss", orNull(eval_loss_)},
                 {"tokens", tokens_},
                 {"skipped", skipped_},
                 {"arena_bytes", session_->arenaBytes()},
                 {"host_peak_bytes", run_["host_peak_bytes"]}};
    if (!finalFolder.empty())
      json["final"] = finalFolder;
    std::cout << json.dump(2) << std::endl;
  }

  const RunOptions &options_;
  PlanFile file_; ///< moves into the session
  Mesh mesh_;
  RunFolder folder_;
  Dataset train_, eval_;
  std::vector<Step> eval_steps_;
  std::unique_ptr<StepSource> source_;
  int64_t global_batch_ = 1, total_ = 0, last_ = 0;
  ScheduleOptions schedule_;
  std::unique_ptr<Session> session_;
  Progress *progress_ = nullptr; ///< while run() runs
  Json run_;
  std::optional<double> loss_, eval_loss_; ///< of the last step and evaluation
  int64_t skipped_ = 0, tokens_ = 0;
};

} // namespace

int runTraining(const RunOptions &options) { return Run(options).run(); }

} // namespace sft
