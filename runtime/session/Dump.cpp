#include "runtime/session/Dump.h"

#include "runtime/base/Error.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sft {

namespace {

void makeFolder(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    fail("cannot make a folder (", folder, "): ", error.message(), "; choose another --dump");
}

} // namespace

void dumpLosses(const Session &session, const std::string &folder, int64_t step,
                std::optional<double> loss, std::optional<double> gradNorm, int64_t trainedTokens) {
  makeFolder(folder);
  nlohmann::ordered_json json;
  json["step"] = step;
  json["loss"] = loss ? nlohmann::ordered_json(*loss) : nullptr;
  if (gradNorm)
    json["grad_norm"] = *gradNorm;
  json["trained_tokens"] = trainedTokens;
  std::string path = folder + "/loss.json";
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  if (!file.flush())
    fail("cannot write (", path, "); free space or choose another --dump");

  std::vector<TensorToWrite> tensors;
  for (const auto &[number, losses] : session.tokenLosses()) {
    char name[24];
    std::snprintf(name, sizeof name, "%08lld", static_cast<long long>(number));
    tensors.push_back({name, DType::F32, {int64_t(losses.size())}, losses.data()});
  }
  writeSafetensors(folder + "/token_loss.safetensors", tensors);
}

void dumpGradients(const Session &session, const std::string &folder) {
  makeFolder(folder);
  NamedTensors gradients = session.gradients();
  writeSafetensors(folder + "/gradients.safetensors", gradients.tensors);
}

void dumpWeights(const Session &session, const std::string &folder) {
  makeFolder(folder);
  writeSafetensors(folder + "/weights.safetensors", session.weights());
}

} // namespace sft
