//===- SftAttrs.td ------------------------------------------------------------===//
#ifndef DIALECTS_SFT_SFTATTRS
#define DIALECTS_SFT_SFTATTRS

include "dialects/sft/SftEnums.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

class Sft_Attr<string name, string mnemonic_> : AttrDef<Sft_Dialect, name> { let mnemonic = mnemonic_; }

def Sft_MeshAttr : Sft_Attr<"Mesh", "mesh"> {
  let summary = "The parallel mesh: axes in rank order, fastest first";
  let description = [{
    Example: `#sft.mesh<["tp", "cp", "dp"], [1, 2, 1]>`.
    C1: as many sizes as names. C2: names are unique. C3: sizes are at least 1.
  }];
  let parameters = (ins "::mlir::ArrayAttr":$names, "::mlir::DenseI64ArrayAttr":$sizes);
  let assemblyFormat = "`<` $names `,` custom<Sizes>($sizes) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Size of an axis; 1 for a name that the mesh does not have.
    int64_t getSize(::llvm::StringRef axis) const;
    /// Product over a list of StringAttr.
    int64_t getSize(::mlir::ArrayAttr axes) const;
    bool hasAxis(::llvm::StringRef axis) const;
  }];
}

def Sft_ShardingAttr : Sft_Attr<"Sharding", "sharding"> {
  let summary = "How a value lies on the mesh";
  let description = [{
    For every dimension the mesh axes that cut it, and the axes over which the value is a still unreduced partial sum or
    maximum. Example: `#sft.sharding<[["cp"], []], [], []>`: rows cut over cp.
    C1: no axis occurs twice.
  }];
  let parameters = (ins "::mlir::ArrayAttr":$dimensions, "::mlir::ArrayAttr":$partialSum, "::mlir::ArrayAttr":$partialMax);
  let assemblyFormat = "`<` $dimensions `,` $partialSum `,` $partialMax `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    static ShardingAttr replicated(::mlir::MLIRContext *context, int64_t rank);
    bool isReplicated() const;
    ::mlir::ArrayAttr getAxes(unsigned dimension) const;
  }];
}

def Sft_AccessAttr : Sft_Attr<"Access", "access"> {
  let summary = "How a row kernel reaches one operand or result";
  let description = [{
    `period` belongs to periodic, partner and gathered (a gathered table as wide as the row has period = width); `element` to
    uniform; `index` (an operand number with scalar access, i32) and `offset` (an operand number with uniform access, i32, or
    -1) to gathered: row index[i] - offset of the table.
  }];
  let parameters = (ins "::sftc::AccessKind":$kind, DefaultValuedParameter<"int64_t", "0">:$period,
                        DefaultValuedParameter<"int64_t", "0">:$element, DefaultValuedParameter<"int64_t", "-1">:$index,
                        DefaultValuedParameter<"int64_t", "-1">:$offset);
  let assemblyFormat = "`<` $kind (`,` struct($period, $element, $index, $offset)^)? `>`";
  let extraClassDeclaration = [{
    static AccessAttr get(::mlir::MLIRContext *context, AccessKind kind) { return get(context, kind, 0, 0, -1, -1); }
  }];
}

#endif
