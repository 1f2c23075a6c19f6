// Generated row kernels against the plain interpreter of the same regions, on every kind of access
// and many widths.

#include "passes/codegen/RowKernel.h"
#include "passes/Passes.h"
#include "passes/codegen/CompileCpu.h"
#include "passes/codegen/GenerateRowKernels.h"
#include "passes/fuse/FormRowKernels.h"
#include "runtime/backends/reference/Reference.h"
#include "runtime/plan/KernelSignature.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace sftc;

namespace {

constexpr int64_t kMostRows = 130; // two blocks and a piece

//===----------------------------------------------------------------------===//
// Regions to compile
//===----------------------------------------------------------------------===//

struct Case {
  std::string name, function;
  double tolerance = 4e-7; ///< of the largest value of the row (of the result, for other results)
};

/// `sft.OP arguments : (types) -> results` in a function of those arguments.
Case rowOp(std::string name, std::string op, std::vector<std::string> types, std::string results,
           double tolerance = 4e-7, std::string attributes = "") {
  std::string declared, used, listed;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string comma = i ? ", " : "", argument = "%a" + std::to_string(i);
    declared += comma + argument + ": " + types[i];
    used += comma + argument;
    listed += comma + types[i];
  }
  size_t resultCount = 1 + size_t(std::count(results.begin(), results.end(), ','));
  return {name,
          "func.func private @f(" + declared + ") {\n  %r:" + std::to_string(resultCount) +
              " = sft." + op + " " + used + " " + attributes + " : (" + listed + ") -> (" +
              results + ")\n  return\n}\n",
          tolerance};
}

std::vector<Case> allCases() {
  constexpr double exponential = 2e-6;
  const std::string rows = std::to_string(kMostRows), t = "tensor<" + rows + "xf32>",
                    ti = "tensor<" + rows + "xi32>", one = "tensor<1xi32>",
                    scalars = "tensor<16xf32>", scale = "tensor<1xf32>";
  std::vector<Case> cases;
  auto add = [&](Case made) { cases.push_back(std::move(made)); };
  auto named = [](std::string op, int64_t width) { return op + "_" + std::to_string(width); };
  for (int64_t w : {1, 16, 33, 576, 577, 1536, 49152}) {
    std::string width = std::to_string(w), m = "tensor<" + rows + "x" + width + "xf32>",
                v = "tensor<" + width + "xf32>";
    add(rowOp(named("row_max", w), "row_max", {m}, t));
    add(rowOp(named("exp_sum", w), "exp_sum", {m, t}, t, exponential));
    add(rowOp(named("pick", w), "pick", {m, ti}, t));
    add(rowOp(named("cross_entropy_grad", w), "cross_entropy_grad", {t, m, t, t, ti, one}, m,
              exponential));
    add(rowOp(named("embedding", w), "embedding", {ti, "tensor<11x" + width + "xf32>", one}, m));
    if (w > 2000)
      continue;
    add(rowOp(named("pick_offset", w), "pick", {m, ti, one}, t));
    add(rowOp(named("add", w), "add", {m, m}, m));
    add(rowOp(named("silu_gate", w), "silu_gate", {m, m}, m, exponential));
    add(rowOp(named("silu_gate_grad", w), "silu_gate_grad", {m, m, m}, m + ", " + m, exponential));
    add(rowOp(named("rms_norm", w), "rms_norm", {m, v}, m + ", " + t, 4e-7,
              "{epsilon = 1.0e-5 : f64}"));
    add(rowOp(named("rms_norm_grad", w), "rms_norm_grad", {m, m, v, t}, m + ", " + v, 1e-6));
    add(rowOp(named("column_sum", w), "column_sum", {m}, v, 1e-6));
  }
  add(rowOp("token_loss", "token_loss", {t, t, t, ti}, t));
  for (auto [heads, size] : {std::pair{9, 64}, {3, 96}, {5, 16}, {7, 6}, {1, 128}}) {
    std::string m = "tensor<" + rows + "x" + std::to_string(heads * size) + "xf32>",
                table = "tensor<50x" + std::to_string(size) + "xf32>";
    add(rowOp(named("rotary", size), "rotary", {m, ti, table, table}, m));
    add(rowOp(named("rotary_inverse", size), "rotary", {m, ti, table, table}, m, 4e-7,
              "{inverse}"));
  }
  std::string g = "tensor<" + rows + "x256xf32>";
  add(rowOp("adamw", "adamw", {g, g, g, g, scale, scalars}, g + ", " + g + ", " + g, 1e-6,
            "{decay}"));
  add(rowOp("adamw_plain", "adamw", {g, g, g, g, scale, scalars}, g + ", " + g + ", " + g, 1e-6));
  add(rowOp("sgd", "sgd", {g, g, scale, scalars}, g));
  add(rowOp("clip_scale", "clip_scale", {scalars, scale, scale}, scale + ", " + scale));
  // bf16 in memory, f32 inside: off by one rounding where the f32 values differ in their last bit.
  std::string mb = "tensor<" + rows + "x577xbf16>", vb = "tensor<577xbf16>";
  add(rowOp("add_bf16", "add", {mb, mb}, mb, 0));
  add(rowOp("rms_norm_bf16", "rms_norm", {mb, vb}, mb + ", " + t, 4e-3,
            "{epsilon = 1.0e-5 : f64}"));
  add(rowOp("embedding_bf16", "embedding", {ti, "tensor<11x577xbf16>"}, mb, 0));
  return cases;
}

