//===- Attention.td -----------------------------------------------------------===//
#ifndef DIALECTS_SFT_ATTENTION
#define DIALECTS_SFT_ATTENTION

include "dialects/sft/SftBase.td"

def Sft_AttentionOp : Sft_ComputeOp<"attention", [
    DeclareOpInterfaceMethods<Sft_DifferentiableInterface>, DeclareOpInterfaceMethods<Sft_SequenceMultipleInterface>], ["getLeadingFactorSize"]> {
  let summary = "Causal attention inside documents, with grouped key and value heads";
  let description = [{
    Row i of q sees row j of k and v when they have the same document (not -1) and position(i) >= position(j). A row that sees
    nothing gives zeros and a log-sum-exp of -inf. Head h of q uses kv head h / (heads / kv heads). `logsumexp` is that of
    scale * q k^T over what a row sees, per head.

    Keys and values are always given whole and in global order (`s!`), with their own positions and documents.

    C1: q is a whole number of heads, and k and v of the same number of heads that divides it. C2: k and v have as many rows as
    kv_positions and kv_documents, q as many as its own.
  }];
  let arguments = (ins Sft_Activation:$q, Sft_Activation:$k, Sft_Activation:$v, Sft_IntRows:$q_positions, Sft_IntRows:$q_documents,
                       Sft_IntRows:$kv_positions, Sft_IntRows:$kv_documents, I64Attr:$head_dim, F64Attr:$scale);
  let results = (outs Sft_Activation:$result, 2DTensorOf<[F32]>:$logsumexp);
  let hasVerifier = 1;
}

def Sft_AttentionGradOp : Sft_ComputeOp<"attention_grad", [], ["getLeadingFactorSize"]> {
  let summary = "Gradient of attention by q, k and v";
  let description = [{
    With P = exp(scale q k^T - logsumexp), delta = rowsum(gradient * result), dS = P * (gradient v^T - delta): q_gradient =
    scale dS k, k_gradient = scale dS^T q, v_gradient = P^T gradient (FlashAttention-2, Dao 2023, algorithm 2).
  }];
  let arguments = (ins Sft_Activation:$gradient, Sft_Activation:$q, Sft_Activation:$k, Sft_Activation:$v, Sft_Activation:$result,
                       2DTensorOf<[F32]>:$logsumexp, Sft_IntRows:$q_positions, Sft_IntRows:$q_documents,
                       Sft_IntRows:$kv_positions, Sft_IntRows:$kv_documents, I64Attr:$head_dim, F64Attr:$scale);
  let results = (outs Sft_Activation:$q_gradient, Sft_Activation:$k_gradient, Sft_Activation:$v_gradient);
}

#endif
