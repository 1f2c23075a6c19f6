//===- Norm.td ----------------------------------------------------------------===//
#ifndef DIALECTS_SFT_NORM
#define DIALECTS_SFT_NORM

include "dialects/sft/SftBase.td"

def Sft_RmsNormOp : Sft_ComputeOp<"rms_norm", [
    DeclareOpInterfaceMethods<Sft_DifferentiableInterface>, DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "Root mean square normalization";
  let description = [{
    rstd = 1 / sqrt(mean(input^2) + epsilon) for every row; result = input * rstd * weight (Zhang and Sennrich 2019, eq. 4).

    C1: the weight has as many elements as a row. C2: epsilon is positive.
  }];
  let arguments = (ins Sft_Activation:$input, Sft_Vector:$weight, F64Attr:$epsilon);
  let results = (outs Sft_Activation:$result, Sft_FloatRows:$rstd);
  let hasVerifier = 1;
}

def Sft_RmsNormGradOp : Sft_ComputeOp<"rms_norm_grad", [DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "Gradient of rms_norm by input and weight";
  let description = [{
    With g = gradient * weight, n columns: input_gradient = rstd * g - input * rstd^3 * sum(g * input) / n;
    weight_gradient = sum over rows of gradient * input * rstd.
  }];
  let arguments = (ins Sft_Activation:$gradient, Sft_Activation:$input, Sft_Vector:$weight, Sft_FloatRows:$rstd);
  let results = (outs Sft_Activation:$input_gradient, Sft_Vector:$weight_gradient);
}

#endif
