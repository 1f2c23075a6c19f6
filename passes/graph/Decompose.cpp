//===- Decompose.cpp - composite ops into simple ones --------------------------------===//

#include "dialects/sft/SftOps.h"
#include "passes/Passes.h"

namespace sftc {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/Passes.h.inc"
} // namespace sftc

using namespace mlir;
using namespace sftc;

namespace {
struct DecomposePass : public sftc::impl::DecomposeBase<DecomposePass> {
  void runOnOperation() override {
    SmallVector<Decomposable> ops;
    getOperation().walk([&](Decomposable op) { ops.push_back(op); });
    for (Decomposable op : ops) {
      OpBuilder builder(op);
      op->replaceAllUsesWith(op.decompose(builder));
      op->erase();
    }
  }
};
} // namespace
