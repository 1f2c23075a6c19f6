//===- Rotary.td --------------------------------------------------------------===//
#ifndef DIALECTS_SFT_ROTARY
#define DIALECTS_SFT_ROTARY

include "dialects/sft/SftBase.td"

def Sft_RotaryTableOp : Sft_ComputeOp<"rotary_table", []> {
  let summary = "Cosine and sine tables of rotary embedding, one row a position";
  let description = [{
    Made by the runtime when a plan is loaded, in double from the fp32 angle: a polynomial cosine in fp32 is off by 2e-3 at
    position 131071. Both tables have head_dim columns; the sine of the first half carries the minus sign of the rotation.
    `parameters` holds rope_type (default, linear, llama3), theta and what the type needs.

    C1: head_dim is even and positive. C2: rows is positive.
  }];
  let arguments = (ins I64Attr:$rows, I64Attr:$head_dim, DictionaryAttr:$parameters);
  let results = (outs 2DTensorOf<[F32]>:$cosine, 2DTensorOf<[F32]>:$sine);
}

def Sft_RotaryOp : Sft_ComputeOp<"rotary", [
    DeclareOpInterfaceMethods<Sft_DifferentiableInterface>, DeclareOpInterfaceMethods<Sft_RowBodyInterface>], ["getLeadingFactorSize"]> {
  let summary = "Rotary position embedding of every head of a row";
  let description = [{
    Inside a head, result[j] = input[j] * cosine[p, j] + input[partner(j)] * sine[p, j], p = positions[i], partner the element
    half a head away (RoFormer, Su et al. 2021, eq. 34). `inverse` turns back: the gradient.

    C1: the row is a whole number of heads.
  }];
  let arguments = (ins Sft_Activation:$input, Sft_IntRows:$positions, 2DTensorOf<[F32]>:$cosine, 2DTensorOf<[F32]>:$sine,
                       UnitAttr:$inverse);
  let results = (outs Sft_Activation:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    int64_t getHeadDim() { return ::llvm::cast<::mlir::RankedTensorType>(getCosine().getType()).getDimSize(1); }
  }];
}

#endif
