//===- SftBase.td - base classes of ops ---------------------------------------===//
#ifndef DIALECTS_SFT_SFTBASE
#define DIALECTS_SFT_SFTBASE

include "dialects/sft/SftAttrs.td"
include "dialects/sft/SftInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/IR/SymbolInterfaces.td"

class Sft_Op<string mnemonic, list<Trait> traits = []> : Op<Sft_Dialect, mnemonic, traits>;

/// A pure op of the graph: knows its sharding and infers its result types.
/// `ruleMethods`: the optional methods of ShardingRule that the op has.
class Sft_ComputeOp<string mnemonic, list<Trait> traits = [], list<string> ruleMethods = []>
    : Sft_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>,
                        DeclareOpInterfaceMethods<Sft_ShardingRuleInterface, ruleMethods>] # traits> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Sft_Float : AnyTypeOf<[F32, BF16]>;
def Sft_Matrix : 2DTensorOf<[F32, BF16]>;            // T x D, or a weight
def Sft_FloatRows : 1DTensorOf<[F32]>;               // T
def Sft_IntRows : 1DTensorOf<[I32]>;                 // T
def Sft_Activation : 2DTensorOf<[F32, BF16]>;
def Sft_Weight : 2DTensorOf<[F32, BF16]>;
def Sft_Vector : 1DTensorOf<[F32, BF16]>;

#endif