/// A context with one sft.fused, named, for each case.
class Regions {
public:
  Regions() {
    DialectRegistry registry;
    registry.insert<SftDialect>();
    registerCodegenDialects(registry);
    context.appendDialectRegistry(registry);
    context.disableMultithreading();
    context.loadAllAvailableDialects();
  }

  FusedOp add(const std::string &name, const std::string &function) {
    modules.push_back(parseSourceString<ModuleOp>(function, &context));
    EXPECT_TRUE(modules.back()) << name << "\n" << function;
    RowBody op;
    modules.back()->walk([&](RowBody found) { op = found; });
    OpBuilder builder(op);
    FusedOp fused = buildFused(builder, op);
    fused.setKernel(name);
    EXPECT_TRUE(succeeded(mlir::verify(*modules.back()))) << name;
    return fused;
  }

  MLIRContext context;

private:
  std::vector<OwningOpRef<ModuleOp>> modules;
};

//===----------------------------------------------------------------------===//
// Running them
//===----------------------------------------------------------------------===//

class SharedObject {
public:
  explicit SharedObject(ArrayRef<uint8_t> bytes) {
    int file = memfd_create("row_kernels", MFD_CLOEXEC);
    EXPECT_EQ(write(file, bytes.data(), bytes.size()), ssize_t(bytes.size()));
    handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_TRUE(handle) << dlerror();
    close(file);
  }
  ~SharedObject() { dlclose(handle); }

  sft::RowFunction function(const std::string &name) const {
    auto found = reinterpret_cast<sft::RowFunction>(dlsym(handle, name.c_str()));
    EXPECT_TRUE(found) << name;
    return found;
  }

private:
  void *handle;
};

/// Memory of one operand between two guard zones of NaN bits, aligned as little as allowed.
class Guarded {
public:
  Guarded(size_t bytes, size_t elementBytes)
      : bytes(bytes), storage(bytes + 2 * kGuard + elementBytes, 0xff), skew(elementBytes) {}
  uint8_t *data() { return storage.data() + kGuard + skew; }
  template <typename T> T *as() { return reinterpret_cast<T *>(data()); }
  bool guardsIntact() const {
    auto untouched = [](uint8_t byte) { return byte == 0xff; };
    return std::all_of(storage.begin(), storage.begin() + kGuard + skew, untouched) &&
           std::all_of(storage.begin() + kGuard + skew + bytes, storage.end(), untouched);
  }

  size_t bytes;

private:
  static constexpr size_t kGuard = 256;
  std::vector<uint8_t> storage;
  size_t skew;
};

