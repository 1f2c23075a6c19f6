// RUN: sftc-opt %s --sft-build-backward --split-input-file | FileCheck %s
// The gradient ops of every other differentiable op, and which value goes where.

sft.parameter @x : tensor<6x8xf32> roles ["tokens", "hidden"] checkpoint "x" decay true
sft.parameter @w : tensor<8xf32> roles ["hidden"] checkpoint "w" decay false
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[DY:.+]]: tensor<6x8xf32>
// CHECK-NEXT:    %[[X:.+]] = sft.read @x
// CHECK-NEXT:    %[[W:.+]] = sft.read @w
// CHECK-NEXT:    %[[Y:.+]], %[[RSTD:.+]] = sft.rms_norm %[[X]], %[[W]]
// CHECK-NEXT:    %[[DX:.+]], %[[DW:.+]] = sft.rms_norm_grad %[[DY]], %[[X]], %[[W]], %[[RSTD]] {sft.backward}
// CHECK-NEXT:    sft.accumulate_gradient %[[DW]], @w
// CHECK-NEXT:    sft.accumulate_gradient %[[DX]], @x
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%dy: tensor<6x8xf32> {sft.table = "weights"}) -> tensor<6x8xf32> {
  %x = sft.read @x : tensor<6x8xf32>
  %w = sft.read @w : tensor<8xf32>
  %y, %rstd = sft.rms_norm %x, %w {epsilon = 1.0e-06 : f64} : (tensor<6x8xf32>, tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6xf32>)
  return %y : tensor<6x8xf32>
}

// -----

