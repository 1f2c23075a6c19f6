// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK-LABEL: func.func @optimizer
// CHECK-SAME: %[[P:.+]]: tensor<8x256xf32>, %[[G:.+]]: tensor<8x256xf32>, %[[M:.+]]: tensor<8x256xf32>, %[[V:.+]]: tensor<8x256xf32>, %[[S:.+]]: tensor<16xf32>
func.func @optimizer(%p: tensor<8x256xf32>, %g: tensor<8x256xf32>, %m: tensor<8x256xf32>, %v: tensor<8x256xf32>, %s: tensor<16xf32>) {
  // CHECK: %[[SQ:.+]] = sft.sum_of_squares %[[G]] : (tensor<8x256xf32>) -> tensor<1xf32>
  %sq = sft.sum_of_squares %g : (tensor<8x256xf32>) -> tensor<1xf32>
  // CHECK: %{{.+}}, %[[SCALE:.+]] = sft.clip_scale %[[S]], %[[SQ]], %[[SQ]] : (tensor<16xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  %norm, %scale = sft.clip_scale %s, %sq, %sq : (tensor<16xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  // CHECK: sft.adamw %[[P]], %[[G]], %[[M]], %[[V]], %[[SCALE]], %[[S]] {decay} : {{.*}} -> (tensor<8x256xf32>, tensor<8x256xf32>, tensor<8x256xf32>)
  %0:3 = sft.adamw %p, %g, %m, %v, %scale, %s {decay} : (tensor<8x256xf32>, tensor<8x256xf32>, tensor<8x256xf32>, tensor<8x256xf32>, tensor<1xf32>, tensor<16xf32>) -> (tensor<8x256xf32>, tensor<8x256xf32>, tensor<8x256xf32>)
  // CHECK: sft.sgd %[[P]], %[[G]], %[[SCALE]], %[[S]] : (tensor<8x256xf32>, tensor<8x256xf32>, tensor<1xf32>, tensor<16xf32>) -> tensor<8x256xf32>
  %1 = sft.sgd %p, %g, %scale, %s : (tensor<8x256xf32>, tensor<8x256xf32>, tensor<1xf32>, tensor<16xf32>) -> tensor<8x256xf32>
  return
}
