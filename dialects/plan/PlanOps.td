//===- PlanOps.td - one op per kind of instruction --------------------------------===//
#ifndef DIALECTS_PLAN_PLANOPS
#define DIALECTS_PLAN_PLANOPS

include "dialects/plan/PlanDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;

def Plan_ArenaOp : Plan_Op<"arena", [Symbol]> {
  let summary = "One allocation on every rank";
  let description = [{
    `buffer_class` is a BufferClass of plan.fbs.
    C1: the class is known. C2: bytes are not negative.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$buffer_class, I64Attr:$bytes);
  let assemblyFormat = "$sym_name $buffer_class $bytes `bytes` attr-dict";
  let hasVerifier = 1;
}

def Plan_GlobalOp : Plan_Op<"global", [Symbol]> {
  let summary = "A buffer that lives between programs";
  let description = [{
    Lies in an arena at an offset in bytes. With `slice_axes` it is the rank's share of a larger buffer: its base is offset + index
    of the rank over these axes times `slice_stride`. With `table` the host fills it: {kind, whole, persistent, parameters}.

    C1: the arena exists. C2: the buffer lies inside the arena (the first rank's, for a slice; the plan file's verification,
    which knows the mesh, checks the last one).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyStaticShapeMemRef>:$type, FlatSymbolRefAttr:$arena, I64Attr:$offset,
                       OptionalAttr<StrArrayAttr>:$slice_axes, OptionalAttr<I64Attr>:$slice_stride, OptionalAttr<DictionaryAttr>:$table);
  let assemblyFormat = [{
    $sym_name `:` $type `in` $arena `at` $offset (`slice` $slice_axes^ `by` $slice_stride)? (`table` $table^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_ProgramOp : Plan_Op<"program", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "A list of instructions";
  let description = [{ The runtime binds one instance of a program for each value of its arguments. }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$arguments);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name $arguments attr-dict-with-keyword $body";
}

def Plan_GetOp : Plan_Op<"get", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A global buffer, inside a program";
  let description = [{ C1: the symbol is a `plan.global`. C2: the types agree. }];
  let arguments = (ins FlatSymbolRefAttr:$global);
  let results = (outs AnyStaticShapeMemRef:$buffer);
  let assemblyFormat = "$global attr-dict `:` type($buffer)";
}

def Plan_AllocOp : Plan_Op<"alloc", []> {
  let summary = "Transient memory of one program";
  let description = [{ `offset` (bytes in the transient arena) is set by `sft-plan-memory`; `is_result` marks what the program gives back. }];
  let arguments = (ins StrAttr:$name, OptionalAttr<I64Attr>:$offset, UnitAttr:$is_result);
  let results = (outs AnyStaticShapeMemRef:$buffer);
  let assemblyFormat = "$name (`at` $offset^)? (`result` $is_result^)? attr-dict `:` type($buffer)";
}

def Plan_LaunchOp : Plan_Op<"launch", [AttrSizedOperandSegments]> {
  let summary = "Runs a kernel";
  let description = [{
    `positions[i]` is the place of operand i in the kernel's signature (optional operands may be missing), `accesses[i]` is "in",
    "out" or "inout". `aliases` lists pairs (output, input) of operand numbers that may share memory. `when` is always, first
    or last.

    C1: positions and accesses are as many as operands. C2: the kernel is in Kernels.def. C3: an access is in, out or inout, and
    `when` always, first or last. C4: aliases are pairs of operand numbers.
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<AnyStaticShapeMemRef>:$arguments, Optional<AnyStaticShapeMemRef>:$workspace,
                       DenseI64ArrayAttr:$positions, StrArrayAttr:$accesses, DictionaryAttr:$parameters,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$aliases, OptionalAttr<StrAttr>:$symbol,
                       DefaultValuedStrAttr<StrAttr, "always">:$when);
  let assemblyFormat = [{
    $kernel (`[` $symbol^ `]`)? `(` $arguments `)` (`workspace` `(` $workspace^ `:` type($workspace) `)`)? $parameters attr-dict `:` type($arguments)
  }];
  let hasVerifier = 1;
}

def Plan_CollectiveOp : Plan_Op<"collective", []> {
  let summary = "A collective over mesh axes";
  let description = [{
    `kind` is all_gather, reduce_scatter, all_reduce or all_to_all, along the outermost dimension.
    C1: kind, reduction and `when` are known. C2: the element counts fit: one side is a whole multiple of the other. C3: there is
    at least one axis, and none is named twice.
  }];
  let arguments = (ins StrAttr:$kind, StrArrayAttr:$axes, AnyStaticShapeMemRef:$input, AnyStaticShapeMemRef:$output,
                       DefaultValuedStrAttr<StrAttr, "sum">:$reduction, DefaultValuedStrAttr<StrAttr, "always">:$when);
  let assemblyFormat = "$kind $axes `(` $input `,` $output `)` attr-dict `:` type($input) `,` type($output)";
  let hasVerifier = 1;
}

#endif
