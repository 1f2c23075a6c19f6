//===- Collective.td - data movement between ranks ------------------------------===//
//
// Groups are sets of mesh axes: every rank talks to the ranks that differ from it on these axes only. The group size is the
// product of the axes' sizes in the module's `sft.mesh`.
//
//===--------------------------------------------------------------------------===//
#ifndef DIALECTS_SFT_COLLECTIVE
#define DIALECTS_SFT_COLLECTIVE

include "dialects/sft/SftBase.td"

class Sft_CollectiveOp<string mnemonic> : Sft_Op<mnemonic, [Pure]> {
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$input $axes attr-dict `:` functional-type($input, $result)";
  let hasVerifier = 1;
}

def Sft_AllGatherOp : Sft_CollectiveOp<"all_gather"> {
  let summary = "Every rank's part, one after another along a dimension";
  let description = [{
    C1: the axes are known, not empty and differ. C2: the result's `dimension` is the input's times the group size, all other
    dimensions agree.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrArrayAttr:$axes, I64Attr:$dimension);
}

def Sft_ReduceScatterOp : Sft_CollectiveOp<"reduce_scatter"> {
  let summary = "The rank's part of the reduction over the group";
  let description = [{ C1 as all_gather. C2: the input's `dimension` is the result's times the group size. }];
  let arguments = (ins AnyRankedTensor:$input, StrArrayAttr:$axes, I64Attr:$dimension, Sft_ReductionKindAttr:$kind);
}

def Sft_AllReduceOp : Sft_CollectiveOp<"all_reduce"> {
  let summary = "The reduction over the group";
  let description = [{ C1 as all_gather. C2: the types agree. }];
  let arguments = (ins AnyRankedTensor:$input, StrArrayAttr:$axes, Sft_ReductionKindAttr:$kind);
}

def Sft_AllToAllOp : Sft_CollectiveOp<"all_to_all"> {
  let summary = "Cuts one dimension and puts another together";
  let description = [{ C1 as all_gather. C2: `split` shrinks and `concat` grows by the group size. }];
  let arguments = (ins AnyRankedTensor:$input, StrArrayAttr:$axes, I64Attr:$split, I64Attr:$concat);
}

def Sft_SliceOp : Sft_CollectiveOp<"slice"> {
  let summary = "The rank's part of a value that every rank has";
  let description = [{ C1 and C2 as reduce_scatter. }];
  let arguments = (ins AnyRankedTensor:$input, StrArrayAttr:$axes, I64Attr:$dimension);
}

def Sft_ReorderOp : Sft_CollectiveOp<"reorder"> {
  let summary = "Puts the slots of gathered rows into global order";
  let description = [{
    An all_gather of zigzag shards arrives as slots 0 7 1 6 2 5 3 4; `reorder` makes that 0 1 2 3 4 5 6 7, and with `inverse`
    the other way round, before a reduce_scatter.
    C1 as all_gather. C2: the types agree. C3: the rows divide by the number of slots.
  }];
  let arguments = (ins AnyRankedTensor:$input, StrArrayAttr:$axes, UnitAttr:$inverse);
}

#endif
