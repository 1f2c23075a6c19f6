//===- Embedding.td -----------------------------------------------------------===//
#ifndef DIALECTS_SFT_EMBEDDING
#define DIALECTS_SFT_EMBEDDING

include "dialects/sft/SftBase.td"

def Sft_EmbeddingOp : Sft_ComputeOp<"embedding", [
    DeclareOpInterfaceMethods<Sft_DifferentiableInterface>, DeclareOpInterfaceMethods<Sft_RowBodyInterface>], ["localize"]> {
  let summary = "Rows of a table";
  let description = [{
    result[i] = table[tokens[i] - row_offset]; a row outside the table reads as zeros, which is what a rank that holds a part of
    the vocabulary contributes.
  }];
  let arguments = (ins Sft_IntRows:$tokens, Sft_Weight:$table, Optional<1DTensorOf<[I32]>>:$row_offset);
  let results = (outs Sft_Activation:$result);
}

def Sft_EmbeddingGradOp : Sft_ComputeOp<"embedding_grad", [
    DeclareOpInterfaceMethods<Sft_LibraryKernelInterface>], ["localize"]> {
  let summary = "Gradient of an embedding by its table";
  let description = [{
    result[v] = sum of gradient[i] over the rows i that hold token v + row_offset, in row order. `rows` is the height of the table.
  }];
  let arguments = (ins Sft_Activation:$gradient, Sft_IntRows:$tokens, Optional<1DTensorOf<[I32]>>:$row_offset, I64Attr:$rows);
  let results = (outs Sft_Weight:$result);
}

#endif
