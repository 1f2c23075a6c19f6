// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK-LABEL: func.func @norm
// CHECK-SAME: %[[X:.+]]: tensor<?x64xf32>, %[[W:.+]]: tensor<64xf32>
func.func @norm(%x: tensor<?x64xf32>, %w: tensor<64xf32>) {
  // CHECK: %[[Y:.+]], %[[RSTD:.+]] = sft.rms_norm %[[X]], %[[W]] {epsilon = 1.000000e-05 : f64} : (tensor<?x64xf32>, tensor<64xf32>) -> (tensor<?x64xf32>, tensor<?xf32>)
  %y, %rstd = sft.rms_norm %x, %w {epsilon = 1.0e-05 : f64} : (tensor<?x64xf32>, tensor<64xf32>) -> (tensor<?x64xf32>, tensor<?xf32>)
  // CHECK: sft.rms_norm_grad %[[Y]], %[[X]], %[[W]], %[[RSTD]] : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<64xf32>, tensor<?xf32>) -> (tensor<?x64xf32>, tensor<64xf32>)
  %dx, %dw = sft.rms_norm_grad %y, %x, %w, %rstd : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<64xf32>, tensor<?xf32>) -> (tensor<?x64xf32>, tensor<64xf32>)
  return
}
