// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: %[[X:.+]]: tensor<?x64xf32>, %[[W:.+]]: tensor<128x64xf32>, %[[B:.+]]: tensor<128xf32>
func.func @matmul(%x: tensor<?x64xf32>, %w: tensor<128x64xf32>, %b: tensor<128xf32>) {
  // CHECK: %[[Y:.+]] = sft.matmul %[[X]], %[[W]] {transpose_b} : (tensor<?x64xf32>, tensor<128x64xf32>) -> tensor<?x128xf32>
  %y = sft.matmul %x, %w {transpose_b} : (tensor<?x64xf32>, tensor<128x64xf32>) -> tensor<?x128xf32>
  // CHECK: sft.matmul %[[X]], %[[W]], %[[B]] {transpose_b} : (tensor<?x64xf32>, tensor<128x64xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  %z = sft.matmul %x, %w, %b {transpose_b} : (tensor<?x64xf32>, tensor<128x64xf32>, tensor<128xf32>) -> tensor<?x128xf32>
  // CHECK: sft.matmul %[[Y]], %[[W]] : (tensor<?x128xf32>, tensor<128x64xf32>) -> tensor<?x64xf32>
  %dx = sft.matmul %y, %w : (tensor<?x128xf32>, tensor<128x64xf32>) -> tensor<?x64xf32>
  // CHECK: sft.matmul %[[Y]], %[[X]] {transpose_a} : (tensor<?x128xf32>, tensor<?x64xf32>) -> tensor<128x64xf32>
  %dw = sft.matmul %y, %x {transpose_a} : (tensor<?x128xf32>, tensor<?x64xf32>) -> tensor<128x64xf32>
  // CHECK: sft.column_sum %[[Y]] : (tensor<?x128xf32>) -> tensor<128xf32>
  %db = sft.column_sum %y : (tensor<?x128xf32>) -> tensor<128xf32>
  return
}
