//===- Matmul.td --------------------------------------------------------------===//
#ifndef DIALECTS_SFT_MATMUL
#define DIALECTS_SFT_MATMUL

include "dialects/sft/SftBase.td"

def Sft_MatmulOp : Sft_ComputeOp<"matmul", [
    DeclareOpInterfaceMethods<Sft_DifferentiableInterface>, DeclareOpInterfaceMethods<Sft_LibraryKernelInterface>]> {
  let summary = "Matrix product with an optional bias";
  let description = [{
    result = op(a) op(b) + bias, where op transposes if `transpose_a` or `transpose_b` is set. A linear layer whose weight is
    stored [out, in] is `matmul %x, %w {transpose_b}`.

    C1: the contracted sizes agree. C2: the bias has as many elements as the result has columns.
  }];
  let arguments = (ins Sft_Matrix:$a, Sft_Matrix:$b, Optional<Sft_Vector>:$bias, UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Sft_Matrix:$result);
  let hasVerifier = 1;
}

def Sft_ColumnSumOp : Sft_ComputeOp<"column_sum", [DeclareOpInterfaceMethods<Sft_RowBodyInterface>]> {
  let summary = "Sum over the rows: the gradient of a bias";
  let arguments = (ins Sft_Activation:$input);
  let results = (outs Sft_Vector:$result);
}

#endif
