// sft-plan: looks into plan files.

#include "runtime/base/Error.h"
#include "tools/sft-plan/Reports.h"

#include <CLI/CLI.hpp>
#include <iostream>

using namespace sft;

namespace {

struct Options {
  std::string file;
  int64_t rank = 0;
  bool json = false, quiet = false;
};

void print(const Json &json) { std::cout << json.dump(2) << '\n'; }

std::string versionText(uint16_t major, uint16_t minor) { return concat(major, '.', minor); }

void show(const Options &options) {
  PlanFile file = readPlan(options.file);
  if (options.json)
    print(showJson(file, options.rank));
  else
    std::cout << showText(file, options.rank);
}

void memory(const Options &options) {
  PlanFile file = readPlan(options.file);
  MemoryReport report = reportMemory(file.plan, options.rank);
  if (options.json)
    print(memoryJson(file.plan, report));
  else
    std::cout << memoryText(file.plan, report);
}

void version(const Options &options) {
  uint16_t major, minor;
  readPlanVersion(options.file, major, minor);
  bool readable = major == kPlanMajor && minor <= kPlanMinor;
  std::string ours = versionText(kPlanMajor, kPlanMinor);
  if (options.json)
    print({{"plan", versionText(major, minor)}, {"runtime", ours}, {"readable", readable}});
  else
    std::cout << "plan version " << versionText(major, minor) << ", this program reads "
              << kPlanMajor << ".0 to " << ours << (readable ? "" : "; re-run the compiler")
              << '\n';
}

void verify(const Options &options) {
  PlanFile file = readPlan(options.file);
  if (options.json)
    print({{"valid", true}, {"version", versionText(file.major, file.minor)}, {"hash", file.hash}});
  else if (!options.quiet)
    std::cout << options.file << ": valid, plan version " << versionText(file.major, file.minor)
              << ", hash " << file.hash << '\n';
}

CLI::App *addCommand(CLI::App &app, const char *name, const char *description, Options &options) {
  CLI::App *command = app.add_subcommand(name, description);
  command->add_option("FILE", options.file, "The plan file")->required();
  command->add_flag("--json", options.json, "Print JSON")->group("Output");
  return command;
}

void addRank(CLI::App &command, Options &options) {
  command.add_option("--rank", options.rank, "The rank whose addresses are shown")
      ->capture_default_str()
      ->group("Output");
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Looks into the plan files that sftc makes and sft-run executes.", "sft-plan");
  app.set_version_flag("--version", concat("sft-plan " SFT_VERSION " (plan version ", kPlanMajor,
                                           '.', kPlanMinor, ')'));
  app.require_subcommand(1);
  Options options;
  addRank(
      *addCommand(app, "show",
                  "Everything a plan says: mesh, padding, parameters, programs, kernels, remarks",
                  options),
      options);
  addRank(*addCommand(app, "memory",
                      "Bytes of every arena, and what is live when each program needs most",
                      options),
          options);
  addCommand(app, "version",
             "Version of the file format, also of files that this program cannot read", options);
  addCommand(app, "verify", "Checks the whole file; prints every problem", options)
      ->add_flag("--quiet", options.quiet, "Print nothing when the plan is valid")
      ->group("Output");
  try {
    app.parse(argc, argv);
    const std::string &command = app.get_subcommands().front()->get_name();
    (command == "show"      ? show
     : command == "memory"  ? memory
     : command == "version" ? version
                            : verify)(options);
  } catch (const CLI::Success &success) {
    return app.exit(success); // --help, --version
  } catch (const CLI::ParseError &error) {
    std::cerr << "sft-plan: error: " << error.what() << "; sft-plan --help lists the commands\n";
    return 2;
  } catch (const Error &error) {
    std::cerr << "sft-plan: error: " << error.what() << '\n';
    return error.exitCode();
  } catch (const std::exception &error) {
    std::cerr << "sft-plan: error: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
