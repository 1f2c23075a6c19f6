// RUN: sftc-opt %s --sft-build-backward --split-input-file | FileCheck %s
// The operand order and the transpositions of both gradients, for each way to multiply. All sizes differ.

sft.parameter @a : tensor<3x4xf32> roles ["hidden", "ffn"] checkpoint "a" decay true
sft.parameter @b : tensor<4x5xf32> roles ["ffn", "hidden"] checkpoint "b" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[DY:.+]]: tensor<3x5xf32> {sft.table = "weights"}) -> tensor<3x5xf32> {
// CHECK-NEXT:    %[[A:.+]] = sft.read @a
// CHECK-NEXT:    %[[B:.+]] = sft.read @b
// CHECK-NEXT:    %[[Y:.+]] = sft.matmul %[[A]], %[[B]] :
// CHECK-NEXT:    %[[DA:.+]] = sft.matmul %[[DY]], %[[B]] {sft.backward, transpose_b} : (tensor<3x5xf32>, tensor<4x5xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:    %[[DB:.+]] = sft.matmul %[[A]], %[[DY]] {sft.backward, transpose_a} : (tensor<3x4xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
// CHECK-NEXT:    sft.accumulate_gradient %[[DB]], @b {sft.backward}
// CHECK-NEXT:    sft.accumulate_gradient %[[DA]], @a {sft.backward}
// CHECK-NEXT:    return %[[Y]]
// CHECK-LABEL: func.func @evaluate
// CHECK-NEXT:    %[[A:.+]] = sft.read @a
// CHECK-NEXT:    %[[B:.+]] = sft.read @b
// CHECK-NEXT:    %[[Y:.+]] = sft.matmul %[[A]], %[[B]] :
// CHECK-NEXT:    return %[[Y]]
// CHECK-NOT:   @forward
func.func @forward(%dy: tensor<3x5xf32> {sft.table = "weights"}) -> tensor<3x5xf32> {
  %a = sft.read @a : tensor<3x4xf32>
  %b = sft.read @b : tensor<4x5xf32>
  %y = sft.matmul %a, %b : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

sft.parameter @a : tensor<3x4xf32> roles ["hidden", "ffn"] checkpoint "a" decay true
sft.parameter @b : tensor<5x4xf32> roles ["ffn", "hidden"] checkpoint "b" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[DY:.+]]: tensor<3x5xf32>
// CHECK-NEXT:    %[[A:.+]] = sft.read @a
// CHECK-NEXT:    %[[B:.+]] = sft.read @b
// CHECK-NEXT:    %[[Y:.+]] = sft.matmul %[[A]], %[[B]] {transpose_b}
// CHECK-NEXT:    %[[DA:.+]] = sft.matmul %[[DY]], %[[B]] {sft.backward} : (tensor<3x5xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:    %[[DB:.+]] = sft.matmul %[[DY]], %[[A]] {sft.backward, transpose_a} : (tensor<3x5xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
// CHECK-NEXT:    sft.accumulate_gradient %[[DB]], @b
// CHECK-NEXT:    sft.accumulate_gradient %[[DA]], @a
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%dy: tensor<3x5xf32> {sft.table = "weights"}) -> tensor<3x5xf32> {
  %a = sft.read @a : tensor<3x4xf32>
  %b = sft.read @b : tensor<5x4xf32>
  %y = sft.matmul %a, %b {transpose_b} : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

sft.parameter @a : tensor<4x3xf32> roles ["hidden", "ffn"] checkpoint "a" decay true
sft.parameter @b : tensor<4x5xf32> roles ["ffn", "hidden"] checkpoint "b" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[DY:.+]]: tensor<3x5xf32>
// CHECK-NEXT:    %[[A:.+]] = sft.read @a
// CHECK-NEXT:    %[[B:.+]] = sft.read @b
// CHECK-NEXT:    %[[Y:.+]] = sft.matmul %[[A]], %[[B]] {transpose_a}
// CHECK-NEXT:    %[[DA:.+]] = sft.matmul %[[B]], %[[DY]] {sft.backward, transpose_b} : (tensor<4x5xf32>, tensor<3x5xf32>) -> tensor<4x3xf32>
// CHECK-NEXT:    %[[DB:.+]] = sft.matmul %[[A]], %[[DY]] {sft.backward} : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
// CHECK-NEXT:    sft.accumulate_gradient %[[DB]], @b
// CHECK-NEXT:    sft.accumulate_gradient %[[DA]], @a
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%dy: tensor<3x5xf32> {sft.table = "weights"}) -> tensor<3x5xf32> {
  %a = sft.read @a : tensor<4x3xf32>
  %b = sft.read @b : tensor<4x5xf32>
  %y = sft.matmul %a, %b {transpose_a} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

sft.parameter @a : tensor<4x3xf32> roles ["hidden", "ffn"] checkpoint "a" decay true
sft.parameter @b : tensor<5x4xf32> roles ["ffn", "hidden"] checkpoint "b" decay true
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[DY:.+]]: tensor<3x5xf32>
// CHECK-NEXT:    %[[A:.+]] = sft.read @a
// CHECK-NEXT:    %[[B:.+]] = sft.read @b
// CHECK-NEXT:    %[[Y:.+]] = sft.matmul %[[A]], %[[B]] {transpose_a, transpose_b}
// CHECK-NEXT:    %[[DA:.+]] = sft.matmul %[[B]], %[[DY]] {sft.backward, transpose_a, transpose_b} : (tensor<5x4xf32>, tensor<3x5xf32>) -> tensor<4x3xf32>
// CHECK-NEXT:    %[[DB:.+]] = sft.matmul %[[DY]], %[[A]] {sft.backward, transpose_a, transpose_b} : (tensor<3x5xf32>, tensor<4x3xf32>) -> tensor<5x4xf32>
// CHECK-NEXT:    sft.accumulate_gradient %[[DB]], @b
// CHECK-NEXT:    sft.accumulate_gradient %[[DA]], @a
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%dy: tensor<3x5xf32> {sft.table = "weights"}) -> tensor<3x5xf32> {
  %a = sft.read @a : tensor<4x3xf32>
  %b = sft.read @b : tensor<5x4xf32>
  %y = sft.matmul %a, %b {transpose_a, transpose_b} : (tensor<4x3xf32>, tensor<5x4xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

// A bias gets the column sums; the input does not come from a parameter, so nobody makes its gradient.
sft.parameter @w : tensor<5x4xf32> roles ["ffn", "hidden"] checkpoint "w" decay true
sft.parameter @bias : tensor<5xf32> roles ["ffn"] checkpoint "b" decay false
// CHECK-LABEL: func.func @train
// CHECK-SAME:    (%[[X:.+]]: tensor<?x4xf32>, %[[DY:.+]]: tensor<?x5xf32>
// CHECK-NEXT:    %[[W:.+]] = sft.read @w
// CHECK-NEXT:    %[[BIAS:.+]] = sft.read @bias
// CHECK-NEXT:    %[[Y:.+]] = sft.matmul %[[X]], %[[W]], %[[BIAS]] {transpose_b}
// CHECK-NEXT:    %[[DW:.+]] = sft.matmul %[[DY]], %[[X]] {sft.backward, transpose_a} : (tensor<?x5xf32>, tensor<?x4xf32>) -> tensor<5x4xf32>
// CHECK-NEXT:    %[[DBIAS:.+]] = sft.column_sum %[[DY]] {sft.backward} : (tensor<?x5xf32>) -> tensor<5xf32>
// CHECK-NEXT:    sft.accumulate_gradient %[[DBIAS]], @bias
// CHECK-NEXT:    sft.accumulate_gradient %[[DW]], @w
// CHECK-NEXT:    return %[[Y]]
func.func @forward(%x: tensor<?x4xf32>, %dy: tensor<?x5xf32> {sft.table = "weights"}) -> tensor<?x5xf32> {
  %w = sft.read @w : tensor<5x4xf32>
  %bias = sft.read @bias : tensor<5xf32>
  %y = sft.matmul %x, %w, %bias {transpose_b} : (tensor<?x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<?x5xf32>
  return %y : tensor<?x5xf32>
}
