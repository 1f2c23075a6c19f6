// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

module attributes {sft.mesh = #sft.mesh<["tp", "cp", "dp"], [2, 4, 1]>} {
  // CHECK-LABEL: func.func @collective
  // CHECK-SAME: %[[X:.+]]: tensor<16x32xf32>
  func.func @collective(%x: tensor<16x32xf32>) {
    // CHECK: sft.all_gather %[[X]] ["cp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<64x32xf32>
    %0 = sft.all_gather %x ["cp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<64x32xf32>
    // CHECK: sft.all_gather %[[X]] ["tp", "cp"] {dimension = 1 : i64} : (tensor<16x32xf32>) -> tensor<16x256xf32>
    %1 = sft.all_gather %x ["tp", "cp"] {dimension = 1 : i64} : (tensor<16x32xf32>) -> tensor<16x256xf32>
    // CHECK: sft.reduce_scatter %[[X]] ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>} : (tensor<16x32xf32>) -> tensor<4x32xf32>
    %2 = sft.reduce_scatter %x ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>} : (tensor<16x32xf32>) -> tensor<4x32xf32>
    // CHECK: sft.all_reduce %[[X]] ["tp"] {kind = #sft<reduction max>} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %3 = sft.all_reduce %x ["tp"] {kind = #sft<reduction max>} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    // CHECK: sft.all_to_all %[[X]] ["cp"] {concat = 0 : i64, split = 1 : i64} : (tensor<16x32xf32>) -> tensor<64x8xf32>
    %4 = sft.all_to_all %x ["cp"] {split = 1 : i64, concat = 0 : i64} : (tensor<16x32xf32>) -> tensor<64x8xf32>
    // CHECK: sft.slice %[[X]] ["tp"] {dimension = 1 : i64} : (tensor<16x32xf32>) -> tensor<16x16xf32>
    %5 = sft.slice %x ["tp"] {dimension = 1 : i64} : (tensor<16x32xf32>) -> tensor<16x16xf32>
    // CHECK: sft.reorder %[[X]] ["cp"] : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %6 = sft.reorder %x ["cp"] : (tensor<16x32xf32>) -> tensor<16x32xf32>
    // CHECK: sft.reorder %[[X]] ["cp"] {inverse} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %7 = sft.reorder %x ["cp"] {inverse} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    // A group of one rank is legal.
    // CHECK: sft.all_reduce %[[X]] ["dp"]
    %8 = sft.all_reduce %x ["dp"] {kind = #sft<reduction sum>} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}
