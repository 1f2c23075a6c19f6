// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK: sft.parameter @w : tensor<64x32xf32> roles ["heads", "hidden"] checkpoint "model.w" decay true
sft.parameter @w : tensor<64x32xf32> roles ["heads", "hidden"] checkpoint "model.w" decay true
// CHECK: sft.parameter @tied : tensor<8xbf16> roles ["hidden"] checkpoint "a" aliases ["b", "c"] decay false {note = 1 : i64}
sft.parameter @tied : tensor<8xbf16> roles ["hidden"] checkpoint "a" aliases ["b", "c"] decay false {note = 1 : i64}
// CHECK: sft.state @group : tensor<8x256xf32> "parameter" of "decayed"
sft.state @group : tensor<8x256xf32> "parameter" of "decayed"
// CHECK: sft.state @moment : tensor<4x256xf32> "exp_avg" of "decayed" sliced
sft.state @moment : tensor<4x256xf32> "exp_avg" of "decayed" sliced
sft.state @gradient : tensor<8x256xf32> "gradient" of "decayed"
sft.state @variance : tensor<4x256xf32> "exp_avg_sq" of "decayed" sliced
sft.state @scalars : tensor<16xf32> "scalar" of "step_scalars"

// CHECK-LABEL: func.func @symbols
func.func @symbols() {
  // CHECK: %[[W:.+]] = sft.read @w : tensor<64x32xf32>
  %w = sft.read @w : tensor<64x32xf32>
  // The part that one rank of two holds.
  // CHECK: sft.read @w : tensor<32x32xf32>
  %part = sft.read @w : tensor<32x32xf32>
  // CHECK: %[[GROUP:.+]] = sft.read @group : tensor<8x256xf32>
  %group = sft.read @group : tensor<8x256xf32>
  // CHECK: sft.write %[[GROUP]], @group : tensor<8x256xf32>
  sft.write %group, @group : tensor<8x256xf32>
  // CHECK: sft.accumulate_gradient %[[W]], @w : tensor<64x32xf32>
  sft.accumulate_gradient %w, @w : tensor<64x32xf32>
  // CHECK: sft.axis_offset ["tp", "cp"] * 160 : tensor<1xi32>
  %offset = sft.axis_offset ["tp", "cp"] * 160 : tensor<1xi32>
  return
}

// Every access, both reductions and the column.
// CHECK-LABEL: func.func @fused
// CHECK: %[[R:.+]]:3 = sft.fused %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} attributes {kernel = "k0", operand_access = [#sft.access<row>, #sft.access<partner, period = 4>, #sft.access<periodic, period = 4>, #sft.access<column>, #sft.access<scalar>, #sft.access<uniform, element = 2>, #sft.access<gathered, period = 4, index = 4, offset = 7>, #sft.access<uniform>], result_access = [#sft.access<row>, #sft.access<scalar>, #sft.access<column_sum>], width = 8 : i64} :
// CHECK: ^bb0(%{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32, %{{.+}}: f32, %{{.+}}: i32, %{{.+}}: f32, %{{.+}}: f32, %{{.+}}: i32):
// CHECK: sft.row_reduce sum %{{.+}} : f32
// CHECK: sft.row_reduce max %{{.+}} : f32
// CHECK: sft.column_index : i32
// CHECK: sft.yield %{{.+}}, %{{.+}}, %{{.+}} : f32, f32, f32
func.func @fused(%x: tensor<6x8xf32>, %p: tensor<6x4xf32>, %c: tensor<8xf32>, %s: tensor<6xi32>, %u: tensor<16xf32>,
                 %t: tensor<10x4xbf16>, %o: tensor<1xi32>) -> (tensor<6x8xf32>, tensor<6xf32>, tensor<8xf32>) {
  %r:3 = sft.fused %x, %x, %p, %c, %s, %u, %t, %o attributes {
      operand_access = [#sft.access<row>, #sft.access<partner, period = 4>, #sft.access<periodic, period = 4>,
                        #sft.access<column>, #sft.access<scalar>, #sft.access<uniform, element = 2>,
                        #sft.access<gathered, period = 4, index = 4, offset = 7>, #sft.access<uniform>],
      result_access = [#sft.access<row>, #sft.access<scalar>, #sft.access<column_sum>], width = 8 : i64, kernel = "k0"}
      : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x4xf32>, tensor<8xf32>, tensor<6xi32>, tensor<16xf32>, tensor<10x4xbf16>,
         tensor<1xi32>) -> (tensor<6x8xf32>, tensor<6xf32>, tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %d: f32, %e: f32, %f: i32, %g: f32, %h: f32, %i: i32):
    %0 = arith.addf %a, %b : f32
    %1 = sft.row_reduce sum %0 : f32
    %2 = sft.row_reduce max %a : f32
    %3 = sft.column_index : i32
    %4 = arith.cmpi eq, %3, %f : i32
    %5 = arith.select %4, %d, %e : f32
    %6 = math.exp %5 : f32
    %7 = arith.addf %1, %2 : f32
    sft.yield %6, %7, %h : f32, f32, f32
  }
  return %r#0, %r#1, %r#2 : tensor<6x8xf32>, tensor<6xf32>, tensor<8xf32>
}

// Without operands every element is made from nothing.
// CHECK-LABEL: func.func @fused_source
// CHECK: sft.fused attributes {operand_access = [], result_access = [#sft.access<row>], width = 4 : i64} : () -> tensor<2x4xf32>
func.func @fused_source() -> tensor<2x4xf32> {
  %r = sft.fused attributes {operand_access = [], result_access = [#sft.access<row>], width = 4 : i64} : () -> tensor<2x4xf32> {
    %zero = arith.constant 0.0 : f32
    sft.yield %zero : f32
  }
  return %r : tensor<2x4xf32>
}
