//===- Optimizer.td - the update of a group of parameters ----------------------===//
//
// Groups are flat: tensors of R x 256 over the elements of all parameters of the group. `scalars` is the table step_scalars:
// 0 learning rate, 1 beta1, 2 beta2, 3 eps, 4 weight decay, 5 1 - beta1^t, 6 1 - beta2^t, 7 clip, 9 1 - beta1, 10 1 - beta2.
//
//===--------------------------------------------------------------------------===//
#ifndef DIALECTS_SFT_OPTIMIZER
#define DIALECTS_SFT_OPTIMIZER

include "dialects/sft/SftBase.td"

class Sft_UpdateOp<string mnemonic, list<Trait> traits = []>
    : Sft_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>] # traits> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Sft_SumOfSquaresOp : Sft_UpdateOp<"sum_of_squares", [DeclareOpInterfaceMethods<Sft_LibraryKernelInterface>]> {
  let summary = "Sum of the squares of all elements";
  let arguments = (ins Sft_Weight:$input);
  let results = (outs Sft_FloatRows:$result);
}

def Sft_ClipScaleOp : Sft_UpdateOp<"clip_scale", [DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "Gradient norm and the factor that clips it";
  let description = [{
    norm = sqrt(sum of the squares); scale = min(1, clip / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does.
    C1: there is at least one sum.
  }];
  let arguments = (ins Sft_FloatRows:$scalars, Variadic<Sft_FloatRows>:$squares);
  let results = (outs Sft_FloatRows:$norm, Sft_FloatRows:$scale);
  let hasVerifier = 1;
}

def Sft_AdamWOp : Sft_UpdateOp<"adamw", [DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "AdamW update";
  let description = [{
    Loshchilov and Hutter 2019, algorithm 2, in PyTorch's order: p *= 1 - lr * weight_decay (if `decay`); m = beta1 m + (1 -
    beta1) g; v = beta2 v + (1 - beta2) g^2; p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps), g = gradient * scale.
    C1: the four group tensors have one type.
  }];
  let arguments = (ins Sft_Weight:$parameter, Sft_Weight:$gradient, Sft_Weight:$exp_avg, Sft_Weight:$exp_avg_sq,
                       Sft_FloatRows:$scale, Sft_FloatRows:$scalars, UnitAttr:$decay);
  let results = (outs Sft_Weight:$new_parameter, Sft_Weight:$new_exp_avg, Sft_Weight:$new_exp_avg_sq);
  let hasVerifier = 1;
}

def Sft_SgdOp : Sft_UpdateOp<"sgd", [DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "Plain gradient descent: p -= lr * scale * g, without momentum or decay";
  let description = [{ C1: the two group tensors have one type. }];
  let arguments = (ins Sft_Weight:$parameter, Sft_Weight:$gradient, Sft_FloatRows:$scale, Sft_FloatRows:$scalars);
  let results = (outs Sft_Weight:$new_parameter);
  let hasVerifier = 1;
}

#endif