/// One launch: the region's body, and memory for its operands over a number of rows.
class Launch {
public:
  Launch(FusedOp op, int64_t rows, unsigned seed) : kernel(op), rows(rows) {
    FailureOr<sft::fb::RowBodyT> made = toRowBody(op);
    EXPECT_TRUE(succeeded(made));
    body = std::move(*made);
    std::mt19937 random(seed);
    for (size_t i = 0; i < body.operands.size(); ++i) {
      const sft::fb::RowOperandT &operand = *body.operands[i];
      auto dtype = sft::DType(operand.dtype);
      int64_t elements = rows * operand.width;
      if (operand.access == sft::fb::RowAccess::Column ||
          operand.access == sft::fb::RowAccess::ColumnSum)
        elements = operand.width;
      else if (operand.access == sft::fb::RowAccess::Gathered)
        elements = operand.rows * operand.width;
      else if (operand.access == sft::fb::RowAccess::Uniform)
        elements = tensorType(op.getInputs()[i]).getDimSize(0);
      // The same value with several accesses is one piece of memory.
      size_t same = i;
      for (size_t j = 0; j < i && i < op.getInputs().size(); ++j)
        if (op.getInputs()[j] == op.getInputs()[i])
          same = std::min(same, j);
      if (same < i) {
        memory.push_back(memory[same]);
      } else {
        memory.push_back(std::make_shared<Guarded>(size_t(elements) * sft::dtypeBytes(dtype),
                                                   sft::dtypeBytes(dtype)));
        if (!operand.output)
          fill(*memory.back(), operand, elements, random);
      }
      tensors.push_back({memory.back()->data(), dtype, {elements}});
    }
  }

  sft::fb::RowOperandT &operand(size_t i) { return *body.operands[i]; }
  size_t size() const { return body.operands.size(); }

  void interpret() {
    sft::KernelCall call;
    call.kernel = "row_kernel";
    call.operands = tensors;
    call.integers = {{"rows", rows}, {"block_rows", sft::kRowBlock}, {"column_sums", 0}};
    call.row_body = &body;
    sft::KernelRegistry registry;
    sft::reference::registerRows(registry);
    const sft::KernelEntry *entry = registry.find("row_kernel");
    entry->check(call);
    sft::WorkerPool pool(1);
    entry->bind(call)->run(pool);
  }

  /// Block after block, as the runtime does it.
  void run(sft::RowFunction function) {
    std::vector<std::vector<double>> sums(size());
    std::vector<Guarded> partials;
    std::vector<void *> pointers;
    partials.reserve(size());
    for (size_t i = 0; i < size(); ++i) {
      pointers.push_back(memory[i]->data());
      if (operand(i).access == sft::fb::RowAccess::ColumnSum) {
        sums[i].assign(size_t(operand(i).width), 0.0);
        partials.emplace_back(memory[i]->bytes, 4);
        pointers.back() = partials.back().data();
      }
    }
    for (int64_t begin = 0; begin == 0 || begin < rows; begin += sft::kRowBlock) {
      for (Guarded &partial : partials)
        std::memset(partial.data(), 0xff, partial.bytes);
      function(pointers.data(), begin, std::min(rows, begin + sft::kRowBlock));
      for (size_t i = 0; i < size(); ++i)
        for (size_t c = 0; c < sums[i].size(); ++c)
          sums[i][c] += static_cast<float *>(pointers[i])[c];
    }
    for (const Guarded &partial : partials)
      EXPECT_TRUE(partial.guardsIntact());
    for (size_t i = 0; i < size(); ++i)
      for (size_t c = 0; c < sums[i].size(); ++c)
        memory[i]->as<float>()[c] = float(sums[i][c]);
  }

  /// Lets result `output` lie where input `input` lies.
  void share(size_t output, size_t input) {
    memory[output] = memory[input];
    tensors[output].data = memory[output]->data();
  }
  bool sameBytes(Launch &other, size_t i) {
    return std::memcmp(memory[i]->data(), other.memory[i]->data(), memory[i]->bytes) == 0;
  }

  /// Largest difference from `expected` relative to its row's largest value; to that of all rows
  /// where a row is short, since its few values may all be what is left of a cancellation.
  double worstError(Launch &expected, size_t i) {
    bool row = operand(i).access == sft::fb::RowAccess::Row && operand(i).width >= 16;
    int64_t elements = tensors[i].elements(),
            group = row ? operand(i).width : std::max<int64_t>(elements, 1);
    double worst = 0;
    for (int64_t begin = 0; begin < elements; begin += group) {
      double scale = 0, difference = 0;
      for (int64_t e = begin; e < begin + group; ++e) {
        double want = sft::reference::load(expected.tensors[i], e),
               got = sft::reference::load(tensors[i], e);
        scale = std::max(scale, std::abs(want));
        if (std::isnan(got) != std::isnan(want))
          return std::numeric_limits<double>::infinity();
        if (!std::isnan(want))
          difference = std::max(difference, std::abs(got - want));
      }
      worst = std::max(worst, difference / std::max(scale, 1e-30));
    }
    return worst;
  }

