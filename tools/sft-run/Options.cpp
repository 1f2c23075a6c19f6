#include "tools/sft-run/Options.h"

#include "runtime/base/Error.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace sft {

namespace {

const std::vector<std::pair<std::string, OverLong>> overLongNames = {
    {"error", OverLong::Error}, {"drop", OverLong::Drop}, {"truncate", OverLong::Truncate}};
const std::vector<std::pair<std::string, Packing>> packingNames = {
    {"ffd", Packing::FirstFitDecreasing}, {"order", Packing::Order}, {"none", Packing::None}};

/// What a validator says: withName puts the option's name after the first part.
std::string problem(const std::string &what, const std::string &value, const std::string &choice) {
  return what + '\t' + value + "; " + choice;
}

/// "--steps: value out of range\t-1; at least 0" -> "value out of range (--steps): -1; at least 0".
std::string withName(const std::string &text) {
  size_t colon = text.find(": "), tab = text.find('\t');
  if (colon == std::string::npos || tab == std::string::npos || tab < colon)
    return text + "; see sft-run --help";
  return text.substr(colon + 2, tab - colon - 2) + " (" + text.substr(0, colon) +
         "): " + text.substr(tab + 1);
}

CLI::Validator atLeast(double least) {
  return CLI::Validator(
      [least](std::string &text) {
        double value = 0;
        // What is no number at all is refused by the conversion.
        if (!CLI::detail::lexical_cast(text, value) || value >= least)
          return std::string();
        return problem("value out of range", text, concat("at least ", least));
      },
      "");
}

/// "a, b or c".
std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

CLI::Validator oneOf(const std::vector<std::string> &names) {
  return CLI::Validator(
      [names](std::string &text) {
        bool known = std::find(names.begin(), names.end(), text) != names.end();
        return known ? std::string() : problem("unknown value", text, listed(names));
      },
      "");
}

/// The same for an enumeration, whose number takes the place of the name.
template <typename Enum>
CLI::Validator oneOf(const std::vector<std::pair<std::string, Enum>> &values) {
  return CLI::Validator(
      [values](std::string &text) {
        std::vector<std::string> names;
        for (const auto &[name, value] : values) {
          if (text == name) {
            text = std::to_string(int(value));
            return std::string();
          }
          names.push_back(name);
        }
        return problem("unknown value", text, listed(names));
      },
      "");
}

[[noreturn]] void usage(const std::string &message) { throw Error(ErrorKind::Usage, message); }

void addOptions(CLI::App &app, RunOptions &o) {
  app.add_option(
         "PLAN", o.plan,
         "Plan file that sftc compile made. It contains machine code: run only plans you trust")
      ->required();

  auto *model = app.add_option_group("Model", "");
  model->add_option("--weights", o.weights, "Hugging Face folder with the weights to start from");
  model->add_option("--random-weights", o.random_weights,
                    "Start from random weights of this seed instead (the same on every mesh)");

  auto *data = app.add_option_group("Data", "");
  data->add_option(
      "--data", o.data,
      "JSONL files to train on: {\"input_ids\": [..], \"loss_mask\": [..]}, one sample a line");
  data->add_option(
      "--eval-data", o.eval_data,
      "JSONL files to evaluate: before the first step, after the last, and see --eval-every");
  data->add_option(
          "--over-long", o.over_long,
          "What to do with a sample of more tokens than a pack holds: error, drop, truncate")
      ->transform(oneOf(overLongNames))
      ->default_str("error");
  data->add_option("--packing", o.packing,
                   "How samples share packs: ffd (first fit, longest first, over the shuffled "
                   "epoch), order (as in the files, not "
                   "shuffled), none (one sample a pack)")
      ->transform(oneOf(packingNames))
      ->default_str("ffd");
  data->add_option("--seed", o.seed, "Seed of the order of the samples")->capture_default_str();

  auto *length = app.add_option_group("Length", "");
  length->add_option("--steps", o.steps, "Steps to train; 0: only evaluate --eval-data")
      ->check(atLeast(0));
  length
      ->add_option("--epochs", o.epochs,
                   "Times to go through the data (default: 1, unless --steps is given)")
      ->check(atLeast(1));
  length
      ->add_option("--stop-after", o.stop_after,
                   "Stop after this many steps of the whole run, whose schedule stays as it is; "
                   "writes final/ and exits with code 3")
      ->check(atLeast(1));
  length
      ->add_option("--global-batch", o.global_batch,
                   "Packs of one step over the whole mesh; more than the mesh runs at once are "
                   "accumulated (default: the "
                   "mesh's dp size)")
      ->check(atLeast(1));

  auto *optimizer = app.add_option_group("Optimizer", "");
  optimizer->add_option("--optimizer", o.optimizer, "adamw, or sgd (plain, for tests)")
      ->check(oneOf({"adamw", "sgd"}))
      ->capture_default_str();
  optimizer->add_option("--lr", o.lr, "Largest learning rate")->capture_default_str();
  optimizer
      ->add_option("--lr-schedule", o.schedule,
                   "After the warm-up: constant, linear or cosine down to --min-lr")
      ->check(oneOf({"constant", "linear", "cosine"}))
      ->capture_default_str();
  optimizer
      ->add_option("--warmup-steps", o.warmup_steps,
                   "Steps over which the learning rate rises (default: 3 % of the steps)")
      ->check(atLeast(0));
  optimizer->add_option("--min-lr", o.min_lr, "Learning rate of the last step")
      ->capture_default_str();
  optimizer
      ->add_option("--weight-decay", o.weight_decay,
                   "Decoupled decay of matrices; norms and biases do not decay")
      ->capture_default_str();
  optimizer->add_option("--beta1", o.beta1, "Decay of AdamW's first moment")->capture_default_str();
  optimizer->add_option("--beta2", o.beta2, "Decay of AdamW's second moment")
      ->capture_default_str();
  optimizer->add_option("--eps", o.eps, "Added to AdamW's denominator")->capture_default_str();
  optimizer
      ->add_option("--clip", o.clip,
                   "Scale the gradient down to this 2-norm where it is larger; 0: never")
      ->capture_default_str();

  auto *output = app.add_option_group("Output", "");
  output->add_option("--output", o.output,
                     "Folder for metrics.jsonl, run.json and final/, which transformers loads as "
                     "it is; must not hold another run");
  output->add_option("--eval-every", o.eval_every, "Also evaluate after every N steps")
      ->check(atLeast(1));
  output->add_option("--dump", o.dump,
                     "Write losses, token losses, gradients and weights of every step under this "
                     "folder (with --steps 0: of the "
                     "evaluation)");
  output->add_flag("--quiet", o.quiet, "No progress on the terminal");
  output->add_flag("--json", o.json, "Print a summary as JSON on standard output at the end");

  auto *execution = app.add_option_group("Execution", "");
  execution
      ->add_option(
          "--threads", o.threads,
          "Threads of the process, split over the ranks (default: one per hardware thread)")
      ->check(atLeast(1));
  execution
      ->add_option("--timeout", o.timeout, "Seconds that a rank waits for another one; 0: for ever")
      ->capture_default_str();
  auto *reference = execution->add_flag(
      "--reference", o.reference, "Run every instruction with the plain kernels (slow, exact)");
  execution
      ->add_flag("--compare", o.compare,
                 "Run every instruction with the fast and the plain kernel and stop at the first "
                 "that differs, naming its place in the "
                 "model file")
      ->excludes(reference);
}

/// What a single option cannot know of itself.
void checkOptions(const RunOptions &o) {
  auto notNegative = [](const char *name, double value) {
    if (!(value >= 0) || !std::isfinite(float(value)))
      usage(concat("value out of range (", name, "): ", value, "; ",
                   value > 0 ? "a number that fits fp32" : "at least 0"));
  };
  auto below1 = [](const char *name, double value) {
    if (!(value >= 0 && value < 1))
      usage(concat("value out of range (", name, "): ", value, "; from 0 to below 1"));
  };
  notNegative("--lr", o.lr);
  notNegative("--min-lr", o.min_lr);
  notNegative("--weight-decay", o.weight_decay);
  notNegative("--eps", o.eps);
  if (float(o.eps) == 0 && o.optimizer == "adamw")
    usage(concat("value out of range (--eps): ", o.eps,
                 "; above 0, or a weight without a gradient becomes 0/0"));
  notNegative("--clip", o.clip);
  notNegative("--timeout", o.timeout);
  below1("--beta1", o.beta1);
  below1("--beta2", o.beta2);
  if (o.min_lr > o.lr)
    usage(concat("the least learning rate is above the largest (--min-lr): ", o.min_lr,
                 "; at most --lr ", o.lr));
  if (o.weights.empty() == !o.random_weights)
    usage("give the weights to start from: one of --weights DIR and --random-weights SEED");
  if (o.steps && o.epochs)
    usage("--steps and --epochs both say how long to train; give one of them");
  if (!o.trains() && o.eval_data.empty())
    usage(
        "nothing to do (--steps): 0; give --eval-data FILE to evaluate, or --steps of at least 1");
  if (o.trains() && o.data.empty())
    usage("nothing to train on; give --data FILE (or --steps 0 with --eval-data FILE to evaluate "
          "only)");
  if (o.trains() && o.output.empty() && o.dump.empty())
    usage("nowhere to put the result; give --output DIR");
  if (o.eval_every && o.eval_data.empty())
    usage(concat("nothing to evaluate (--eval-every): ", *o.eval_every, "; give --eval-data FILE"));
}

} // namespace

std::optional<int> parseOptions(int argc, char **argv, RunOptions &options) {
  CLI::App app("Fine-tunes a language model with a compiled plan.\n\n"
               "  sft-run model.plan --weights CKPT_DIR --data train.jsonl --eval-data val.jsonl "
               "--output RUN_DIR\n\n"
               "Loss is the token mean over a step: sum(weight * cross entropy) / sum(weight) over "
               "its trained tokens.\n"
               "Exit codes: 0 done; 1 bad input or a failed run; 2 wrong usage; 3 stopped early on "
               "purpose (a signal or\n"
               "--stop-after) after writing final/; 4 another rank failed.",
               "sft-run");
  app.set_version_flag("--version", "sft-run " SFT_VERSION);
  app.get_formatter()->column_width(30);
  addOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error, std::cout, std::cerr);
    usage(withName(error.what()));
  }
  options.command_line.assign(argv, argv + argc);
  checkOptions(options);
  return std::nullopt;
}

} // namespace sft
