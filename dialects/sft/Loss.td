//===- Loss.td ----------------------------------------------------------------===//
#ifndef DIALECTS_SFT_LOSS
#define DIALECTS_SFT_LOSS

include "dialects/sft/SftBase.td"

def Sft_CrossEntropyOp : Sft_ComputeOp<"cross_entropy", [
    DeclareOpInterfaceMethods<Sft_DifferentiableInterface>, DeclareOpInterfaceMethods<Sft_DecomposableInterface>]> {
  let summary = "Cross entropy of every row against its target";
  let description = [{
    result[i] = log(sum_j exp(logits[i, j])) - logits[i, targets[i]]; 0 where the target is -1. `sft-decompose` splits it into row
    ops, so that the vocabulary can be cut over the mesh.
  }];
  let arguments = (ins Sft_Activation:$logits, Sft_IntRows:$targets);
  let results = (outs Sft_FloatRows:$result);
}

def Sft_RowMaxOp : Sft_ComputeOp<"row_max", [
    DeclareOpInterfaceMethods<Sft_RowBodyInterface>], ["getPartialKind"]> {
  let summary = "Largest element of every row";
  let arguments = (ins Sft_Activation:$input);
  let results = (outs Sft_FloatRows:$result);
}

def Sft_ExpSumOp : Sft_ComputeOp<"exp_sum", [DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "Sum of exp(input - maximum) of every row";
  let arguments = (ins Sft_Activation:$input, Sft_FloatRows:$maximum);
  let results = (outs Sft_FloatRows:$result);
}

def Sft_PickOp : Sft_ComputeOp<"pick", [
    DeclareOpInterfaceMethods<Sft_RowBodyInterface>], ["localize"]> {
  let summary = "The element of every row that `indices` names";
  let description = [{ result[i] = input[i, indices[i] - column_offset], 0 where that column is not here. }];
  let arguments = (ins Sft_Activation:$input, Sft_IntRows:$indices, Optional<1DTensorOf<[I32]>>:$column_offset);
  let results = (outs Sft_FloatRows:$result);
}

def Sft_TokenLossOp : Sft_ComputeOp<"token_loss", [DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "maximum + log(sum) - picked, 0 where the target is -1";
  let arguments = (ins Sft_FloatRows:$maximum, Sft_FloatRows:$sum, Sft_FloatRows:$picked, Sft_IntRows:$targets);
  let results = (outs Sft_FloatRows:$result);
}

def Sft_CrossEntropyGradOp : Sft_ComputeOp<"cross_entropy_grad", [
    DeclareOpInterfaceMethods<Sft_RowBodyInterface>], ["localize"]> {
  let summary = "Gradient of cross entropy by the logits";
  let description = [{
    result[i, j] = gradient[i] * (exp(logits[i, j] - maximum[i]) / sum[i] - (j == targets[i] - column_offset)); 0 where the target
    is -1.
  }];
  let arguments = (ins Sft_FloatRows:$gradient, Sft_Activation:$logits, Sft_FloatRows:$maximum, Sft_FloatRows:$sum,
                       Sft_IntRows:$targets, Optional<1DTensorOf<[I32]>>:$column_offset);
  let results = (outs Sft_Activation:$result);
}

#endif
