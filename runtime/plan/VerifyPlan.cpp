// Everything of a plan but its programs: mesh, memory map, parameters, groups, tables and kernels.

#include "runtime/base/DType.h"
#include "runtime/plan/KernelSignature.h"
#include "runtime/plan/PlanChecks.h"
#include "runtime/plan/PlanFile.h"

#include <algorithm>
#include <ios>
#include <set>

using namespace sft;

namespace {

constexpr int64_t kMaxRanks = 1 << 20;

/// A kind of table that the host fills, and what its buffer must be.
struct TableKind {
  const char *name;
  fb::DType dtype;
  int64_t rank;       ///< dimensions of the buffer
  int64_t last;       ///< size of the last dimension, 0 for any
  bool row_of_tokens; ///< the first dimension counts token rows
};
constexpr TableKind kTableKinds[] = {
    {"tokens", fb::DType::I32, 1, 0, true},
    {"positions", fb::DType::I32, 1, 0, true},
    {"documents", fb::DType::I32, 1, 0, true},
    {"targets", fb::DType::I32, 1, 0, true},
    {"weights", fb::DType::F32, 1, 0, true},
    {"trained_rows", fb::DType::I32, 1, 0, false},
    {"squares", fb::DType::I32, 2, 3, false},
    {"rectangles", fb::DType::I32, 2, 4, false},
    {"embedding_order", fb::DType::I32, 1, 0, true},
    {"embedding_segments", fb::DType::I32, 2, 3, true},
    {"slot_permutation", fb::DType::I32, 1, 0, false},
    {"rotary_cos", fb::DType::F32, 2, 0, false},
    {"rotary_sin", fb::DType::F32, 2, 0, false},
    {"step_scalars", fb::DType::F32, 1, 16, false},
};

/// Names of a list must be there and differ.
template <typename List>
void checkUniqueNames(PlanChecks &checks, const char *what, const List &list) {
  std::set<std::string> seen;
  for (const auto &entry : list)
    if (entry->name.empty() || !seen.insert(entry->name).second)
      checks.report(what, " name is empty or used twice (", entry->name, "); every ", what,
                    " has its own name");
}

void checkMesh(PlanChecks &checks) {
  checkUniqueNames(checks, "mesh axis", checks.plan.mesh);
  int64_t ranks = 1;
  for (const auto &axis : checks.plan.mesh) {
    if (axis->size < 1)
      checks.report("mesh axis is empty (axis ", axis->name, "): size 0; at least 1");
    ranks = std::min(kMaxRanks + 1, ranks * std::min<int64_t>(axis->size, kMaxRanks + 1));
  }
  if (ranks > kMaxRanks)
    checks.report("mesh is too large (mesh): more than ", kMaxRanks, " ranks; at most that many");
}

void checkSymbols(PlanChecks &checks) {
  checkUniqueNames(checks, "symbol", checks.plan.symbols);
  for (const auto &symbol : checks.plan.symbols) {
    checks.groupSize("symbol " + symbol->name, symbol->uniform_axes);
    if (symbol->capacity < 0)
      checks.report("symbol capacity is negative (symbol ", symbol->name, "): ", symbol->capacity,
                    "; at least 0");
  }
}

/// Ranks among which the token axis is cut; the padded count must divide so that every rank, and
/// every chunk of a zigzag order, holds the same number of rows.
int64_t checkTokens(PlanChecks &checks) {
  const fb::PlanT &plan = checks.plan;
  int64_t ranks = checks.groupSize("token_axes", plan.token_axes);
  checks.groupSize("batch_axes", plan.batch_axes);
  if (plan.tokens < 1 || plan.padded_tokens < plan.tokens || plan.max_documents < 1)
    checks.report("token counts do not fit (plan): tokens ", plan.tokens, ", padded_tokens ",
                  plan.padded_tokens, ", max_documents ", plan.max_documents,
                  "; at least one token and one document, padded_tokens >= tokens");
  const std::string &order = plan.token_order;
  if (order != "global" && order != "contiguous" && order != "zigzag")
    checks.report("unknown token order (plan): ", order, "; global, contiguous or zigzag");
  int64_t multiple = order == "zigzag" && ranks > 1 ? 2 * ranks : ranks;
  if (plan.padded_tokens % multiple != 0)
    checks.report("padded tokens do not divide (plan): ", plan.padded_tokens, " rows in ", order,
                  " order over ", ranks, " ranks; a multiple of ", multiple);
  return ranks;
}

void checkBuffer(PlanChecks &checks, const std::string &where, const fb::BufferT &buffer) {
  checks.location(where, buffer.location);
  checks.known(where, "buffer class", buffer.class_);
  int64_t slices = checks.groupSize(where, buffer.slice_axes);
  if (!checks.known(where, "dtype", buffer.dtype) ||
      !checks.inRange(where, "arena", buffer.arena, checks.plan.arenas.size()))
    return;
  std::optional<int64_t> bytes = PlanChecks::bytes(buffer);
  if (!bytes) {
    checks.report("buffer shape is not sensible (", where, "): ", shapeText(buffer.shape),
                  "; sizes are not negative and their product is below 2^62");
    return;
  }
  size_t align = dtypeBytes(DType(buffer.dtype));
  if (buffer.offset % align != 0 || buffer.slice_stride % align != 0)
    checks.report("buffer is not aligned (", where, "): offset ", buffer.offset, ", slice stride ",
                  buffer.slice_stride, "; multiples of ", align);
  // The last slice ends last. 128 bits, since none of the numbers can be trusted.
  unsigned __int128 end = buffer.offset;
  end += static_cast<unsigned __int128>(slices - 1) * buffer.slice_stride + uint64_t(*bytes);
  const fb::ArenaT &arena = *checks.plan.arenas[buffer.arena];
  if (end > arena.bytes)
    checks.report("buffer leaves its arena (", where, "): offset ", buffer.offset, ", ", slices,
                  " slices of ", *bytes, " bytes, stride ", buffer.slice_stride, "; arena ",
                  arena.name, " has ", arena.bytes, " bytes");
}

void checkMemory(PlanChecks &checks) {
  checkUniqueNames(checks, "arena", checks.plan.arenas);
  checkUniqueNames(checks, "buffer", checks.plan.buffers);
  uint64_t total = 0;
  for (const auto &arena : checks.plan.arenas) {
    checks.known("arena " + arena->name, "arena class", arena->class_);
    if (__builtin_add_overflow(total, arena->bytes, &total) || total > uint64_t(INT64_MAX)) {
      checks.report("arenas are too large (arena ", arena->name, "): ", arena->bytes,
                    " bytes; all together below 2^63");
      break;
    }
  }
  for (const auto &buffer : checks.plan.buffers)
    checkBuffer(checks, "buffer " + buffer->name, *buffer);
}

/// A parameter's view is where its group's buffer has it, so that one launch over the group reaches
/// it.
void checkPlaceInGroup(PlanChecks &checks, const std::string &where, const fb::BufferT *whole,
                       const fb::BufferT *view, uint64_t elementOffset) {
  if (!whole || !view || !checks.known(where, "dtype", view->dtype))
    return;
  unsigned __int128 place = whole->offset;
  place += static_cast<unsigned __int128>(elementOffset) * dtypeBytes(DType(view->dtype));
  if (view->arena != whole->arena || view->dtype != whole->dtype || view->offset != place)
    checks.report("parameter is not at its place in its group (", where, "): buffer ", view->name,
                  " at offset ", view->offset, "; ", elementOffset, " elements after the start of ",
                  whole->name);
}

/// Elements of one rank's part of a parameter; nothing after a report.
std::optional<int64_t> localElements(PlanChecks &checks, const std::string &where,
                                     const fb::ModelParameterT &parameter) {
  if (!parameter.dimensions.empty() &&
      parameter.dimensions.size() != parameter.global_shape.size()) {
    checks.report("dimensions do not match the shape (", where, "): ", parameter.dimensions.size(),
                  " for shape ", shapeText(parameter.global_shape), "; none or one for each");
    return std::nullopt;
  }
  std::vector<int64_t> local = parameter.global_shape;
  for (size_t i = 0; i < parameter.dimensions.size(); ++i) {
    int64_t parts = checks.groupSize(where, parameter.dimensions[i]->axes),
            pad = parameter.dimensions[i]->pad, padded;
    if (pad < 0 || __builtin_add_overflow(local[i], pad, &padded) || padded % parts != 0) {
      checks.report("parameter cannot be cut (", where, "): dimension ", i, " has ", local[i],
                    " + ", pad, " elements for ", parts, " ranks; a multiple of ", parts);
      return std::nullopt;
    }
    local[i] = padded / parts;
  }
  std::optional<int64_t> elements = PlanChecks::elements(local);
  if (!elements)
    checks.report("parameter shape is not sensible (", where,
                  "): ", shapeText(parameter.global_shape),
                  "; sizes are not negative and their product is below 2^62");
  return elements;
}

void checkParameter(PlanChecks &checks, const fb::ModelParameterT &parameter) {
  std::string where = "parameter " + parameter.name;
  checks.location(where, parameter.location);
  std::optional<int64_t> elements = localElements(checks, where, parameter);
  const fb::BufferT *copy = checks.buffer(where, parameter.buffer);
  checks.wantElements(where, copy, elements);
  if (!checks.inRange(where, "group", parameter.group, checks.plan.groups.size()) || !elements)
    return;
  const fb::GroupT &group = *checks.plan.groups[parameter.group];
  if (uint64_t(*elements) > group.elements ||
      parameter.element_offset > group.elements - uint64_t(*elements))
    checks.report("parameter leaves its group (", where, "): ", *elements, " elements from ",
                  parameter.element_offset, "; group ", group.name, " has ", group.elements);
  if (group.parameter_buffer < checks.plan.buffers.size())
    checkPlaceInGroup(checks, where, checks.plan.buffers[group.parameter_buffer].get(), copy,
                      parameter.element_offset);
  if (!group.trainable)
    return;
  const fb::BufferT *gradient = checks.buffer(where, parameter.gradient);
  checks.wantElements(where, gradient, elements);
  if (group.gradient_buffer < checks.plan.buffers.size())
    checkPlaceInGroup(checks, where, checks.plan.buffers[group.gradient_buffer].get(), gradient,
                      parameter.element_offset);
}

void checkParameters(PlanChecks &checks) {
  std::set<std::string> seen;
  for (const auto &parameter : checks.plan.parameters) {
    std::vector<std::string> names = parameter->aliases;
    names.push_back(parameter->name);
    for (const std::string &name : names)
      if (name.empty() || !seen.insert(name).second)
        checks.report("checkpoint name is empty or used twice (parameter ", parameter->name,
                      "): \"", name, "\"; every tensor has its own name");
    checkParameter(checks, *parameter);
  }
}

void checkGroup(PlanChecks &checks, const fb::GroupT &group) {
  std::string where = "group " + group.name;
  int64_t ranks = checks.groupSize(where, group.reduce_axes);
  checks.known(where, "dtype", group.dtype);
  if (group.elements > uint64_t(INT64_MAX) || int64_t(group.elements) % ranks != 0) {
    checks.report("group cannot be cut (", where, "): ", group.elements, " elements for ", ranks,
                  " ranks; a multiple of ", ranks);
    return;
  }
  int64_t whole = int64_t(group.elements), slice = whole / ranks;
  checks.wantElements(where, checks.buffer(where, group.parameter_buffer), whole);
  if (!group.trainable)
    return;
  checks.wantElements(where, checks.buffer(where, group.parameter_slice), slice);
  checks.wantElements(where, checks.buffer(where, group.gradient_buffer), whole);
  checks.wantElements(where, checks.buffer(where, group.gradient_slice), slice);
  for (uint32_t moment : {group.exp_avg, group.exp_avg_sq}) {
    const fb::BufferT *buffer = checks.buffer(where, moment);
    checks.wantElements(where, buffer, slice);
    if (buffer && buffer->dtype != fb::DType::F32)
      checks.report("moment has the wrong dtype (", where, "): buffer ", buffer->name, "; f32");
  }
}

void checkTable(PlanChecks &checks, const fb::TableT &table, int64_t tokenRanks) {
  std::string where = "table " + table.kind;
  auto kind =
      std::find_if(std::begin(kTableKinds), std::end(kTableKinds),
                   [&](const TableKind &candidate) { return table.kind == candidate.name; });
  if (kind == std::end(kTableKinds)) {
    std::string names;
    for (const TableKind &candidate : kTableKinds)
      names += concat(names.empty() ? "" : ", ", candidate.name);
    checks.report("unknown table (", where, "); one of ", names);
    return;
  }
  const fb::BufferT *buffer = checks.buffer(where, table.buffer);
  if (!buffer)
    return;
  const std::vector<int64_t> &shape = buffer->shape;
  int64_t rows = table.whole ? checks.plan.padded_tokens : checks.plan.padded_tokens / tokenRanks;
  if (buffer->dtype != kind->dtype || int64_t(shape.size()) != kind->rank ||
      (kind->last && shape.back() != kind->last) ||
      (kind->row_of_tokens && shape.front() != rows)) {
    std::string wanted = kind->row_of_tokens ? concat(rows) : "N";
    if (kind->rank == 2)
      wanted += kind->last ? concat(", ", kind->last) : std::string(", N");
    else if (kind->last)
      wanted = concat(kind->last);
    checks.report("table has the wrong buffer (", where, "): ", fb::EnumNameDType(buffer->dtype),
                  shapeText(shape), "; ", fb::EnumNameDType(kind->dtype), "[", wanted, "]");
  }
}

void checkKernel(PlanChecks &checks, const fb::KernelT &kernel) {
  std::string where = "kernel " + kernel.name;
  const KernelSignature *signature = findKernel(kernel.name);
  if (!signature) {
    std::string names;
    for (const std::string &name : kernelNames())
      names += (names.empty() ? "" : ", ") + name;
    checks.report("unknown kernel (", where, "); this build has ", names);
    return;
  }
  if (kernel.signature_hash != signature->hash)
    checks.report("kernel signature differs (", where, "): the plan has ", std::hex, std::showbase,
                  kernel.signature_hash, ", this build has ", signature->hash,
                  "; re-run the compiler of this installation");
  if (kernel.name != "row_kernel")
    return;
  if (kernel.symbol.empty())
    checks.report("generated kernel has no symbol (", where,
                  "); the name of a function in its blob");
  where += " " + kernel.symbol;
  checks.inRange(where, "blob", kernel.blob, checks.plan.blobs.size());
  if (kernel.body)
    checkRowBody(checks, where, *kernel.body);
  else
    checks.report("generated kernel has no body (", where,
                  "); the reference backend interprets it");
}

} // namespace

