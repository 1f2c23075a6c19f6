//===- SftOps.td - all ops, by family -------------------------------------------===//
#ifndef DIALECTS_SFT_SFTOPS
#define DIALECTS_SFT_SFTOPS

include "dialects/sft/Program.td"
include "dialects/sft/Embedding.td"
include "dialects/sft/Matmul.td"
include "dialects/sft/Norm.td"
include "dialects/sft/Activation.td"
include "dialects/sft/Rotary.td"
include "dialects/sft/Attention.td"
include "dialects/sft/Loss.td"
include "dialects/sft/Optimizer.td"
include "dialects/sft/Collective.td"

#endif