sft.parameter @gate : tensor<6x8xf32> roles ["tokens", "ffn"] checkpoint "g" decay true
sft.parameter @up : tensor<6x8xf32> roles ["tokens", "ffn"] checkpoint "u" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[DY:.+]]: tensor<6x8xf32>
// CHECK-NEXT:    %[[GATE:.+]] = sft.read @gate
// CHECK-NEXT:    %[[UP:.+]] = sft.read @up
// CHECK-NEXT:    %[[Y:.+]] = sft.silu_gate %[[GATE]], %[[UP]]
// CHECK-NEXT:    %[[DGATE:.+]], %[[DUP:.+]] = sft.silu_gate_grad %[[DY]], %[[GATE]], %[[UP]] {sft.backward}
// CHECK-NEXT:    sft.accumulate_gradient %[[DUP]], @up
// CHECK-NEXT:    sft.accumulate_gradient %[[DGATE]], @gate
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%dy: tensor<6x8xf32> {sft.table = "weights"}) -> tensor<6x8xf32> {
  %gate = sft.read @gate : tensor<6x8xf32>
  %up = sft.read @up : tensor<6x8xf32>
  %y = sft.silu_gate %gate, %up : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// A sum hands its gradient to both sides as it is.
sft.parameter @a : tensor<6x8xf32> roles ["tokens", "hidden"] checkpoint "a" decay true
sft.parameter @b : tensor<6x8xf32> roles ["tokens", "hidden"] checkpoint "b" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[DY:.+]]: tensor<6x8xf32>
// CHECK:         %[[Y:.+]] = sft.add
// CHECK-NEXT:    sft.accumulate_gradient %[[DY]], @b {sft.backward}
// CHECK-NEXT:    sft.accumulate_gradient %[[DY]], @a {sft.backward}
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%dy: tensor<6x8xf32> {sft.table = "weights"}) -> tensor<6x8xf32> {
  %a = sft.read @a : tensor<6x8xf32>
  %b = sft.read @b : tensor<6x8xf32>
  %y = sft.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// A rotation's gradient is the rotation back, and the other way round.
sft.parameter @x : tensor<6x8xf32> roles ["tokens", "heads"] checkpoint "x" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[P:.+]]: tensor<6xi32>, %[[DY:.+]]: tensor<6x8xf32>
// CHECK-NEXT:    %[[COS:.+]], %[[SIN:.+]] = sft.rotary_table
// CHECK-NEXT:    sft.read @x
// CHECK-NEXT:    %[[MIDDLE:.+]] = sft.rotary %{{.+}}, %[[P]], %[[COS]], %[[SIN]] :
// CHECK-NEXT:    %[[Y:.+]] = sft.rotary %[[MIDDLE]], %[[P]], %[[COS]], %[[SIN]] {inverse} :
// CHECK-NEXT:    %[[DMIDDLE:.+]] = sft.rotary %[[DY]], %[[P]], %[[COS]], %[[SIN]] {sft.backward} :
// CHECK-NEXT:    %[[DX:.+]] = sft.rotary %[[DMIDDLE]], %[[P]], %[[COS]], %[[SIN]] {inverse, sft.backward} :
// CHECK-NEXT:    sft.accumulate_gradient %[[DX]], @x
func.func @forward(%p: tensor<6xi32>, %dy: tensor<6x8xf32> {sft.table = "weights"}) -> tensor<6x8xf32> {
  %cosine, %sine = sft.rotary_table {rows = 64 : i64, head_dim = 4 : i64, parameters = {theta = 10000.0 : f64}} : () -> (tensor<64x4xf32>, tensor<64x4xf32>)
  %x = sft.read @x : tensor<6x8xf32>
  %turned = sft.rotary %x, %p, %cosine, %sine : (tensor<6x8xf32>, tensor<6xi32>, tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<6x8xf32>
  %y = sft.rotary %turned, %p, %cosine, %sine {inverse} : (tensor<6x8xf32>, tensor<6xi32>, tensor<64x4xf32>, tensor<64x4xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

sft.parameter @q : tensor<6x8xf32> roles ["tokens", "heads"] checkpoint "q" decay true
sft.parameter @k : tensor<6x4xf32> roles ["tokens", "kv_heads"] checkpoint "k" decay true
sft.parameter @v : tensor<6x4xf32> roles ["tokens", "kv_heads"] checkpoint "v" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[P:.+]]: tensor<6xi32>, %[[D:.+]]: tensor<6xi32>, %[[PW:.+]]: tensor<6xi32>, %[[DW:.+]]: tensor<6xi32>, %[[DY:.+]]: tensor<6x8xf32>
// CHECK-NEXT:    %[[Q:.+]] = sft.read @q
// CHECK-NEXT:    %[[K:.+]] = sft.read @k
// CHECK-NEXT:    %[[V:.+]] = sft.read @v
// CHECK-NEXT:    %[[Y:.+]], %[[LSE:.+]] = sft.attention
// CHECK-NEXT:    %[[DQ:.+]], %[[DK:.+]], %[[DV:.+]] = sft.attention_grad %[[DY]], %[[Q]], %[[K]], %[[V]], %[[Y]], %[[LSE]], %[[P]], %[[D]], %[[PW]], %[[DW]]
// CHECK-SAME:      {head_dim = 4 : i64, scale = 3.000000e-01 : f64, sft.backward}
// CHECK-NEXT:    sft.accumulate_gradient %[[DV]], @v
// CHECK-NEXT:    sft.accumulate_gradient %[[DK]], @k
// CHECK-NEXT:    sft.accumulate_gradient %[[DQ]], @q
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%p: tensor<6xi32>, %d: tensor<6xi32>, %pw: tensor<6xi32>, %dw: tensor<6xi32>, %dy: tensor<6x8xf32> {sft.table = "weights"}) -> tensor<6x8xf32> {
  %q = sft.read @q : tensor<6x8xf32>
  %k = sft.read @k : tensor<6x4xf32>
  %v = sft.read @v : tensor<6x4xf32>
  %y, %lse = sft.attention %q, %k, %v, %p, %d, %pw, %dw {head_dim = 4 : i64, scale = 0.3 : f64} : (tensor<6x8xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>) -> (tensor<6x8xf32>, tensor<6x2xf32>)
  return %y : tensor<6x8xf32>
}

// -----

sft.parameter @table : tensor<32x8xf32> roles ["vocabulary", "hidden"] checkpoint "t" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[TOKENS:.+]]: tensor<?xi32>, %[[DY:.+]]: tensor<?x8xf32>
// CHECK:         %[[Y:.+]] = sft.embedding
// CHECK-NEXT:    %[[DT:.+]] = sft.embedding_grad %[[DY]], %[[TOKENS]] {rows = 32 : i64, sft.backward} : (tensor<?x8xf32>, tensor<?xi32>) -> tensor<32x8xf32>
// CHECK-NEXT:    sft.accumulate_gradient %[[DT]], @table
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%tokens: tensor<?xi32>, %dy: tensor<?x8xf32> {sft.table = "weights"}) -> tensor<?x8xf32> {
  %table = sft.read @table : tensor<32x8xf32>
  %y = sft.embedding %tokens, %table : (tensor<?xi32>, tensor<32x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// The row statistics are built again from the logits alone: they belong to no half, so that CSE merges them with the forward
// half's. Only what depends on a gradient is marked.
sft.parameter @logits : tensor<6x32xf32> roles ["tokens", "vocabulary"] checkpoint "l" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[TARGETS:.+]]: tensor<6xi32>, %[[DY:.+]]: tensor<6xf32>
// CHECK-NEXT:    %[[L:.+]] = sft.read @logits
// CHECK-NEXT:    %[[Y:.+]] = sft.cross_entropy %[[L]], %[[TARGETS]]
// CHECK-NEXT:    %[[MAX:.+]] = sft.row_max %[[L]] : (
// CHECK-NEXT:    %[[SUM:.+]] = sft.exp_sum %[[L]], %[[MAX]] : (
// CHECK-NEXT:    %[[DL:.+]] = sft.cross_entropy_grad %[[DY]], %[[L]], %[[MAX]], %[[SUM]], %[[TARGETS]] {sft.backward}
// CHECK-NEXT:    sft.accumulate_gradient %[[DL]], @logits
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%targets: tensor<6xi32>, %dy: tensor<6xf32> {sft.table = "weights"}) -> tensor<6xf32> {
  %logits = sft.read @logits : tensor<6x32xf32>
  %y = sft.cross_entropy %logits, %targets : (tensor<6x32xf32>, tensor<6xi32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}
