// Runs sft-plan as a user does.

#include "runtime/plan/PlanFile.h"
#include "test/unit/plan/PlanFixture.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace sft;

namespace {

/// What a run printed and how it ended.
struct Outcome {
  int code = -1;
  std::string out, err;
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

class SftPlan : public testing::Test {
protected:
  SftPlan()
      : folder_(std::filesystem::temp_directory_path() /
                ("sft-plan-program-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
    writePlan(plan(), serializePlan(tinyPlan().plan));
  }
  ~SftPlan() override { std::filesystem::remove_all(folder_); }

  std::string plan() const { return folder_ / "tiny.plan"; }

  Outcome run(const std::string &arguments) const {
    std::string out = folder_ / "out", err = folder_ / "err";
    int status = std::system(
        ("'" SFT_PLAN_PROGRAM "' " + arguments + " >'" + out + "' 2>'" + err + "'").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }

private:
  static std::string contents(const std::string &path) {
    std::ostringstream os;
    os << std::ifstream(path).rdbuf();
    return os.str();
  }

  std::filesystem::path folder_;
};

} // namespace

TEST_F(SftPlan, MemoryReportsEveryArenaAndThePeak) {
  Outcome run = this->run("memory --json " + plan());
  ASSERT_EQ(run.code, 0) << run.err;
  nlohmann::json memory = run.json();
  EXPECT_EQ(memory["ranks"], 2);
  EXPECT_EQ(memory["per_rank"]["activations"], 384);
  EXPECT_EQ(memory["per_rank"]["total"], 640);
  EXPECT_EQ(memory["peak"]["program"], "train");
  EXPECT_EQ(memory["peak"]["instruction"], "2");
  EXPECT_EQ(memory["peak"]["bytes"], 204);
  EXPECT_EQ(memory["peak"]["live"][0], (nlohmann::json{{"name", "y"}, {"bytes", 80}}));
  EXPECT_EQ(memory["lower_bound"], 384);
  EXPECT_EQ(memory["reserved"], 384);
  std::string text = this->run("memory " + plan()).out;
  EXPECT_NE(text.find("reserved above the lower bound: 0.00 %"), std::string::npos) << text;
}

TEST_F(SftPlan, ShowHasTheKeysThatOthersRelyOn) {
  Outcome run = this->run("show --json " + plan());
  ASSERT_EQ(run.code, 0) << run.err;
  nlohmann::json show = run.json();
  for (const char *key :
       {"mesh", "target", "tokens", "padded_tokens", "pad_reasons", "cp_method", "token_order",
        "parameters", "memory", "programs", "kernels", "collectives", "remarks", "buffers"})
    EXPECT_TRUE(show.contains(key)) << key;
  for (const char *key : {"persistent", "activations", "workspace", "peak"})
    EXPECT_TRUE(show["memory"].contains(key)) << key;
  EXPECT_EQ(show["mesh"], (nlohmann::json{{"tp", 1}, {"cp", 2}}));
  EXPECT_EQ(show["programs"][0]["instructions"].size(), 5u);
  EXPECT_EQ(show["programs"][0]["instructions"][1]["location"].get<std::string>().rfind("tiny.mlir:3:3 ", 0), 0u);
  EXPECT_EQ(show["collectives"],
            nlohmann::json::parse(R"([{"kind": "reduce_scatter", "axes": ["cp"], "bytes": 64,
                                     "program": "train", "reduction": "sum", "location": ""}])"));
  EXPECT_EQ(show["buffers"][0]["checkpoint_name"], "model.w.weight");
  EXPECT_EQ(show["kernels"][0]["launches"], 2);
}

TEST_F(SftPlan, ShowPrintsAnInstructionALine) {
  std::string text = run("show " + plan()).out;
  EXPECT_NE(
      text.find("  1  matmul a=x[4, 3], b=w[5, 3] -> c=y[4, 5]  {transpose_b=1}  @tiny.mlir:3:3 "),
      std::string::npos)
      << text;
  EXPECT_NE(
      text.find(
          "  4  reduce_scatter [last] over cp input=group.dw[16] -> output=group.dw.slice[8]"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("  0.0  fill -> x=loss[4]\n"), std::string::npos) << text;
}

TEST_F(SftPlan, RankChoosesTheSlice) {
  auto offset = [&](const char *rank) {
    return run("show --json --rank " + std::string(rank) + " " + plan())
        .json()["buffers"][tiny::GradientSlice]["offset"];
  };
  EXPECT_EQ(offset("0"), 0);
  EXPECT_EQ(offset("1"), 32);
  Outcome outside = run("memory --rank 2 " + plan());
  EXPECT_EQ(outside.code, 1);
  EXPECT_NE(outside.err.find("sft-plan: error: rank is not in the mesh"), std::string::npos)
      << outside.err;
}

TEST_F(SftPlan, VersionAlsoReadsOtherVersions) {
  EXPECT_EQ(run("version --json " + plan()).json(),
            (nlohmann::json{{"plan", "1.0"}, {"runtime", "1.0"}, {"readable", true}}));
  std::fstream file(plan(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(8).put(7);
  file.close();
  EXPECT_EQ(run("version --json " + plan()).json()["readable"], false);
  EXPECT_EQ(run("verify " + plan()).code, 1);
}

TEST_F(SftPlan, ExitCodesTellBadFilesFromBadUsage) {
  EXPECT_EQ(run("verify " + plan()).code, 0);
  EXPECT_EQ(run("verify --quiet " + plan()).out, "");
  EXPECT_EQ(run("--help").code, 0);
  EXPECT_EQ(run("--version").code, 0);
  Outcome missing = run("verify " + plan() + ".missing");
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err.find("sft-plan: error: cannot read plan ("), 0u) << missing.err;
  for (const char *arguments : {"", "dance", "show", "show --colour x"}) {
    Outcome usage = run(arguments);
    EXPECT_EQ(usage.code, 2) << arguments;
    EXPECT_EQ(usage.err.find("sft-plan: error: "), 0u) << usage.err;
    EXPECT_EQ(usage.out, "") << arguments;
  }
}
