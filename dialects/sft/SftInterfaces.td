//===- SftInterfaces.td - what passes may ask an op ---------------------------===//
#ifndef DIALECTS_SFT_SFTINTERFACES
#define DIALECTS_SFT_SFTINTERFACES

include "mlir/IR/OpBase.td"

def Sft_DifferentiableInterface : OpInterface<"Differentiable"> {
  let description = [{ An op that can build its gradient. }];
  let cppNamespace = "::sftc";
  let methods = [
    InterfaceMethod<[{
      Builds ops that compute the gradient of the loss by each operand, given the gradient by each result (null where a result
      does not reach the loss; never all null). Leaves null where an operand has no gradient.
    }], "void", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$resultGradients,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>];
}

def Sft_DecomposableInterface : OpInterface<"Decomposable"> {
  let description = [{ An op that stands for several simpler ones. }];
  let cppNamespace = "::sftc";
  let methods = [
    InterfaceMethod<"Builds the simpler ops and returns the values that replace the results.",
      "::llvm::SmallVector<::mlir::Value>", "decompose", (ins "::mlir::OpBuilder &":$builder)>];
}

def Sft_ShardingRuleInterface : OpInterface<"ShardingRule"> {
  let description = [{
    How the dimensions of operands and results hang together, as a factor string: operands, `->`, results, separated by
    commas; the dimensions of a value are separated by spaces. A dimension is a factor, or `(g r d)`: a compound, major first,
    of which only the first factor may be cut. `name!` is never cut here. Factors of the same name are cut alike. A cut factor
    that is missing from a result makes that result partial over the factor's axes.

    Verified for every op: the string has as many values and dimensions as the op, and a factor the same size wherever it occurs.
  }];
  let cppNamespace = "::sftc";
  let verifyWithRegions = 1; // after the op's own checks, which say more
  let verify = [{ return ::mlir::success(::mlir::succeeded(::sftc::FactorRule::get($_op))); }];
  let methods = [
    InterfaceMethod<"The factor string.", "std::string", "getFactorString">,
    InterfaceMethod<"How a result is reduced when a cut factor is missing from it.",
      "::sftc::ReductionKind", "getPartialKind", (ins), "", [{ return ReductionKind::Sum; }]>,
    InterfaceMethod<"Whether the op takes an operand whose partial sums are not reduced yet.",
      "bool", "acceptsPartial", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      Number of elements of the first factor of a compound dimension, given the dimension's size; it must divide by the cut.
      `value` counts operands, then results.
    }], "int64_t", "getLeadingFactorSize", (ins "unsigned":$value, "unsigned":$dimension, "int64_t":$size), "",
      [{ return size; }]>,
    InterfaceMethod<[{
      Called on the op that already has the shapes of one rank, with the axes that cut each factor: adds what a rank must know
      about its place, for example the first vocabulary row it holds.
    }], "void", "localize", (ins "const ::sftc::FactorAxes &":$axes), "", [{ return; }]>];
}

def Sft_SequenceMultipleInterface : OpInterface<"SequenceMultiple"> {
  let description = [{ An op that needs the number of tokens to be a multiple of something. }];
  let cppNamespace = "::sftc";
  let methods = [
    InterfaceMethod<"Adds what the op needs of the rows of a pack (over all ranks), and why.", "void", "getSequenceMultiples",
      (ins "const ::sftc::SequenceContext &":$context, "::llvm::SmallVectorImpl<::sftc::SequenceNeed> &":$needs)>];
}

def Sft_RowBodyInterface : OpInterface<"RowBody"> {
  let description = [{
    An op that works on rows: it describes how it reaches its operands and emits its arithmetic on f32 scalars for the
    row-kernel generator.
  }];
  let cppNamespace = "::sftc";
  let methods = [InterfaceMethod<"The row kernel of this op.", "::sftc::RowSpec", "getRowSpec">];
}

def Sft_LibraryKernelInterface : OpInterface<"LibraryKernel"> {
  let description = [{ An op that is a kernel of runtime/plan/Kernels.def. }];
  let cppNamespace = "::sftc";
  let methods = [InterfaceMethod<"The launch of this op.", "::sftc::KernelSpec", "getKernelSpec">];
}

#endif
