// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK-LABEL: func.func @loss
// CHECK-SAME: %[[X:.+]]: tensor<?x320xf32>, %[[T:.+]]: tensor<?xi32>, %[[W:.+]]: tensor<?xf32>, %[[O:.+]]: tensor<1xi32>
func.func @loss(%x: tensor<?x320xf32>, %t: tensor<?xi32>, %w: tensor<?xf32>, %o: tensor<1xi32>) {
  // CHECK: sft.cross_entropy %[[X]], %[[T]] : (tensor<?x320xf32>, tensor<?xi32>) -> tensor<?xf32>
  %loss = sft.cross_entropy %x, %t : (tensor<?x320xf32>, tensor<?xi32>) -> tensor<?xf32>
  // CHECK: %[[M:.+]] = sft.row_max %[[X]] : (tensor<?x320xf32>) -> tensor<?xf32>
  %m = sft.row_max %x : (tensor<?x320xf32>) -> tensor<?xf32>
  // CHECK: %[[S:.+]] = sft.exp_sum %[[X]], %[[M]] : (tensor<?x320xf32>, tensor<?xf32>) -> tensor<?xf32>
  %s = sft.exp_sum %x, %m : (tensor<?x320xf32>, tensor<?xf32>) -> tensor<?xf32>
  // CHECK: %[[P:.+]] = sft.pick %[[X]], %[[T]] : (tensor<?x320xf32>, tensor<?xi32>) -> tensor<?xf32>
  %p = sft.pick %x, %t : (tensor<?x320xf32>, tensor<?xi32>) -> tensor<?xf32>
  // CHECK: sft.pick %[[X]], %[[T]], %[[O]] : (tensor<?x320xf32>, tensor<?xi32>, tensor<1xi32>) -> tensor<?xf32>
  %part = sft.pick %x, %t, %o : (tensor<?x320xf32>, tensor<?xi32>, tensor<1xi32>) -> tensor<?xf32>
  // CHECK: sft.token_loss %[[M]], %[[S]], %[[P]], %[[T]] : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>
  %l = sft.token_loss %m, %s, %p, %t : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi32>) -> tensor<?xf32>
  // CHECK: sft.cross_entropy_grad %[[W]], %[[X]], %[[M]], %[[S]], %[[T]] : (tensor<?xf32>, tensor<?x320xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi32>) -> tensor<?x320xf32>
  %g = sft.cross_entropy_grad %w, %x, %m, %s, %t : (tensor<?xf32>, tensor<?x320xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi32>) -> tensor<?x320xf32>
  // CHECK: sft.cross_entropy_grad %[[W]], %[[X]], %[[M]], %[[S]], %[[T]], %[[O]] :
  %h = sft.cross_entropy_grad %w, %x, %m, %s, %t, %o : (tensor<?xf32>, tensor<?x320xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi32>, tensor<1xi32>) -> tensor<?x320xf32>
  return
}
