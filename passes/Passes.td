//===- Passes.td - every pass, in pipeline order ---------------------------------===//
#ifndef PASSES_PASSES
#define PASSES_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// graph: what training computes
//===----------------------------------------------------------------------===//

def BuildBackward : Pass<"sft-build-backward", "mlir::ModuleOp"> {
  let summary = "Make @train and @evaluate of @forward";
  let description = [{
    `@train` is the forward graph followed by its gradient, built by the ops' `Differentiable` interface in reverse order, each
    parameter's contributions ending in `sft.accumulate_gradient`. The seed is the `weights` argument: the loss is the sum of
    weights times token losses. Backward ops carry `sft.backward`. `@evaluate` is the forward graph. `@forward` is removed.

    Before: `func.func @forward(%tokens, ...) -> tensor<?xf32> { %w = sft.read @w  %y = sft.matmul %x, %w ... }`
    After: `func.func @train(...) { ... %dw = sft.matmul %dy, %x {sft.backward, transpose_a}  sft.accumulate_gradient %dw, @w ... }`
  }];
}

def Decompose : Pass<"sft-decompose", "mlir::ModuleOp"> {
  let summary = "Replace ops that stand for several simpler ones";
  let description = [{
    Asks the `Decomposable` interface. Before: `sft.cross_entropy %logits, %targets`. After: `sft.row_max`, `sft.exp_sum`,
    `sft.pick`, `sft.token_loss`: row ops whose reductions over a cut vocabulary become collectives.
  }];
}

//===----------------------------------------------------------------------===//
// parallel: the same graph on one rank of a mesh
//===----------------------------------------------------------------------===//

def PadSequence : Pass<"sft-pad-sequence", "mlir::ModuleOp"> {
  let summary = "Fix the number of rows of a pack";
  let description = [{
    Takes the least common multiple of what the ops ask through `SequenceMultiple`, rounds `tokens` up to it, and replaces every
    `?` in the graph. The reasons stay on the module as `sft.pad_reasons` and are given as remarks.

    Before: `tensor<?x64xf32>` with tokens = 13 and zigzag order over cp = 2. After: `tensor<16x64xf32>`.
  }];
  let options = [
    Option<"tokens", "tokens", "int64_t", "0", "real tokens of a pack, at most">,
    Option<"rule", "rule", "std::string", "\"derived\"", "derived: what the ops need; none: refuse instead of rounding up; nemo: (8 tp if sequence parallel else 16) cp">];
}

def PropagateSharding : Pass<"sft-propagate-sharding", "mlir::ModuleOp"> {
  let summary = "Decide how every value lies on the mesh";
  let description = [{
    Seeds are the roles of arguments and parameters, mapped to axes by the module's `sft.role_axes`. Factor strings carry them
    through the graph in both directions to a fixpoint. The result stands on ops as `sft.shardings`, one a result.
  }];
}

def Partition : Pass<"sft-partition", "mlir::ModuleOp"> {
  let summary = "Rewrite the graph to the shapes of one rank";
  let description = [{
    Gives every op the shapes of one rank and inserts a collective wherever a value lies otherwise than its user wants it:
    all_gather, reduce_scatter, all_reduce, all_to_all or slice. Resharding is memoised per (value, target), separately in the
    forward and the backward half, so that nothing gathered lives from one to the other. Rows gathered from zigzag order are
    put into global order. Arguments are host tables: wanted whole, they become further arguments with `sft.whole`.

    Before: `sft.attention %q, %k, ...` with rows cut over cp. After: `%g = sft.all_gather %k ["cp"]`, `%w = sft.reorder %g`,
    `sft.attention %q, %w, ...`.
  }];
}

//===----------------------------------------------------------------------===//
// fuse and codegen: row ops become generated kernels
//===----------------------------------------------------------------------===//

def BuildUpdate : Pass<"sft-build-update", "mlir::ModuleOp"> {
  let summary = "Group the parameters and build the optimizer programs";
  let description = [{
    Parameters with the same weight decay form one flat group, padded so that every rank's slice over the reduction axes is a
    whole number of rows. Adds `@reduce_gradients` (run after the last pack of a step), `@update` (AdamW) and `@update_sgd`: the
    optimizer state is cut over the reduction axes (ZeRO-1, Rajbhandari et al. 2020), so gradients are reduce-scattered and
    updated parameters gathered.
  }];
}

def FormRowKernels : Pass<"sft-form-row-kernels", "mlir::ModuleOp"> {
  let summary = "Turn every row op into an sft.fused region";
  let description = [{
    Asks the `RowBody` interface. Before: `sft.add %a, %b`. After: `sft.fused %a, %b {operand_access = [row, row], ...} ({ ... arith.addf ... })`.
  }];
}

def GenerateRowKernels : Pass<"sft-generate-row-kernels", "mlir::ModuleOp"> {
  let summary = "Compile the sft.fused regions for a CPU";
  let description = [{
    Names the kernel of every region (equal regions share one) and attaches the shared object with all of them to the module.
  }];
  let options = [Option<"targetCpu", "target-cpu", "std::string", "\"native\"", "LLVM's name of the CPU, or native">];
}

//===----------------------------------------------------------------------===//
// lower: how it runs
//===----------------------------------------------------------------------===//

def LowerToPlan : Pass<"sft-lower-to-plan", "mlir::ModuleOp"> {
  let summary = "Turn functions into plan programs";
  let description = [{
    Values become buffers, ops launches and collectives. Attention becomes squares (causal, inside a slot) and rectangles (a slot's
    first document and its earlier rows). The first contribution to a gradient is written in place by its producer.
  }];
  let dependentDialects = ["::sftc::plan::PlanDialect"];
}

//===----------------------------------------------------------------------===//
// schedule: where it lies
//===----------------------------------------------------------------------===//

def PlanMemory : Pass<"sft-plan-memory", "mlir::ModuleOp"> {
  let summary = "Place every transient buffer";
  let description = [{
    Buffers that are never live together share memory; an output takes the place of an input that ends there where the kernel
    allows it. The best of several placements by size and by time is kept.
  }];
}

//===----------------------------------------------------------------------===//
// verify: the contract after each stage
//===----------------------------------------------------------------------===//

def VerifyTraining : Pass<"sft-verify-training", "mlir::ModuleOp"> {
  let summary = "Check the contract of the training level";
  let description = [{
    @train and @evaluate exist and take the batch tables; every parameter gets a gradient; no collective and no composite op is there.
  }];
}

def VerifySharded : Pass<"sft-verify-sharded", "mlir::ModuleOp"> {
  let summary = "Check the contract of the sharded level";
  let description = [{
    Shapes are static; attention reads keys and values in global order or of a single slot; no gathered value lives from the
    forward to the backward half; collectives stand in straight-line code.
  }];
}

def VerifyPlan : Pass<"sft-verify-plan", "mlir::ModuleOp"> {
  let summary = "Check the contract of the plan level";
  let description = [{
    Only plan ops are left; every buffer is written before it is read; buffers that are live together do not overlap; every
    launch fits the signature of its kernel.
  }];
}

#endif
