// RUN: sftc-opt %s --sft-build-backward --split-input-file | FileCheck %s

// A value used three times collects the sum of three gradients; the sum goes on, not a part of it.
sft.parameter @x : tensor<6x8xf32> roles ["tokens", "hidden"] checkpoint "x" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[DY:.+]]: tensor<6x8xf32>
// CHECK:         %[[X:.+]] = sft.read @x
// CHECK-NEXT:    %[[INNER:.+]] = sft.silu_gate %[[X]], %[[X]]
// CHECK-NEXT:    %[[Y:.+]] = sft.add %[[INNER]], %[[X]]
// CHECK-NEXT:    %[[DGATE:.+]], %[[DUP:.+]] = sft.silu_gate_grad %[[DY]], %[[X]], %[[X]] {sft.backward}
// CHECK-NEXT:    %[[TWO:.+]] = sft.add %[[DY]], %[[DGATE]] {sft.backward}
// CHECK-NEXT:    %[[THREE:.+]] = sft.add %[[TWO]], %[[DUP]] {sft.backward}
// CHECK-NEXT:    sft.accumulate_gradient %[[THREE]], @x
// CHECK-NOT:     sft.accumulate_gradient
// CHECK:         return %[[Y]]
func.func @forward(%dy: tensor<6x8xf32> {sft.table = "weights"}) -> tensor<6x8xf32> {
  %x = sft.read @x : tensor<6x8xf32>
  %inner = sft.silu_gate %x, %x : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %y = sft.add %inner, %x : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// A tied parameter that is read twice gets two contributions.
sft.parameter @table : tensor<32x8xf32> roles ["vocabulary", "hidden"] checkpoint "t" aliases ["head"] decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[TOKENS:.+]]: tensor<6xi32>, %[[DY:.+]]: tensor<6x32xf32>
// CHECK:         %[[TABLE:.+]] = sft.read @table
// CHECK-NEXT:    %[[X:.+]] = sft.embedding %[[TOKENS]], %[[TABLE]]
// CHECK-NEXT:    %[[HEAD:.+]] = sft.read @table
// CHECK-NEXT:    sft.matmul %[[X]], %[[HEAD]]
// CHECK-NEXT:    %[[DX:.+]] = sft.matmul %[[DY]], %[[HEAD]] {sft.backward}
// CHECK-NEXT:    %[[DHEAD:.+]] = sft.matmul %[[DY]], %[[X]] {sft.backward, transpose_a}
// CHECK-NEXT:    sft.accumulate_gradient %[[DHEAD]], @table
// CHECK-NEXT:    %[[DTABLE:.+]] = sft.embedding_grad %[[DX]], %[[TOKENS]]
// CHECK-NEXT:    sft.accumulate_gradient %[[DTABLE]], @table
// CHECK-NEXT:    return
func.func @forward(%tokens: tensor<6xi32>, %dy: tensor<6x32xf32> {sft.table = "weights"}) -> tensor<6x32xf32> {
  %table = sft.read @table : tensor<32x8xf32>
  %x = sft.embedding %tokens, %table : (tensor<6xi32>, tensor<32x8xf32>) -> tensor<6x8xf32>
  %head = sft.read @table : tensor<32x8xf32>
  %y = sft.matmul %x, %head {transpose_b} : (tensor<6x8xf32>, tensor<32x8xf32>) -> tensor<6x32xf32>
  return %y : tensor<6x32xf32>
}

// -----

// Nothing is built behind values that no parameter reaches, nor for a value that the loss does not need.
sft.parameter @w : tensor<8x8xf32> roles ["ffn", "hidden"] checkpoint "w" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[X:.+]]: tensor<6x8xf32>, %[[DY:.+]]: tensor<6x8xf32>
// CHECK:         %[[INPUT:.+]] = sft.silu_gate %[[X]], %[[X]]
// CHECK:         %[[Y:.+]] = sft.matmul
// CHECK-NEXT:    %[[DW:.+]] = sft.matmul %[[DY]], %[[INPUT]] {sft.backward, transpose_a}
// CHECK-NEXT:    sft.accumulate_gradient %[[DW]], @w
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%x: tensor<6x8xf32>, %dy: tensor<6x8xf32> {sft.table = "weights"}) -> tensor<6x8xf32> {
  %input = sft.silu_gate %x, %x : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %w = sft.read @w : tensor<8x8xf32>
  %unused = sft.add %w, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = sft.matmul %input, %w {transpose_b} : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
