#include "runtime/base/Error.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sft {

namespace {

bool isRotary(const fb::TableT &table) {
  return table.kind == "rotary_cos" || table.kind == "rotary_sin";
}

RotaryParameters rotaryParameters(const fb::TableT &table, int64_t width) {
  RotaryParameters result;
  result.head_dim = width;
  for (const auto &parameter : table.parameters) {
    double number = parameter->kind == fb::ValueKind::Integer ? double(parameter->i) : parameter->f;
    const std::string &name = parameter->name;
    if (name == "rope_type")
      result.rope_type = parameter->s;
    else if (name == "theta")
      result.theta = number;
    else if (name == "factor")
      result.factor = number;
    else if (name == "low_freq_factor")
      result.low_freq_factor = number;
    else if (name == "high_freq_factor")
      result.high_freq_factor = number;
    else if (name == "original_max_position_embeddings")
      result.original_max_position_embeddings = int64_t(number);
    else if (name == "head_dim")
      result.head_dim = int64_t(number);
    else
      fail("unknown parameter of a rotary table (plan, table ", table.kind, "): ", name,
           "; recompile the plan");
  }
  if (result.head_dim != width)
    fail("a rotary table has another width than its head_dim (plan, table ", table.kind,
         "): ", width, "; ", result.head_dim);
  return result;
}

} // namespace

int64_t planMaxPositions(const fb::PlanT &plan) {
  int64_t rows = std::numeric_limits<int32_t>::max();
  for (const auto &table : plan.tables)
    if (isRotary(*table))
      rows = std::min(rows, plan.buffers[table->buffer]->shape[0]);
  return rows;
}

void Session::writeBuffer(int rank, size_t buffer, const void *data) {
  Rank &state = ranks_[size_t(rank)];
  TensorRef tensor = state.executor->buffer(buffer);
  state.device->copyToDevice(tensor.data, data, tensor.bytes());
}

void Session::fillPersistentTables() {
  const fb::PlanT &plan = file_.plan;
  PackRows padding = layOutPack({}, {}, 1, layout_);
  for (const auto &table : plan.tables) {
    int64_t entries = table->kind == "squares"      ? squaresCapacity(layout_)
                      : table->kind == "rectangles" ? rectanglesCapacity(layout_)
                                                    : 0;
    if (ranks_[0].executor->buffer(table->buffer).shape[0] < entries)
      fail("a table of the plan is too small for its packs (table ", table->kind,
           "): ", ranks_[0].executor->buffer(table->buffer).shape[0], " entries; ", entries,
           " are needed, recompile the plan");
    if (!table->persistent || table->kind == "step_scalars")
      continue;
    TensorRef shape = ranks_[0].executor->buffer(table->buffer);
    if (isRotary(*table)) {
      std::vector<float> cosine(size_t(shape.elements())), sine(size_t(shape.elements()));
      fillRotaryTable(rotaryParameters(*table, shape.shape[1]), shape.shape[0], cosine.data(),
                      sine.data());
      const void *data = table->kind == "rotary_cos" ? cosine.data() : sine.data();
      threads_.run([&](int rank) { writeBuffer(rank, table->buffer, data); });
    } else {
      threads_.run([&](int rank) { fillTableBuffer(rank, *table, padding); });
    }
  }
}

void Session::fillTableBuffer(int rank, const fb::TableT &table, const PackRows &rows) {
  Rank &state = ranks_[size_t(rank)];
  size_t bytes = state.executor->buffer(table.buffer).bytes();
  if (state.staging.size() < bytes)
    state.staging.resize(bytes);
  fillTable(table.kind, table.whole, rows, layout_, mesh_.index(rank, file_.plan.token_axes),
            state.staging.data(), bytes);
  writeBuffer(rank, table.buffer, state.staging.data());
}

void Session::fillPackTables(int rank, const PackRows &rows) {
  for (const auto &table : file_.plan.tables)
    if (!table->persistent && table->kind != "step_scalars" && !isRotary(*table))
      fillTableBuffer(rank, *table, rows);
}

void Session::fillStepScalars(int rank, const UpdateScalars &scalars) {
  double t = double(updates_);
  float values[16] = {};
  values[0] = float(scalars.lr);
  values[1] = float(scalars.beta1);
  values[2] = float(scalars.beta2);
  values[3] = float(scalars.eps);
  values[4] = float(scalars.weight_decay);
  values[5] = float(1 - std::pow(scalars.beta1, t));
  values[6] = float(1 - std::pow(scalars.beta2, t));
  values[7] = scalars.clip > 0 ? float(scalars.clip) : std::numeric_limits<float>::infinity();
  // In double: 1 - 0.999 in fp32 would be off by 3e-5.
  values[9] = float(1 - scalars.beta1);
  values[10] = float(1 - scalars.beta2);
  for (const auto &table : file_.plan.tables)
    if (table->kind == "step_scalars")
      writeBuffer(rank, table->buffer, values);
}

} // namespace sft
