// RUN: sftc-opt %s --sft-generate-row-kernels=target-cpu=x86-64-v3 | FileCheck %s --implicit-check-not=rk_3
// Regions that differ only in their operands share one kernel, whatever the order of the functions; other widths, accesses or
// arithmetic make another. The number of rows makes none: a kernel runs over any range of rows.

// CHECK: module attributes {sft.kernel_object = dense_resource<row_kernels> : tensor<{{[0-9]+}}xui8>, sft.kernel_target = {cpu = "x86-64-v3", features = [{{.*}}"avx2"{{.*}}]}}
// CHECK-LABEL: func.func @a
// CHECK:         sft.fused %{{.+}} attributes {kernel = "rk_0_twice",
// CHECK:         sft.fused %{{.+}} attributes {kernel = "rk_0_twice",
// CHECK:         sft.fused %{{.+}} attributes {kernel = "rk_1_fused",
// CHECK-LABEL: func.func @b
// CHECK:         sft.fused %{{.+}} attributes {kernel = "rk_0_twice",
// CHECK:         sft.fused %{{.+}} attributes {kernel = "rk_2_odd_name",
// CHECK: row_kernels: "0x

func.func @a(%x: tensor<6x8xf32>) {
  %0 = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 8 : i64, sft.name = "twice"} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%e: f32):
    %s = arith.addf %e, %e : f32
    sft.yield %s : f32
  }
  %1 = sft.fused %0 attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%e: f32):
    %s = arith.addf %e, %e : f32
    sft.yield %s : f32
  }
  %2 = sft.fused %1 attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 8 : i64} : (tensor<6x8xf32>) -> tensor<6x8xf32> {
  ^bb0(%e: f32):
    %s = arith.mulf %e, %e : f32
    sft.yield %s : f32
  }
  return
}
func.func @b(%x: tensor<3x8xf32>, %y: tensor<3x4xf32>) {
  %0 = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 8 : i64} : (tensor<3x8xf32>) -> tensor<3x8xf32> {
  ^bb0(%e: f32):
    %s = arith.addf %e, %e : f32
    sft.yield %s : f32
  }
  %1 = sft.fused %y attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 4 : i64, sft.name = "odd name"} : (tensor<3x4xf32>) -> tensor<3x4xf32> {
  ^bb0(%e: f32):
    %s = arith.addf %e, %e : f32
    sft.yield %s : f32
  }
  return
}