  RowKernel kernel;
  sft::fb::RowBodyT body;
  std::vector<std::shared_ptr<Guarded>> memory;
  std::vector<sft::TensorRef> tensors;
  int64_t rows;

private:
  /// Integers reach over both ends of what they index; floats that are not row data (sums, second
  /// moments, factors) are positive.
  void fill(Guarded &to, const sft::fb::RowOperandT &operand, int64_t elements,
            std::mt19937 &random) {
    using sft::fb::RowAccess;
    int64_t reach = kernel.getWidth();
    for (const auto &other : body.operands)
      reach = other->access == RowAccess::Gathered ? other->rows : reach;
    std::uniform_int_distribution<int32_t> index(-2, int32_t(reach) + 4);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> positive(0.1f, 0.9f);
    bool moment = kernel.getOp()->getAttrOfType<StringAttr>("sft.name").getValue() == "adamw" &&
                  &operand == body.operands[3].get();
    bool signedValues =
        !moment && operand.access != RowAccess::Uniform && operand.access != RowAccess::Scalar;
    for (int64_t e = 0; e < elements; ++e) {
      if (operand.dtype == sft::fb::DType::I32) {
        to.as<int32_t>()[e] = operand.access == RowAccess::Uniform ? 3 : index(random);
        continue;
      }
      float value = signedValues ? normal(random) : positive(random);
      if (operand.dtype == sft::fb::DType::BF16)
        to.as<uint16_t>()[e] = sft::floatToBf16(value);
      else
        to.as<float>()[e] = value;
    }
  }
};

/// All cases compiled for one CPU, once.
struct Compiled {
  explicit Compiled(const std::string &cpu) : cases(allCases()) {
    for (const Case &entry : cases)
      ops.push_back(regions.add(entry.name, entry.function));
    target = *resolveCpuTarget(cpu, UnknownLoc::get(&regions.context));
    FailureOr<GeneratedKernels> made = compileRowKernels(ops, target);
    EXPECT_TRUE(succeeded(made));
    kernels = std::move(*made);
    object = std::make_unique<SharedObject>(kernels.sharedObject);
  }

  static Compiled &get(const std::string &cpu) {
    static std::map<std::string, std::unique_ptr<Compiled>> made;
    auto &entry = made[cpu];
    if (!entry)
      entry = std::make_unique<Compiled>(cpu);
    return *entry;
  }

  Regions regions;
  std::vector<Case> cases;
  std::vector<FusedOp> ops;
  CpuTarget target;
  GeneratedKernels kernels;
  std::unique_ptr<SharedObject> object;
};

class RowKernelTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    std::string cpu = GetParam();
    if (cpu == "skylake-avx512" && !__builtin_cpu_supports("x86-64-v4"))
      GTEST_SKIP() << "this machine has no AVX-512";
    if (!__builtin_cpu_supports("x86-64-v3"))
      GTEST_SKIP() << "this machine has no AVX2";
  }
  Compiled &compiled() { return Compiled::get(GetParam()); }
};

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

