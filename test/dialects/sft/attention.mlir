// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK-LABEL: func.func @attention
// CHECK-SAME: %[[Q:.+]]: tensor<4x64xf32>, %[[K:.+]]: tensor<8x32xf32>, %[[V:.+]]: tensor<8x32xf32>, %[[QP:.+]]: tensor<4xi32>, %[[QD:.+]]: tensor<4xi32>, %[[KP:.+]]: tensor<8xi32>, %[[KD:.+]]: tensor<8xi32>
func.func @attention(%q: tensor<4x64xf32>, %k: tensor<8x32xf32>, %v: tensor<8x32xf32>, %qp: tensor<4xi32>, %qd: tensor<4xi32>,
                     %kp: tensor<8xi32>, %kd: tensor<8xi32>) {
  // CHECK: %[[Y:.+]], %[[LSE:.+]] = sft.attention %[[Q]], %[[K]], %[[V]], %[[QP]], %[[QD]], %[[KP]], %[[KD]] {head_dim = 16 : i64, scale = 2.500000e-01 : f64} : (tensor<4x64xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<4xi32>, tensor<4xi32>, tensor<8xi32>, tensor<8xi32>) -> (tensor<4x64xf32>, tensor<4x4xf32>)
  %y, %lse = sft.attention %q, %k, %v, %qp, %qd, %kp, %kd {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x64xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<4xi32>, tensor<4xi32>, tensor<8xi32>, tensor<8xi32>) -> (tensor<4x64xf32>, tensor<4x4xf32>)
  // CHECK: sft.attention_grad %[[Y]], %[[Q]], %[[K]], %[[V]], %[[Y]], %[[LSE]], %[[QP]], %[[QD]], %[[KP]], %[[KD]] {head_dim = 16 : i64, scale = 2.500000e-01 : f64} : {{.*}} -> (tensor<4x64xf32>, tensor<8x32xf32>, tensor<8x32xf32>)
  %dq, %dk, %dv = sft.attention_grad %y, %q, %k, %v, %y, %lse, %qp, %qd, %kp, %kd {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x64xf32>, tensor<4x64xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<4x64xf32>, tensor<4x4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<8xi32>, tensor<8xi32>) -> (tensor<4x64xf32>, tensor<8x32xf32>, tensor<8x32xf32>)
  return
}
