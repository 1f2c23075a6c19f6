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
// CHECK-SAME:    (%[[INPUT:.+]]: tensor<6x8xf32>, %[[WEIGHT:.+]]: tensor<8xf32>)
// CHECK-NEXT:    %{{.+}}:2 = sft.fused %[[INPUT]], %[[WEIGHT]] attributes {operand_access = [#sft.access<row>, #sft.access<column>], result_access = [#sft.access<row>, #sft.access<scalar>], sft.name = "rms_norm", width = 8 : i64}
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
// CHECK-NEXT:      sft.yield %[[Y]], %[[RSTD]] : f32, f32
func.func @rms_norm(%x: tensor<6x8xf32>, %w: tensor<8xf32>) -> tensor<6x8xf32> {
  %y, %rstd = sft.rms_norm %x, %w {epsilon = 1.0e-03 : f64} : (tensor<6x8xf32>, tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6xf32>)
  return %y : tensor<6x8xf32>
}

// The sum over the columns stays inside the row, that of the weight's gradient goes over the rows.
// CHECK-LABEL: func.func @rms_norm_grad
// CHECK-SAME:    (%[[G:.+]]: tensor<6x8xf32>, %[[INPUT:.+]]: tensor<6x8xf32>, %[[WEIGHT:.+]]: tensor<8xf32>, %[[RSTD:.+]]: tensor<6xf32>)
// CHECK-NEXT:    sft.fused %[[G]], %[[INPUT]], %[[WEIGHT]], %[[RSTD]] attributes {operand_access = [#sft.access<row>, #sft.access<row>, #sft.access<column>, #sft.access<scalar>], result_access = [#sft.access<row>, #sft.access<column_sum>], sft.name = "rms_norm_grad", width = 8 : i64}
// CHECK-NEXT:    ^bb0(%[[DY:.+]]: f32, %[[X:.+]]: f32, %[[W:.+]]: f32, %[[R:.+]]: f32):
// CHECK-NEXT:      %[[SCALED:.+]] = arith.mulf %[[DY]], %[[W]]
// CHECK-NEXT:      %[[NORMAL:.+]] = arith.mulf %[[X]], %[[R]]
// CHECK-NEXT:      %[[PRODUCT:.+]] = arith.mulf %[[SCALED]], %[[NORMAL]]
// CHECK-NEXT:      %[[DOT:.+]] = sft.row_reduce sum %[[PRODUCT]]
// CHECK-NEXT:      %[[N:.+]] = arith.constant 8.000000e+00
// CHECK-NEXT:      %[[MEAN:.+]] = arith.divf %[[DOT]], %[[N]]
// CHECK-NEXT:      %[[BACK:.+]] = arith.mulf %[[NORMAL]], %[[MEAN]]
// CHECK-NEXT:      %[[INNER:.+]] = arith.subf %[[SCALED]], %[[BACK]]
// CHECK-NEXT:      %[[DX:.+]] = arith.mulf %[[R]], %[[INNER]]
// CHECK-NEXT:      %[[DW:.+]] = arith.mulf %[[DY]], %[[NORMAL]]
// CHECK-NEXT:      sft.yield %[[DX]], %[[DW]] : f32, f32
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
// CHECK-NEXT:      %[[TURNED:.+]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT:      sft.yield %[[TURNED]]
// CHECK:         sft.fused
// CHECK:           %[[A:.+]] = arith.mulf
// CHECK-NEXT:      %[[B:.+]] = arith.mulf
// CHECK-NEXT:      %[[BACK:.+]] = arith.subf %[[A]], %[[B]]
// CHECK-NEXT:      sft.yield %[[BACK]]
func.func @rotary(%x: tensor<6x8xf32>, %p: tensor<6xi32>, %c: tensor<16x4xf32>, %s: tensor<16x4xf32>) -> tensor<6x8xf32> {
  %y = sft.rotary %x, %p, %c, %s : (tensor<6x8xf32>, tensor<6xi32>, tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<6x8xf32>
  %z = sft.rotary %y, %p, %c, %s {inverse} : (tensor<6x8xf32>, tensor<6xi32>, tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<6x8xf32>
  return %z : tensor<6x8xf32>
}

// Rows of a table, and the first row that a rank holds.
// CHECK-LABEL: func.func @embedding
// CHECK-SAME:    (%[[T:.+]]: tensor<6xi32>, %[[TABLE:.+]]: tensor<32x8xf32>, %[[FIRST:.+]]: tensor<1xi32>)
// CHECK:         sft.fused %[[T]], %[[TABLE]] attributes {operand_access = [#sft.access<scalar>, #sft.access<gathered, period = 8, index = 0>], result_access = [#sft.access<row>], sft.name = "embedding", width = 8 : i64}
// CHECK-NEXT:    ^bb0(%{{.+}}: i32, %[[E:.+]]: f32):
// CHECK-NEXT:      sft.yield %[[E]]
// CHECK:         sft.fused %[[T]], %[[TABLE]], %[[FIRST]] attributes {operand_access = [#sft.access<scalar>, #sft.access<gathered, period = 8, index = 0, offset = 2>, #sft.access<uniform>]
// CHECK-NEXT:    ^bb0(%{{.+}}: i32, %[[E:.+]]: f32, %{{.+}}: i32):
// CHECK-NEXT:      sft.yield %[[E]]
func.func @embedding(%t: tensor<6xi32>, %table: tensor<32x8xf32>, %first: tensor<1xi32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %y = sft.embedding %t, %table : (tensor<6xi32>, tensor<32x8xf32>) -> tensor<6x8xf32>
  %z = sft.embedding %t, %table, %first : (tensor<6xi32>, tensor<32x8xf32>, tensor<1xi32>) -> tensor<6x8xf32>
  return %y, %z : tensor<6x8xf32>, tensor<6x8xf32>
}

// Only scalars of each row: the width is 1. Rows with target -1 give 0.
// CHECK-LABEL: func.func @token_loss
// CHECK-SAME:    (%[[M:.+]]: tensor<6xf32>, %[[S:.+]]: tensor<6xf32>, %[[P:.+]]: tensor<6xf32>, %[[T:.+]]: tensor<6xi32>)
// CHECK-NEXT:    sft.fused %[[M]], %[[S]], %[[P]], %[[T]] attributes {{.*}}sft.name = "token_loss", width = 1 : i64}
// CHECK-NEXT:    ^bb0(%[[MAX:.+]]: f32, %[[SUM:.+]]: f32, %[[PICKED:.+]]: f32, %[[TARGET:.+]]: i32):
// CHECK-NEXT:      %[[GAP:.+]] = arith.subf %[[MAX]], %[[PICKED]]
// CHECK-NEXT:      %[[LOG:.+]] = math.log %[[SUM]]
// CHECK-NEXT:      %[[LOSS:.+]] = arith.addf %[[GAP]], %[[LOG]]
// CHECK:           %[[IGNORED:.+]] = arith.cmpi slt, %[[TARGET]],
// CHECK:           %[[RESULT:.+]] = arith.select %[[IGNORED]], %{{.+}}, %[[LOSS]]
// CHECK-NEXT:      sft.yield %[[RESULT]]
func.func @token_loss(%m: tensor<6xf32>, %s: tensor<6xf32>, %p: tensor<6xf32>, %t: tensor<6xi32>) -> tensor<6xf32> {
  %l = sft.token_loss %m, %s, %p, %t : (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi32>) -> tensor<6xf32>
  return %l : tensor<6xf32>
}

// Not symmetric in its operands.
// CHECK-LABEL: func.func @silu_gate
// CHECK-SAME:    (%[[GATE:.+]]: tensor<6x8xf32>, %[[UP:.+]]: tensor<6x8xf32>)
// CHECK-NEXT:    sft.fused %[[GATE]], %[[UP]] attributes {operand_access = [#sft.access<row>, #sft.access<row>], result_access = [#sft.access<row>], sft.name = "silu_gate", width = 8 : i64}
// CHECK-NEXT:    ^bb0(%[[G:.+]]: f32, %[[U:.+]]: f32):
// CHECK:           %[[MINUS:.+]] = arith.negf %[[G]]
// CHECK-NEXT:      %[[EXP:.+]] = math.exp %[[MINUS]]
// CHECK-NEXT:      %[[BELOW:.+]] = arith.addf %{{.+}}, %[[EXP]]
// CHECK-NEXT:      %[[SIGMOID:.+]] = arith.divf %{{.+}}, %[[BELOW]]
// CHECK-NEXT:      %[[SILU:.+]] = arith.mulf %[[G]], %[[SIGMOID]]
// CHECK-NEXT:      %[[Y:.+]] = arith.mulf %[[SILU]], %[[U]]
// CHECK-NEXT:      sft.yield %[[Y]]
func.func @silu_gate(%g: tensor<6x8xf32>, %u: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %y = sft.silu_gate %g, %u : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// CHECK-LABEL: func.func @silu_gate_grad
// CHECK-SAME:    (%[[DY:.+]]: tensor<6x8xf32>, %[[GATE:.+]]: tensor<6x8xf32>, %[[UP:.+]]: tensor<6x8xf32>)
// CHECK-NEXT:    %[[R:.+]]:2 = sft.fused %[[DY]], %[[GATE]], %[[UP]] attributes {{.*}}result_access = [#sft.access<row>, #sft.access<row>], sft.name = "silu_gate_grad"
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @silu_gate_grad(%dy: tensor<6x8xf32>, %g: tensor<6x8xf32>, %u: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %dg, %du = sft.silu_gate_grad %dy, %g, %u : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<6x8xf32>)
  return %dg, %du : tensor<6x8xf32>, tensor<6x8xf32>
}

// Row statistics of the loss; a column that another rank holds picks 0.
// CHECK-LABEL: func.func @statistics
// CHECK-SAME:    (%[[L:.+]]: tensor<6x8xf32>, %[[T:.+]]: tensor<6xi32>, %[[FIRST:.+]]: tensor<1xi32>)
// CHECK-NEXT:    %[[MAX:.+]] = sft.fused %[[L]] attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<scalar>], sft.name = "row_max"
// CHECK:           %[[M:.+]] = sft.row_reduce max %
// CHECK-NEXT:      sft.yield %[[M]]
// CHECK:         %[[SUM:.+]] = sft.fused %[[L]], %[[MAX]] attributes {operand_access = [#sft.access<row>, #sft.access<scalar>], result_access = [#sft.access<scalar>], sft.name = "exp_sum"
// CHECK-NEXT:    ^bb0(%[[E:.+]]: f32, %[[M:.+]]: f32):
// CHECK-NEXT:      %[[D:.+]] = arith.subf %[[E]], %[[M]]
// CHECK-NEXT:      %[[X:.+]] = math.exp %[[D]]
// CHECK-NEXT:      %[[S:.+]] = sft.row_reduce sum %[[X]]
// CHECK-NEXT:      sft.yield %[[S]]
// CHECK:         sft.fused %[[L]], %[[T]], %[[FIRST]] attributes {operand_access = [#sft.access<row>, #sft.access<scalar>, #sft.access<uniform>], result_access = [#sft.access<scalar>], sft.name = "pick"
// CHECK-NEXT:    ^bb0(%[[E:.+]]: f32, %[[I:.+]]: i32, %[[O:.+]]: i32):
// CHECK-NEXT:      %[[LOCAL:.+]] = arith.subi %[[I]], %[[O]]
// CHECK-NEXT:      %[[COLUMN:.+]] = sft.column_index
// CHECK-NEXT:      %[[HERE:.+]] = arith.cmpi eq, %[[COLUMN]], %[[LOCAL]]
// CHECK:           %[[PICKED:.+]] = arith.select %[[HERE]], %[[E]],
// CHECK-NEXT:      %[[S:.+]] = sft.row_reduce sum %[[PICKED]]
// CHECK-NEXT:      sft.yield %[[S]]
func.func @statistics(%l: tensor<6x8xf32>, %t: tensor<6xi32>, %first: tensor<1xi32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %m = sft.row_max %l : (tensor<6x8xf32>) -> tensor<6xf32>
  %s = sft.exp_sum %l, %m : (tensor<6x8xf32>, tensor<6xf32>) -> tensor<6xf32>
  %p = sft.pick %l, %t, %first : (tensor<6x8xf32>, tensor<6xi32>, tensor<1xi32>) -> tensor<6xf32>
  return %s, %p : tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: func.func @cross_entropy_grad
// CHECK-SAME:    (%[[G:.+]]: tensor<6xf32>, %[[L:.+]]: tensor<6x8xf32>, %[[M:.+]]: tensor<6xf32>, %[[S:.+]]: tensor<6xf32>, %[[T:.+]]: tensor<6xi32>)
// CHECK-NEXT:    sft.fused %[[G]], %[[L]], %[[M]], %[[S]], %[[T]] attributes {operand_access = [#sft.access<scalar>, #sft.access<row>, #sft.access<scalar>, #sft.access<scalar>, #sft.access<scalar>], result_access = [#sft.access<row>], sft.name = "cross_entropy_grad"
// CHECK-NEXT:    ^bb0(%[[DY:.+]]: f32, %[[E:.+]]: f32, %[[MAX:.+]]: f32, %[[SUM:.+]]: f32, %[[TARGET:.+]]: i32):
// CHECK-NEXT:      %[[D:.+]] = arith.subf %[[E]], %[[MAX]]
// CHECK-NEXT:      %[[X:.+]] = math.exp %[[D]]
// CHECK-NEXT:      %[[P:.+]] = arith.divf %[[X]], %[[SUM]]
// CHECK:           %[[HERE:.+]] = arith.cmpi eq, %{{.+}}, %[[TARGET]]
// CHECK:           %[[HOT:.+]] = arith.select %[[HERE]]
// CHECK-NEXT:      %[[PMINUS:.+]] = arith.subf %[[P]], %[[HOT]]
// CHECK-NEXT:      %[[DL:.+]] = arith.mulf %[[DY]], %[[PMINUS]]
// CHECK:           %[[IGNORED:.+]] = arith.cmpi slt, %[[TARGET]],
// CHECK:           %[[RESULT:.+]] = arith.select %[[IGNORED]], %{{.+}}, %[[DL]]
// CHECK-NEXT:      sft.yield %[[RESULT]]
func.func @cross_entropy_grad(%g: tensor<6xf32>, %l: tensor<6x8xf32>, %m: tensor<6xf32>, %s: tensor<6xf32>, %t: tensor<6xi32>) -> tensor<6x8xf32> {
  %d = sft.cross_entropy_grad %g, %l, %m, %s, %t : (tensor<6xf32>, tensor<6x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xi32>) -> tensor<6x8xf32>
  return %d : tensor<6x8xf32>
}

// CHECK-LABEL: func.func @column_sum
// CHECK-NEXT:    sft.fused %{{.+}} attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<column_sum>], sft.name = "column_sum", width = 8 : i64}
// CHECK-NEXT:    ^bb0(%[[X:.+]]: f32):
// CHECK-NEXT:      sft.yield %[[X]]
func.func @column_sum(%x: tensor<6x8xf32>) -> tensor<8xf32> {
  %y = sft.column_sum %x : (tensor<6x8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// The optimizers read their numbers from the table of a step, element by element.
// CHECK-LABEL: func.func @optimizers
// CHECK-SAME:    (%[[P:.+]]: tensor<2x256xf32>, %[[G:.+]]: tensor<2x256xf32>, %[[M:.+]]: tensor<2x256xf32>, %[[V:.+]]: tensor<2x256xf32>, %[[T:.+]]: tensor<16xf32>, %[[Q:.+]]: tensor<1xf32>)
// CHECK-NEXT:    %[[CLIP:.+]]:2 = sft.fused %[[T]], %[[Q]] attributes {operand_access = [#sft.access<uniform, element = 7>, #sft.access<scalar>], result_access = [#sft.access<scalar>, #sft.access<scalar>], sft.name = "clip_scale", width = 1 : i64}
// CHECK:         sft.fused %[[P]], %[[G]], %[[M]], %[[V]], %[[CLIP]]#1, %[[T]], %[[T]], %[[T]], %[[T]], %[[T]], %[[T]], %[[T]], %[[T]], %[[T]] attributes {operand_access = [#sft.access<row>, #sft.access<row>, #sft.access<row>, #sft.access<row>, #sft.access<uniform>, #sft.access<uniform>, #sft.access<uniform, element = 1>, #sft.access<uniform, element = 2>, #sft.access<uniform, element = 3>, #sft.access<uniform, element = 4>, #sft.access<uniform, element = 5>, #sft.access<uniform, element = 6>, #sft.access<uniform, element = 9>, #sft.access<uniform, element = 10>], result_access = [#sft.access<row>, #sft.access<row>, #sft.access<row>], sft.name = "adamw", width = 256 : i64}
// CHECK:         sft.fused %[[P]], %[[G]], %[[CLIP]]#1, %[[T]] attributes {operand_access = [#sft.access<row>, #sft.access<row>, #sft.access<uniform>, #sft.access<uniform>], result_access = [#sft.access<row>], sft.name = "sgd", width = 256 : i64}
func.func @optimizers(%p: tensor<2x256xf32>, %g: tensor<2x256xf32>, %m: tensor<2x256xf32>, %v: tensor<2x256xf32>, %t: tensor<16xf32>, %q: tensor<1xf32>) -> (tensor<2x256xf32>, tensor<2x256xf32>) {
  %norm, %scale = sft.clip_scale %t, %q : (tensor<16xf32>, tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  %np, %nm, %nv = sft.adamw %p, %g, %m, %v, %scale, %t {decay} : (tensor<2x256xf32>, tensor<2x256xf32>, tensor<2x256xf32>, tensor<2x256xf32>, tensor<1xf32>, tensor<16xf32>) -> (tensor<2x256xf32>, tensor<2x256xf32>, tensor<2x256xf32>)
  %s = sft.sgd %p, %g, %scale, %t : (tensor<2x256xf32>, tensor<2x256xf32>, tensor<1xf32>, tensor<16xf32>) -> tensor<2x256xf32>
  return %np, %s : tensor<2x256xf32>, tensor<2x256xf32>
}

// Library kernels stay.
// CHECK-LABEL: func.func @library
// CHECK-NEXT:    sft.matmul
// CHECK-NEXT:    return
func.func @library(%a: tensor<6x8xf32>, %b: tensor<8x4xf32>) -> tensor<6x4xf32> {
  %y = sft.matmul %a, %b : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