TEST_P(RowKernelTest, EqualsTheInterpreter) {
  Compiled &all = compiled();
  size_t compared = 0;
  double worstShare = 0;
  for (size_t c = 0; c < all.cases.size(); ++c) {
    const Case &entry = all.cases[c];
    sft::RowFunction function = all.object->function(entry.name);
    for (int64_t rows : {int64_t(0), int64_t(1), int64_t(7), kMostRows}) {
      if (entry.name == "clip_scale" && rows > 1)
        continue;
      Launch generated(all.ops[c], rows, unsigned(c)), expected(all.ops[c], rows, unsigned(c));
      std::vector<std::vector<uint8_t>> inputs;
      for (auto &memory : generated.memory)
        inputs.emplace_back(memory->data(), memory->data() + memory->bytes);
      generated.run(function);
      expected.interpret();
      for (size_t i = 0; i < generated.size(); ++i) {
        EXPECT_TRUE(generated.memory[i]->guardsIntact())
            << entry.name << " writes outside operand " << i;
        if (!generated.operand(i).output) {
          EXPECT_TRUE(std::equal(inputs[i].begin(), inputs[i].end(), generated.memory[i]->data()))
              << entry.name << " writes its input " << i;
          continue;
        }
        double error = generated.worstError(expected, i);
        EXPECT_LE(error, entry.tolerance) << entry.name << " rows " << rows << " operand " << i;
        worstShare = std::max(worstShare, entry.tolerance > 0 ? error / entry.tolerance : 0);
        ++compared;
      }
    }
  }
  std::printf("%zu results compared, worst error %.0f %% of its tolerance\n", compared,
              100 * worstShare);
}

/// A result may lie where an operand lies that is only read as `row`.
TEST_P(RowKernelTest, InPlaceGivesTheSameBits) {
  Compiled &all = compiled();
  size_t shared = 0;
  for (size_t c = 0; c < all.cases.size(); ++c) {
    FusedOp op = all.ops[c];
    sft::RowFunction function = all.object->function(all.cases[c].name);
    for (size_t output = op.getInputs().size(); output < op.getInputs().size() + op.getNumResults();
         ++output)
      for (size_t input = 0; input < op.getInputs().size(); ++input) {
        bool onlyRow = true;
        for (size_t other = 0; other < op.getInputs().size(); ++other)
          if (op.getInputs()[other] == op.getInputs()[input])
            onlyRow &= op.getInputAccess(other).getKind() == AccessKind::Row;
        size_t result = output - op.getInputs().size();
        if (!onlyRow || op.getOutputAccess(result).getKind() != AccessKind::Row ||
            op.getResult(result).getType() != op.getInputs()[input].getType())
          continue;
        Launch apart(op, 67, unsigned(c)), inPlace(op, 67, unsigned(c));
        inPlace.share(output, input);
        apart.run(function);
        inPlace.run(function);
        for (size_t i = op.getInputs().size(); i < apart.size(); ++i)
          EXPECT_TRUE(inPlace.sameBytes(apart, i))
              << all.cases[c].name << ": result " << i << ", " << output << " over " << input;
        ++shared;
      }
  }
  EXPECT_GT(shared, 30u);
}

/// Rows are independent: whole range, or one row at a time.
TEST_P(RowKernelTest, AnyRowRangeGivesTheSameBits) {
  Compiled &all = compiled();
  for (size_t c = 0; c < all.cases.size(); ++c) {
    if (all.ops[c].getWidth() > 2000)
      continue;
    sft::RowFunction function = all.object->function(all.cases[c].name);
    Launch whole(all.ops[c], 9, unsigned(c)), pieces(all.ops[c], 9, unsigned(c));
    std::vector<void *> wholePointers, piecePointers;
    bool columnSums = false;
    for (size_t i = 0; i < whole.size(); ++i) {
      wholePointers.push_back(whole.memory[i]->data());
      piecePointers.push_back(pieces.memory[i]->data());
      columnSums |= whole.operand(i).access == sft::fb::RowAccess::ColumnSum;
    }
    if (columnSums || all.cases[c].name == "clip_scale")
      continue;
    function(wholePointers.data(), 0, 9);
    for (int64_t row : {3, 0, 8, 7, 1, 2, 6, 5, 4})
      function(piecePointers.data(), row, row + 1);
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_TRUE(whole.sameBytes(pieces, i)) << all.cases[c].name;
  }
}