int64_t PlanChecks::groupSize(const std::string &where, const std::vector<std::string> &axes) {
  int64_t ranks = 1;
  std::set<std::string> seen;
  for (const std::string &name : axes) {
    auto axis = std::find_if(plan.mesh.begin(), plan.mesh.end(),
                             [&](const auto &candidate) { return candidate->name == name; });
    if (axis == plan.mesh.end()) {
      std::string names;
      for (const auto &candidate : plan.mesh)
        names += (names.empty() ? "" : ", ") + candidate->name;
      report("unknown mesh axis (", where, "): ", name, "; the mesh has ", names);
    } else if (!seen.insert(name).second) {
      report("mesh axis is named twice (", where, "): ", name, "; once");
    } else {
      // A mesh beyond the limit is reported by itself; here it must only not overflow.
      ranks = std::min(kMaxRanks, ranks * std::clamp<int64_t>((*axis)->size, 1, kMaxRanks));
    }
  }
  return ranks;
}

std::optional<int64_t> PlanChecks::elements(const std::vector<int64_t> &shape) {
  int64_t product = 1;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(product, size, &product) || product > (int64_t(1) << 62))
      return std::nullopt;
  return product;
}

std::optional<int64_t> PlanChecks::bytes(const fb::BufferT &buffer) {
  if (uint64_t(buffer.dtype) > uint64_t(fb::DType::MAX))
    return std::nullopt;
  std::vector<int64_t> sizes = buffer.shape;
  sizes.push_back(int64_t(dtypeBytes(DType(buffer.dtype))));
  return elements(sizes);
}

