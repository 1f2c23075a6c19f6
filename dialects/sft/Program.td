//===- Program.td - parameters, state and how programs reach them --------------===//
#ifndef DIALECTS_SFT_PROGRAM
#define DIALECTS_SFT_PROGRAM

include "dialects/sft/SftBase.td"

def Sft_ParameterOp : Sft_Op<"parameter", [Symbol]> {
  let summary = "A weight of the model";
  let description = [{
    `roles` names what each dimension is (hidden, heads, kv_heads, ffn, vocabulary, ...); one table maps roles to mesh axes.
    `checkpoint` is the tensor's name in the checkpoint, `aliases` further names of the same tensor (tied weights). `decay`
    says whether weight decay applies (matrices, not norms or biases).

    C1: one role a dimension. C2: the shape is static and not empty.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, StrArrayAttr:$roles, StrAttr:$checkpoint,
                       OptionalAttr<StrArrayAttr>:$aliases, BoolAttr:$decay);
  let assemblyFormat = "$sym_name `:` $type `roles` $roles `checkpoint` $checkpoint (`aliases` $aliases^)? `decay` $decay attr-dict";
  let hasVerifier = 1;
}

def Sft_StateOp : Sft_Op<"state", [Symbol]> {
  let summary = "Memory that lives between programs: a group of parameters, its gradients or an optimizer moment";
  let description = [{
    `kind` is one of parameter, gradient, exp_avg, exp_avg_sq, scalar. `sliced` says that the type is one rank's share over the
    group's reduction axes instead of the whole.
    C1: the kind is one of those.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type, StrAttr:$kind, StrAttr:$group, UnitAttr:$sliced);
  let assemblyFormat = "$sym_name `:` $type $kind `of` $group (`sliced` $sliced^)? attr-dict";
  let hasVerifier = 1;
}

def Sft_ReadOp : Sft_Op<"read", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value of a parameter or a state";
  let description = [{ C1: the symbol exists. C2: the types agree (of a parameter: before it is cut). }];
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$symbol attr-dict `:` type($result)";
}

def Sft_WriteOp : Sft_Op<"write", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Stores a value into a state";
  let description = [{ C1: the symbol is an `sft.state`. C2: the types agree. }];
  let arguments = (ins AnyRankedTensor:$value, FlatSymbolRefAttr:$symbol);
  let assemblyFormat = "$value `,` $symbol attr-dict `:` type($value)";
}

def Sft_AccumulateGradientOp : Sft_Op<"accumulate_gradient",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     DeclareOpInterfaceMethods<Sft_ShardingRuleInterface, ["acceptsPartial"]>]> {
  let summary = "Adds a contribution to the gradient of a parameter";
  let description = [{
    The first contribution of the first pack of a step overwrites, all others add. Takes partial sums: gradients are reduced
    once per step, not per pack.
    C1: the symbol is an `sft.parameter`. C2: the shapes agree (before the parameter is cut).
  }];
  let arguments = (ins AnyRankedTensor:$value, FlatSymbolRefAttr:$symbol);
  let assemblyFormat = "$value `,` $symbol attr-dict `:` type($value)";
}

def Sft_AxisOffsetOp : Sft_Op<"axis_offset", [Pure]> {
  let summary = "Index of this rank over mesh axes, times a constant";
  let description = [{
    The only way by which a graph knows its place: the first vocabulary row a rank holds, for example. A table that the
    runtime fills.
    C1: the scale is at least 1.
  }];
  let arguments = (ins StrArrayAttr:$axes, I64Attr:$scale);
  let results = (outs 1DTensorOf<[I32]>:$result);
  let assemblyFormat = "$axes `*` $scale attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Sft_FusedOp : Sft_Op<"fused", [Pure, IsolatedFromAbove, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A row kernel: arithmetic on one element, run over all rows";
  let description = [{
    The body is one block over f32 (and i32) scalars, written for element (row i, column j). `operand_access` says how each
    operand is reached, `result_access` how each result is written (row, scalar or column_sum). The same value may be given
    several times with different accesses. `sft.row_reduce` reduces over the columns of the row; stages follow from it.
    An operand may share memory with a row result of the same type when all its accesses are `row`, since every element is
    read before it is written.

    C1: one access an operand and a result. C2: block arguments are f32 for float operands and i32 for i32 operands. C3: shapes
    agree with accesses, and all operands with the same number of rows and columns. C4: result accesses are row, scalar or
    column_sum, and a scalar result does not depend on a column. C5: only `arith`, `math` and row ops stand in the body.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, ArrayAttr:$operand_access, ArrayAttr:$result_access,
                       I64Attr:$width, OptionalAttr<StrAttr>:$kernel);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$inputs attr-dict-with-keyword `:` functional-type($inputs, $results) $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    AccessAttr getInputAccess(unsigned i) { return ::llvm::cast<AccessAttr>(getOperandAccess()[i]); }
    AccessAttr getOutputAccess(unsigned i) { return ::llvm::cast<AccessAttr>(getResultAccess()[i]); }
    /// Number of rows the kernel runs over.
    int64_t getRows();
  }];
}

def Sft_YieldOp : Sft_Op<"yield", [Pure, Terminator, HasParent<"FusedOp">]> {
  let summary = "Ends the body of an sft.fused";
  let arguments = (ins Variadic<AnyTypeOf<[F32, I32]>>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ }]>];
}

def Sft_RowReduceOp : Sft_Op<"row_reduce", [Pure, SameOperandsAndResultType]> {
  let summary = "Sum or maximum of a value over the columns of the row";
  let arguments = (ins Sft_ReductionKindAttr:$kind, F32:$value);
  let results = (outs F32:$result);
  let assemblyFormat = "$kind $value attr-dict `:` type($value)";
}

def Sft_ColumnIndexOp : Sft_Op<"column_index", [Pure]> {
  let summary = "The column of the element";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

#endif