TEST_P(RowKernelTest, RowsOutsideATableAreZeros) {
  Compiled &all = compiled();
  for (size_t c = 0; c < all.cases.size(); ++c) {
    if (all.cases[c].name != "embedding_577")
      continue;
    Launch launch(all.ops[c], 6, 1);
    const int32_t tokens[] = {2,
                              3 + 10,
                              3 + 11,
                              -1,
                              std::numeric_limits<int32_t>::min(),
                              std::numeric_limits<int32_t>::max()};
    std::memcpy(launch.memory[0]->data(), tokens, sizeof tokens);
    // Whatever lies in the table, it is not what an outside row reads.
    std::memset(launch.memory[1]->data(), 0xff, 577 * 4);
    launch.run(all.object->function(all.cases[c].name));
    const float *result = launch.memory[3]->as<float>(), *table = launch.memory[1]->as<float>();
    for (int64_t row = 0; row < 6; ++row)
      for (int64_t column = 0; column < 577; ++column)
        EXPECT_EQ(result[row * 577 + column], row == 1 ? table[10 * 577 + column] : 0.0f);
  }
}

TEST_P(RowKernelTest, RowMaximumKeepsInfinitiesAndNan) {
  Compiled &all = compiled();
  for (size_t c = 0; c < all.cases.size(); ++c) {
    if (all.cases[c].name != "row_max_33")
      continue;
    Launch launch(all.ops[c], 4, 1);
    float *rows = launch.memory[0]->as<float>();
    constexpr float infinity = std::numeric_limits<float>::infinity();
    std::fill_n(rows, 33, -infinity);
    std::fill_n(rows + 33, 33, -infinity);
    rows[33 + 32] = -7.5f;
    rows[2 * 33 + 5] = infinity;
    rows[3 * 33 + 17] = NAN;
    launch.run(all.object->function(all.cases[c].name));
    const float *result = launch.memory[1]->as<float>();
    EXPECT_EQ(result[0], -infinity);
    EXPECT_EQ(result[1], -7.5f);
    EXPECT_EQ(result[2], infinity);
    EXPECT_TRUE(std::isnan(result[3]));
  }
}

TEST_P(RowKernelTest, ExponentialReachesItsLimits) {
  Compiled &all = compiled();
  for (size_t c = 0; c < all.cases.size(); ++c) {
    if (all.cases[c].name != "exp_sum_1")
      continue;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const float inputs[] = {0, -infinity, -1000, -100, -87, 88, 89, 1000, infinity, NAN};
    constexpr int64_t rows = std::size(inputs);
    Launch launch(all.ops[c], rows, 1);
    std::memcpy(launch.memory[0]->data(), inputs, sizeof inputs);
    std::memset(launch.memory[1]->data(), 0, rows * 4);
    launch.run(all.object->function(all.cases[c].name));
    for (int64_t row = 0; row < rows; ++row) {
      float result = launch.memory[2]->as<float>()[row], want = std::exp(inputs[row]);
      if (std::isfinite(want))
        EXPECT_NEAR(result, want, 4e-7 * want + 1e-37) << inputs[row];
      else
        EXPECT_TRUE(std::isnan(want) ? std::isnan(result) : result == want)
            << inputs[row] << " gives " << result;
    }
  }
}

