// RUN: sftc-opt %s --sft-form-row-kernels | FileCheck %s --implicit-check-not="= sft.add" --implicit-check-not="= sft.rms_norm"
// Each row op becomes one region: how it reaches its operands, how its results are written, and its arithmetic.

// CHECK-LABEL: func.func @add
// CHECK-SAME:    (%[[A:.+]]: tensor<6x8xf32>, %[[B:.+]]: tensor<6x8xf32>)
// CHECK-NEXT:    %[[Y:.+]] = sft.fused %[[A]], %[[B]] attributes {operand_access = [#sft.access<row>, #sft.access<row>], result_access = [#sft.access<row>], sft.backward, sft.name = "add", width = 8 : i64}
// CHECK-NEXT:    ^bb0(%[[X0:.+]]: f32, %[[X1:.+]]: f32):
// CHECK-NEXT:      %[[S:.+]] = arith.addf %[[X0]], %[[X1]] : f32
// CHECK-NEXT:      sft.yield %[[S]] : f32
// CHECK:         return %[[Y]]
func.func @add(%a: tensor<6x8xf32>, %b: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %y = sft.add %a, %b {sft.backward} : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// The mean divides by the columns; two results, one a scalar of each row.
// CHECK-LABEL: func.func @rms_norm
// CHECK-NEXT:    %{{.+}}:2 = sft.fused %{{.+}} attributes {operand_access = [#sft.access<row>, #sft.access<column>], result_access = [#sft.access<row>, #sft.access<scalar>], sft.name = "rms_norm", width = 8 : i64}
// CHECK-NEXT:    ^bb0(%[[X:.+]]: f32, %[[W:.+]]: f32):
// CHECK-NEXT:      %[[SQUARE:.+]] = arith.mulf %[[X]], %[[X]]
// CHECK-NEXT:      %[[SUM:.+]] = sft.row_reduce sum %[[SQUARE]]
// CHECK-NEXT:      %[[N:.+]] = arith.constant 8.000000e+00 : f32
// CHECK-NEXT:      %[[MEAN:.+]] = arith.divf %[[SUM]], %[[N]]
// CHECK-NEXT:      %[[EPS:.+]] = arith.constant 1.000000e-03 : f32
// CHECK-NEXT:      %[[SHIFTED:.+]] = arith.addf %[[MEAN]], %[[EPS]]
// CHECK-NEXT:      %[[RSTD:.+]] = math.rsqrt %[[SHIFTED]]
// CHECK-NEXT:      %[[SCALED:.+]] = arith.mulf %[[X]], %[[RSTD]]
// CHECK-NEXT:      %[[Y:.+]] = arith.mulf %[[SCALED]], %[[W]]
// CHECK-NEXT:      sft.yield %[[Y]], %[[RSTD]]
func.func @rms_norm(%x: tensor<6x8xf32>, %w: tensor<8xf32>) -> tensor<6x8xf32> {
  %y, %rstd = sft.rms_norm %x, %w {epsilon = 1.0e-03 : f64} : (tensor<6x8xf32>, tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6xf32>)
  return %y : tensor<6x8xf32>
}

// CHECK-LABEL: func.func @rms_norm_grad
// CHECK:         result_access = [#sft.access<row>, #sft.access<column_sum>], sft.name = "rms_norm_grad", width = 8 : i64}
func.func @rms_norm_grad(%g: tensor<6x8xf32>, %x: tensor<6x8xf32>, %w: tensor<8xf32>, %r: tensor<6xf32>) -> (tensor<6x8xf32>, tensor<8xf32>) {
  %dx, %dw = sft.rms_norm_grad %g, %x, %w, %r : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<8xf32>, tensor<6xf32>) -> (tensor<6x8xf32>, tensor<8xf32>)
  return %dx, %dw : tensor<6x8xf32>, tensor<8xf32>
}

