#include "runtime/base/Error.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sft {

namespace {

/// Elements moved at a time: bounds the extra host memory of loading.
constexpr int64_t kChunk = 1 << 20;

int64_t elementsOf(const std::vector<int64_t> &shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  return elements;
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

double initializerRange(const std::string &config) {
  nlohmann::json json = nlohmann::json::parse(config, nullptr, false);
  if (json.is_object() && json.contains("initializer_range") &&
      json["initializer_range"].is_number())
    return json["initializer_range"].get<double>();
  return 0.02; // transformers' default
}

} // namespace

void Session::checkParameters() const {
  const fb::PlanT &plan = file_.plan;
  for (const auto &parameter : plan.parameters) {
    for (const auto &dimension : parameter->dimensions)
      if (mesh_.size(dimension->axes) > 1 || dimension->pad > 0)
        fail("this build loads whole parameters only (parameter ", parameter->name,
             "): a dimension is cut or padded; recompile with: ",
             recompileCommand(plan, "--mesh", "cp=N"));
    const fb::BufferT &buffer = *plan.buffers[parameter->buffer];
    if (buffer.dtype != fb::DType::F32)
      fail("this build trains in fp32 only (parameter ", parameter->name,
           "): ", fb::EnumNameDType(buffer.dtype),
           "; recompile with: ", recompileCommand(plan, "--precision", "fp32"));
    if (elementsOf(buffer.shape) != elementsOf(parameter->global_shape))
      fail("a parameter's buffer has another size than the parameter (plan, parameter ",
           parameter->name, "): ", elementsOf(buffer.shape), "; ",
           elementsOf(parameter->global_shape), " elements");
  }
}

void Session::loadWeights(const std::string &folder) {
  std::vector<ExpectedTensor> expected;
  for (const auto &parameter : file_.plan.parameters)
    expected.push_back({parameter->name, parameter->aliases, parameter->global_shape});
  // The folder's mapping goes before the optimizer's state is touched, so that both are never
  // resident together.
  {
    WeightFolder weights(folder);
    checkWeights(weights, expected);
    fillParameters([&](const fb::ModelParameterT &parameter, int64_t begin, int64_t count,
                       float *out) { weights.readFloats(parameter.name, begin, count, out); });
  }
  resetOptimizer();
}

void Session::randomWeights(uint64_t seed) {
  double deviation = initializerRange(file_.plan.config);
  fillParameters(
      [&](const fb::ModelParameterT &parameter, int64_t begin, int64_t count, float *out) {
        if (endsWith(parameter.name, ".bias"))
          std::fill_n(out, count, 0.0f);
        else if (parameter.name.find("norm") != std::string::npos)
          std::fill_n(out, count, 1.0f);
        else
          fillRandomNormal(seed, parameter.name, deviation, begin, count, out);
      });
  resetOptimizer();
}

void Session::fillParameters(const ParameterFill &fill) {
  const fb::PlanT &plan = file_.plan;
  threads_.run([&](int rank) {
    Rank &state = ranks_[size_t(rank)];
    // Groups end in padding, which takes part in updates and must stay zero.
    for (const auto &group : plan.groups) {
      TensorRef all = state.executor->buffer(group->parameter_buffer);
      state.device->fill(all.data, 0, all.bytes());
    }
    std::vector<float> chunk;
    for (const auto &parameter : plan.parameters) {
      TensorRef tensor = state.executor->buffer(parameter->buffer);
      for (int64_t begin = 0, total = tensor.elements(); begin < total; begin += kChunk) {
        int64_t count = std::min(kChunk, total - begin);
        chunk.resize(size_t(count));
        fill(*parameter, begin, count, chunk.data());
        state.device->copyToDevice(tensor.as<float>() + begin, chunk.data(),
                                   size_t(count) * sizeof(float));
      }
    }
  });
}

void Session::resetOptimizer() {
  updates_ = 0;
  threads_.run([&](int rank) {
    Rank &state = ranks_[size_t(rank)];
    for (const auto &group : file_.plan.groups) {
      if (!group->trainable)
        continue;
      for (uint32_t index : {group->gradient_buffer, group->exp_avg, group->exp_avg_sq}) {
        TensorRef tensor = state.executor->buffer(index);
        state.device->fill(tensor.data, 0, tensor.bytes());
      }
    }
  });
}

void Session::checkWeightsFinite() const {
  for (const TensorToWrite &tensor : weights()) {
    const float *values = static_cast<const float *>(tensor.data);
    for (int64_t i = 0, n = elementsOf(tensor.shape); i < n; ++i)
      if (!std::isfinite(values[i]))
        fail("a weight is not finite (after step ", steps_, ", ", tensor.name, "): ", values[i],
             "; nothing was exported; lower --lr, or run with --compare to see which instruction "
             "makes the first bad number");
  }
}

std::vector<TensorToWrite> Session::weights() const {
  std::vector<TensorToWrite> tensors;
  for (const auto &parameter : file_.plan.parameters)
    tensors.push_back({parameter->name, DType::F32, parameter->global_shape,
                       ranks_[0].executor->buffer(parameter->buffer).data});
  return tensors;
}

NamedTensors Session::gradients() const {
  const fb::PlanT &plan = file_.plan;
  NamedTensors result;
  result.storage.resize(plan.groups.size());
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const fb::GroupT &group = *plan.groups[g];
    if (!group.trainable)
      continue;
    std::vector<float> &all = result.storage[g];
    all.resize(group.elements);
    for (int rank : mesh_.group(0, group.reduce_axes)) {
      TensorRef share = ranks_[size_t(rank)].executor->buffer(group.gradient_slice);
      ranks_[size_t(rank)].device->copyToHost(
          all.data() + int64_t(mesh_.index(rank, group.reduce_axes)) * share.elements(), share.data,
          share.bytes());
    }
  }
  for (const auto &parameter : plan.parameters)
    if (plan.groups[parameter->group]->trainable)
      result.tensors.push_back(
          {parameter->name, DType::F32, parameter->global_shape,
           result.storage[parameter->group].data() + parameter->element_offset});
  return result;
}

} // namespace sft
