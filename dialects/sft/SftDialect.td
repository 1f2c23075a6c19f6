//===- SftDialect.td - the sft dialect ----------------------------------------===//
#ifndef DIALECTS_SFT_SFTDIALECT
#define DIALECTS_SFT_SFTDIALECT

include "mlir/IR/OpBase.td"

def Sft_Dialect : Dialect {
  let name = "sft";
  let cppNamespace = "::sftc";
  let summary = "Supervised fine-tuning graphs: what is computed";
  let description = [{
    A model file holds `sft.parameter` symbols and one function `@forward` from token arrays to the loss of each token. There
    is one token axis of length T (`?` until `sft-pad-sequence` fixes it): activations are `tensor<T x D>`, a batch is
    documents laid one after another. The arguments, all of length T, are `tokens`, `positions` (inside the document),
    `documents` (an id; -1 is padding), `targets` (the next token of the same document; -1 is ignored) and `weights` (0 for an
    untrained token, otherwise the target's share of the loss). The loss is the sum of `weights` times the token losses.

    The same dialect serves four levels: *logical* (as imported), *training* (with the backward graph), *sharded* (shapes of
    one rank and explicit collectives) and *fused* (row ops as `sft.fused` regions).

    Module attributes: `sft.config` (the checkpoint's config.json), `sft.mesh`, `sft.role_axes` (which mesh axes cut which
    dimension role), `sft.batch_axes` (axes over which packs differ), `sft.token_order`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{ void registerAttributes(); }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::func::FuncDialect"];
}

#endif