// The element and its partner half a head away, turned by tables that are gathered by position; back with the sign changed.
// CHECK-LABEL: func.func @rotary
// CHECK-SAME:    (%[[X:.+]]: tensor<6x8xf32>, %[[P:.+]]: tensor<6xi32>, %[[C:.+]]: tensor<16x4xf32>, %[[S:.+]]: tensor<16x4xf32>)
// CHECK-NEXT:    sft.fused %[[X]], %[[X]], %[[P]], %[[C]], %[[S]] attributes {operand_access = [#sft.access<row>, #sft.access<partner, period = 4>, #sft.access<scalar>, #sft.access<gathered, period = 4, index = 2>, #sft.access<gathered, period = 4, index = 2>], result_access = [#sft.access<row>], sft.name = "rotary", width = 8 : i64}
// CHECK-NEXT:    ^bb0(%[[X0:.+]]: f32, %[[X1:.+]]: f32, %{{.+}}: i32, %[[COS:.+]]: f32, %[[SIN:.+]]: f32):
// CHECK-NEXT:      %[[A:.+]] = arith.mulf %[[X0]], %[[COS]]
// CHECK-NEXT:      %[[B:.+]] = arith.mulf %[[X1]], %[[SIN]]
// CHECK-NEXT:      arith.addf %[[A]], %[[B]]
// CHECK:         sft.fused
// CHECK:           %[[A:.+]] = arith.mulf
// CHECK-NEXT:      %[[B:.+]] = arith.mulf
// CHECK-NEXT:      arith.subf %[[A]], %[[B]]
func.func @rotary(%x: tensor<6x8xf32>, %p: tensor<6xi32>, %c: tensor<16x4xf32>, %s: tensor<16x4xf32>) -> tensor<6x8xf32> {
  %y = sft.rotary %x, %p, %c, %s : (tensor<6x8xf32>, tensor<6xi32>, tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<6x8xf32>
  %z = sft.rotary %y, %p, %c, %s {inverse} : (tensor<6x8xf32>, tensor<6xi32>, tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<6x8xf32>
  return %z : tensor<6x8xf32>
}

// Rows of a table, and the first row that a rank holds.
// CHECK-LABEL: func.func @embedding
// CHECK:         operand_access = [#sft.access<scalar>, #sft.access<gathered, period = 8, index = 0>], result_access = [#sft.access<row>], sft.name = "embedding", width = 8 : i64}
// CHECK:         operand_access = [#sft.access<scalar>, #sft.access<gathered, period = 8, index = 0, offset = 2>, #sft.access<uniform>]
func.func @embedding(%t: tensor<6xi32>, %table: tensor<32x8xf32>, %first: tensor<1xi32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %y = sft.embedding %t, %table : (tensor<6xi32>, tensor<32x8xf32>) -> tensor<6x8xf32>
  %z = sft.embedding %t, %table, %first : (tensor<6xi32>, tensor<32x8xf32>, tensor<1xi32>) -> tensor<6x8xf32>
  return %y, %z : tensor<6x8xf32>, tensor<6x8xf32>
}

// Only scalars of each row: the width is 1. Rows with target -1 give 0.
// CHECK-LABEL: func.func @token_loss
// CHECK:         sft.name = "token_loss", width = 1 : i64}
// CHECK-NEXT:    ^bb0(%[[MAX:.+]]: f32, %[[SUM:.+]]: f32, %[[PICKED:.+]]: f32, %[[TARGET:.+]]: i32):
// CHECK-NEXT:      %[[GAP:.+]] = arith.subf %[[MAX]], %[[PICKED]]
// CHECK-NEXT:      %[[LOG:.+]] = math.log %[[SUM]]
// CHECK-NEXT:      %[[LOSS:.+]] = arith.addf %[[GAP]], %[[LOG]]
// CHECK:           %[[IGNORED:.+]] = arith.cmpi slt, %[[TARGET]],
// CHECK:           arith.select %[[IGNORED]], %{{.+}}, %[[LOSS]]
func.func @token_loss(%m: tensor<6xf32>, %s: tensor<6xf32>, %p: tensor<6xf32>, %t: tensor<6xi32>) -> tensor<6xf32> {
  %l = sft.token_loss %m, %s, %p, %t : (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi32>) -> tensor<6xf32>
  return %l : tensor<6xf32>
}

// Library kernels stay.
// CHECK-LABEL: func.func @library
// CHECK-NEXT:    sft.matmul
// CHECK-NEXT:    return
func.func @library(%a: tensor<6x8xf32>, %b: tensor<8x4xf32>) -> tensor<6x4xf32> {
  %y = sft.matmul %a, %b : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
