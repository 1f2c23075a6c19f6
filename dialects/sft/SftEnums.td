//===- SftEnums.td ------------------------------------------------------------===//
#ifndef DIALECTS_SFT_SFTENUMS
#define DIALECTS_SFT_SFTENUMS

include "dialects/sft/SftDialect.td"
include "mlir/IR/EnumAttr.td"

def Sft_ReductionKind : I32EnumAttr<"ReductionKind", "how partial values are put together", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::sftc";
  let genSpecializedAttr = 0;
}
def Sft_ReductionKindAttr : EnumAttr<Sft_Dialect, Sft_ReductionKind, "reduction"> { let assemblyFormat = "$value"; }

def Sft_AccessKind : I32EnumAttr<"AccessKind", "how a row kernel reaches an operand", [
    I32EnumAttrCase<"Row", 0, "row">,             // element (i, j) of a T x W operand
    I32EnumAttrCase<"Column", 1, "column">,       // element j of a W operand
    I32EnumAttrCase<"Scalar", 2, "scalar">,       // element i of a T operand
    I32EnumAttrCase<"Uniform", 3, "uniform">,     // one fixed element
    I32EnumAttrCase<"Periodic", 4, "periodic">,   // element (i, j mod period) of a T x period operand
    I32EnumAttrCase<"Partner", 5, "partner">,     // element (i, j +- period/2): the other half of the period
    I32EnumAttrCase<"Gathered", 6, "gathered">,   // element (index[i], j mod period); 0 where the row is outside
    I32EnumAttrCase<"ColumnSum", 7, "column_sum"> // result only: the sum over rows of element j
  ]> {
  let cppNamespace = "::sftc";
  let genSpecializedAttr = 0;
}
def Sft_AccessKindAttr : EnumAttr<Sft_Dialect, Sft_AccessKind, "access_kind">;

#endif