/// Against the formula in Optimizer.td, in double.
TEST_P(RowKernelTest, AdamWEqualsItsFormulaInDouble) {
  Compiled &all = compiled();
  for (size_t c = 0; c < all.cases.size(); ++c) {
    if (all.cases[c].name != "adamw")
      continue;
    Launch launch(all.ops[c], 100, 5);
    const float values[] = {
        1e-3f, 0.9f, 0.999f,   1e-8f,     0.01f, 1 - 0.9f * 0.9f, 1 - 0.999f * 0.999f,
        1,     0,    1 - 0.9f, 1 - 0.999f};
    // Operand 4 is the clip scale, 5 and after are elements of the scalars.
    std::memcpy(launch.memory[5]->data(), values, sizeof values);
    const double scale = *launch.memory[4]->as<float>();
    std::vector<std::vector<float>> in;
    for (size_t i = 0; i < 4; ++i)
      in.emplace_back(launch.memory[i]->as<float>(), launch.memory[i]->as<float>() + 100 * 256);
    launch.run(all.object->function(all.cases[c].name));
    size_t first = launch.kernel.getNumInputs();
    double worst = 0;
    for (size_t e = 0; e < 100 * 256; ++e) {
      double g = in[1][e] * scale, p = in[0][e] * (1 - double(values[0]) * values[4]);
      double m = double(values[1]) * in[2][e] + double(values[9]) * g;
      double v = double(values[2]) * in[3][e] + double(values[10]) * g * g;
      p -= double(values[0]) / values[5] * m /
           (std::sqrt(v) / std::sqrt(double(values[6])) + values[3]);
      for (auto [operand, want] : {std::pair{first, p}, {first + 1, m}, {first + 2, v}})
        worst = std::max(worst, std::abs(launch.memory[operand]->as<float>()[e] - want) /
                                    std::max(1.0, std::abs(want)));
    }
    EXPECT_LE(worst, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, RowKernelTest,
                         testing::Values("native", "x86-64-v3", "skylake-avx512"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

//===----------------------------------------------------------------------===//
// The compiler around them
//===----------------------------------------------------------------------===//

/// Collects what is reported while it lives.
class Diagnostics {
public:
  explicit Diagnostics(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          text += diagnostic.str() + "\n";
          for (Diagnostic &note : diagnostic.getNotes())
            text += note.str() + "\n";
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

TEST(RowKernelCompileTest, SameInputGivesSameBytes) {
  auto compile = [] {
    Regions regions;
    std::vector<FusedOp> ops;
    for (const Case &entry : allCases())
      if (entry.name.find("_577") != std::string::npos)
        ops.push_back(regions.add(entry.name, entry.function));
    return compileRowKernels(ops,
                             *resolveCpuTarget("skylake-avx512", UnknownLoc::get(&regions.context)))
        ->sharedObject;
  };
  std::vector<uint8_t> first = compile();
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, compile());
}

TEST(RowKernelCompileTest, TargetsListWhatTheirCodeNeeds) {
  MLIRContext context;
  Location location = UnknownLoc::get(&context);
  using Features = std::vector<std::string>;
  EXPECT_EQ(resolveCpuTarget("x86-64-v3", location)->features, (Features{"avx2", "fma"}));
  EXPECT_EQ(resolveCpuTarget("znver2", location)->features, (Features{"avx2", "fma"}));
  EXPECT_EQ(resolveCpuTarget("skylake-avx512", location)->features,
            (Features{"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}));
  EXPECT_EQ(resolveCpuTarget("znver4", location)->features,
            (Features{"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16"}));
}

TEST(RowKernelCompileTest, UnfitTargetsAreErrorsWithTheNearestNames) {
  MLIRContext context;
  Diagnostics diagnostics(context);
  EXPECT_TRUE(failed(resolveCpuTarget("skylake-avx51", UnknownLoc::get(&context))));
  EXPECT_NE(diagnostics.text.find("unknown CPU 'skylake-avx51'"), std::string::npos)
      << diagnostics.text;
  EXPECT_NE(diagnostics.text.find("skylake-avx512"), std::string::npos) << diagnostics.text;
  EXPECT_TRUE(failed(resolveCpuTarget("x86-64-v2", UnknownLoc::get(&context))));
  EXPECT_NE(diagnostics.text.find("lacks avx2"), std::string::npos) << diagnostics.text;
}

/// A region by hand: `body` computes %r from %x.
std::string fusedByHand(const std::string &body, int64_t rows = 8, int64_t width = 24,
                        const std::string &name = "hand") {
  std::string type = "tensor<" + std::to_string(rows) + "x" + std::to_string(width) + "xf32>";
  return "func.func private @" + name + "(%a: " + type +
         ") {\n  %0 = sft.fused %a attributes {operand_access = [#sft.access<row>], " +
         "result_access = [#sft.access<row>], width = " + std::to_string(width) +
         " : i64, sft.name = \"" + name + "\"} : (" + type + ") -> " + type +
         " {\n  ^bb0(%x: f32):\n    " + body + "\n    sft.yield %r : f32\n  }\n  return\n}\n";
}

TEST(RowKernelCompileTest, OperationsThatCannotBeCompiledAreErrors) {
  Regions regions;
  Diagnostics diagnostics(regions.context);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(fusedByHand("%r = math.tan %x : f32"), &regions.context);
  ASSERT_TRUE(module) << diagnostics.text;
  FusedOp op;
  module->walk([&](FusedOp found) { op = found; });
  EXPECT_TRUE(failed(toRowBody(op)));
  EXPECT_NE(diagnostics.text.find("'math.tan'"), std::string::npos) << diagnostics.text;
  // It would be a call of libm, which the linker refuses.
  op.setKernel("hand");
  EXPECT_TRUE(failed(compileRowKernels({op}, *resolveCpuTarget("x86-64-v3", op.getLoc()))));
  EXPECT_NE(diagnostics.text.find("tan"), std::string::npos) << diagnostics.text;
  EXPECT_NE(diagnostics.text.find("cannot link the row kernels"), std::string::npos)
      << diagnostics.text;
}

TEST(RowKernelCompileTest, InterpreterFormHasEveryComparisonAndExtremum) {
  Regions regions;
  std::string body =
      "%z = arith.constant 0.25 : f32\n %c = arith.constant 7 : i32\n %j = sft.column_index : i32\n"
      "%gt = arith.cmpi sgt, %j, %c : i32\n %le = arith.cmpi sle, %j, %c : i32\n %ge = arith.cmpi "
      "sge, %j, %c : i32\n"
      "%b = arith.andi %le, %ge : i1\n %n = arith.minnumf %x, %z : f32\n %m = arith.maxnumf %n, %z "
      ": f32\n"
      "%f = arith.sitofp %j : i32 to f32\n %s = arith.select %gt, %f, %m : f32\n %t = arith.select "
      "%b, %x, %s : f32\n"
      "%u = arith.minimumf %t, %f : f32\n %v = math.absf %u : f32\n %w = math.rsqrt %f : f32\n %r "
      "= arith.addf %u, %w : f32";
  // absf is not used, but the interpreter's form keeps to what it knows.
  Diagnostics diagnostics(regions.context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(fusedByHand(body), &regions.context);
  ASSERT_TRUE(module) << diagnostics.text;
  FusedOp op;
  module->walk([&](FusedOp found) { op = found; });
  EXPECT_TRUE(failed(toRowBody(op)));
  EXPECT_NE(diagnostics.text.find("'math.absf'"), std::string::npos) << diagnostics.text;
  op.walk([](math::AbsFOp absolute) { absolute.erase(); });
  op.setKernel("hand");
  FailureOr<GeneratedKernels> kernels =
      compileRowKernels({op}, *resolveCpuTarget("native", op.getLoc()));
  ASSERT_TRUE(succeeded(kernels)) << diagnostics.text;
  SharedObject object(kernels->sharedObject);
  Launch generated(op, 8, 3), expected(op, 8, 3);
  generated.run(object.function("hand"));
  expected.interpret();
  EXPECT_LE(generated.worstError(expected, 1), 4e-7);
}

TEST(RowKernelPassTest, EqualRegionsShareOneKernelWhateverTheirRows) {
  Regions regions;
  std::string doubled = "%r = arith.addf %x, %x : f32", squared = "%r = arith.mulf %x, %x : f32";
  std::string text = fusedByHand(doubled, 8, 24, "one") + fusedByHand(doubled, 500, 24, "two") +
                     fusedByHand(doubled, 8, 25, "three") + fusedByHand(squared, 8, 24, "four");
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &regions.context);
  ASSERT_TRUE(module);
  PassManager passes(&regions.context);
  GenerateRowKernelsOptions options;
  options.targetCpu = "x86-64-v3";
  passes.addPass(createGenerateRowKernels(options));
  ASSERT_TRUE(succeeded(passes.run(*module)));
  std::vector<std::string> names;
  module->walk([&](FusedOp op) { names.push_back(op.getKernel()->str()); });
  EXPECT_EQ(names, (std::vector<std::string>{"rk_0_one", "rk_0_one", "rk_1_three", "rk_2_four"}));
  auto target = (*module)->getAttrOfType<DictionaryAttr>(kKernelTargetAttr);
  ASSERT_TRUE(target);
  EXPECT_EQ(target.getAs<StringAttr>("cpu").getValue(), "x86-64-v3");

  // The object is still there after a round trip as text.
  std::vector<uint8_t> bytes = getKernelObject(*module).vec();
  EXPECT_GT(bytes.size(), 500u);
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  module->print(stream); // the operator << leaves resources out
  Regions other;
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(printed, &other.context);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(getKernelObject(*parsed).vec(), bytes);
  EXPECT_TRUE(SharedObject(bytes).function("rk_2_four"));
}

} // namespace
