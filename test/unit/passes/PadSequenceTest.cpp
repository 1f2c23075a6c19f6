//===- PadSequenceTest.cpp - padding when several ops ask for different multiples -------------===//
//
// The dialect's own ops ask for cp or 2*cp. Here other ops of it get needs of their own, as an FP8 matmul will have.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace sftc;

namespace {

template <typename Op, int64_t Multiple>
struct Needs : public SequenceMultiple::ExternalModel<Needs<Op, Multiple>, Op> {
  void getSequenceMultiples(Operation *, const SequenceContext &context, SmallVectorImpl<SequenceNeed> &needs) const {
    needs.push_back({Multiple * context.token_ranks, "a test asks"});
  }
};

/// Pads `tokens` over cp ranks in zigzag order, with rms_norm asking for 3 rows a rank and add for 10.
struct Padded {
  int64_t rows = -1;
  size_t reasons = 0;
  std::string type;
};

Padded pad(int64_t tokens, int64_t cp, StringRef rule = "derived") {
  DialectRegistry registry;
  registry.insert<SftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  registry.addExtension(+[](MLIRContext *context, SftDialect *) {
    RmsNormOp::attachInterface<Needs<RmsNormOp, 3>>(*context);
    AddOp::attachInterface<Needs<AddOp, 10>>(*context);
  });
  MLIRContext context(registry);
  std::string source = "module attributes {sft.mesh = #sft.mesh<[\"cp\"], [" + std::to_string(cp) +
                       "]>, sft.token_axes = [\"cp\"], sft.token_order = \"zigzag\"} {\n"
                       "  func.func @train(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<?x8xf32> {\n"
                       "    %y, %r = sft.rms_norm %x, %w {epsilon = 1.0e-6} : (tensor<?x8xf32>, tensor<8xf32>) -> (tensor<?x8xf32>, "
                       "tensor<?xf32>)\n"
                       "    %z = sft.add %x, %y : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>\n"
                       "    return %z : tensor<?x8xf32>\n  }\n}\n";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  EXPECT_TRUE(module);
  PassManager manager(&context);
  PadSequenceOptions options;
  options.tokens = tokens;
  options.rule = rule.str();
  manager.addPass(createPadSequence(options));
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  Padded result;
  if (failed(manager.run(*module)))
    return result;
  result.rows = module->getOperation()->getAttrOfType<IntegerAttr>("sft.padded_tokens").getInt();
  result.reasons = module->getOperation()->getAttrOfType<ArrayAttr>(kPadReasonsAttr).size();
  llvm::raw_string_ostream(result.type) << module->lookupSymbol<func::FuncOp>("train").getResultTypes()[0];
  return result;
}

TEST(PadSequence, TakesTheLeastCommonMultiple) {
  // lcm(3, 10) = 30 rows a rank; the product of the needs would be the same, the largest alone would not do.
  for (int64_t cp : {1, 2, 3})
    for (int64_t tokens : {1, 29, 30, 31, 90, 91}) {
      Padded padded = pad(tokens, cp);
      int64_t multiple = 30 * cp;
      EXPECT_EQ(padded.rows, (tokens + multiple - 1) / multiple * multiple) << tokens << " tokens over cp=" << cp;
      EXPECT_EQ(padded.reasons, 2u);
      EXPECT_EQ(padded.type, "tensor<" + std::to_string(padded.rows) + "x8xf32>");
    }
}

TEST(PadSequence, RefusesInsteadOfPadding) {
  EXPECT_EQ(pad(31, 1, "none").rows, -1);
  EXPECT_EQ(pad(60, 1, "none").rows, 60);
  EXPECT_EQ(pad(60, 2, "none").rows, 60);
  EXPECT_EQ(pad(90, 2, "none").rows, -1);
}

} // namespace
