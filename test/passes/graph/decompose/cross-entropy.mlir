// RUN: sftc-opt %s --sft-decompose | FileCheck %s

// CHECK-LABEL: func.func @loss
// CHECK-SAME:    (%[[L:.+]]: tensor<?x32xf32>, %[[T:.+]]: tensor<?xi32>)
// CHECK-NEXT:    %[[MAX:.+]] = sft.row_max %[[L]] : (tensor<?x32xf32>) -> tensor<?xf32>
// CHECK-NEXT:    %[[SUM:.+]] = sft.exp_sum %[[L]], %[[MAX]]
// CHECK-NEXT:    %[[PICKED:.+]] = sft.pick %[[L]], %[[T]] :
// CHECK-NEXT:    %[[LOSS:.+]] = sft.token_loss %[[MAX]], %[[SUM]], %[[PICKED]], %[[T]]
// CHECK-NEXT:    return %[[LOSS]]
func.func @loss(%logits: tensor<?x32xf32>, %targets: tensor<?xi32>) -> tensor<?xf32> {
  %loss = sft.cross_entropy %logits, %targets : (tensor<?x32xf32>, tensor<?xi32>) -> tensor<?xf32>
  return %loss : tensor<?xf32>
}

// After CSE the loss and its gradient share one maximum and one sum.
// RUN: sftc-opt %s --sft-decompose --cse | FileCheck %s --check-prefix=SHARED
// SHARED-LABEL: func.func @loss_and_gradient
// SHARED-SAME:    (%[[L:.+]]: tensor<?x32xf32>, %[[T:.+]]: tensor<?xi32>, %[[G:.+]]: tensor<?xf32>)
// SHARED-NEXT:    %[[MAX:.+]] = sft.row_max
// SHARED-NEXT:    %[[SUM:.+]] = sft.exp_sum
// SHARED-NEXT:    sft.pick
// SHARED-NEXT:    sft.token_loss %[[MAX]], %[[SUM]]
// SHARED-NEXT:    sft.cross_entropy_grad %[[G]], %[[L]], %[[MAX]], %[[SUM]], %[[T]]
// SHARED-NEXT:    return
func.func @loss_and_gradient(%logits: tensor<?x32xf32>, %targets: tensor<?xi32>, %g: tensor<?xf32>) -> (tensor<?xf32>, tensor<?x32xf32>) {
  %loss = sft.cross_entropy %logits, %targets : (tensor<?x32xf32>, tensor<?xi32>) -> tensor<?xf32>
  %max = sft.row_max %logits : (tensor<?x32xf32>) -> tensor<?xf32>
  %sum = sft.exp_sum %logits, %max : (tensor<?x32xf32>, tensor<?xf32>) -> tensor<?xf32>
  %gradient = sft.cross_entropy_grad %g, %logits, %max, %sum, %targets {sft.backward} : (tensor<?xf32>, tensor<?x32xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xi32>) -> tensor<?x32xf32>
  return %loss, %gradient : tensor<?xf32>, tensor<?x32xf32>
}