void PlanChecks::wantElements(const std::string &where, const fb::BufferT *buffer,
                              std::optional<int64_t> wanted) {
  std::optional<int64_t> have = buffer ? elements(buffer->shape) : std::nullopt;
  if (have && wanted && *have != *wanted)
    report("buffer has the wrong size (", where, "): ", buffer->name, " has shape ",
           shapeText(buffer->shape), "; ", *wanted, " elements");
}

std::string sft::shapeText(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += concat(i ? ", " : "", shape[i]);
  return text + "]";
}

std::vector<std::string> sft::verifyPlan(const fb::PlanT &plan) {
  PlanChecks checks(plan);
  if (!plan.target)
    checks.report("plan has no target (plan); name the machine it was compiled for");
  checkMesh(checks);
  checkSymbols(checks);
  int64_t tokenRanks = checkTokens(checks);
  checkMemory(checks);
  checkParameters(checks);
  for (const auto &group : plan.groups)
    checkGroup(checks, *group);
  for (const auto &table : plan.tables)
    checkTable(checks, *table, tokenRanks);
  for (const auto &kernel : plan.kernels)
    checkKernel(checks, *kernel);
  for (const auto &remark : plan.remarks)
    checks.location("remark " + remark->pass_, remark->location);
  checkPrograms(checks);
  return std::move(checks.problems);
}
