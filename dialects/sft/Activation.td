//===- Activation.td - elementwise ops -----------------------------------------===//
#ifndef DIALECTS_SFT_ACTIVATION
#define DIALECTS_SFT_ACTIVATION

include "dialects/sft/SftBase.td"

def Sft_AddOp : Sft_ComputeOp<"add", [
    DeclareOpInterfaceMethods<Sft_DifferentiableInterface>, DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "Sum of two activations: a residual connection, or two gradients of one value";
  let description = [{ C1: the types agree. }];
  let arguments = (ins Sft_Activation:$lhs, Sft_Activation:$rhs);
  let results = (outs Sft_Activation:$result);
  let hasVerifier = 1;
}

def Sft_SiluGateOp : Sft_ComputeOp<"silu_gate", [
    DeclareOpInterfaceMethods<Sft_DifferentiableInterface>, DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "SiLU-gated product";
  let description = [{
    result = gate / (1 + exp(-gate)) * up (SwiGLU, Shazeer 2020).
    C1: the types agree.
  }];
  let arguments = (ins Sft_Activation:$gate, Sft_Activation:$up);
  let results = (outs Sft_Activation:$result);
  let hasVerifier = 1;
}

def Sft_SiluGateGradOp : Sft_ComputeOp<"silu_gate_grad", [DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "Gradient of silu_gate by gate and up";
  let description = [{
    With s = 1 / (1 + exp(-gate)): gate_gradient = gradient * up * s * (1 + gate * (1 - s)); up_gradient = gradient * gate * s.
  }];
  let arguments = (ins Sft_Activation:$gradient, Sft_Activation:$gate, Sft_Activation:$up);
  let results = (outs Sft_Activation:$gate_gradient, Sft_Activation:$up_gradient);
}

#endif
