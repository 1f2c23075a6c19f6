// RUN: sftc-opt %s --verify-diagnostics --split-input-file

// The ops of the loss have no constraints beyond their types, which inference checks.

func.func @cross_entropy_type(%x: tensor<4x320xf32>, %t: tensor<4xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  %l = sft.cross_entropy %x, %t : (tensor<4x320xf32>, tensor<4xi32>) -> tensor<5xf32>
  return
}

// -----

func.func @row_max_type(%x: tensor<4x320xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  %m = sft.row_max %x : (tensor<4x320xf32>) -> tensor<320xf32>
  return
}

// -----

func.func @exp_sum_type(%x: tensor<4x320xf32>, %m: tensor<4xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  %s = sft.exp_sum %x, %m : (tensor<4x320xf32>, tensor<4xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @pick_type(%x: tensor<4x320xf32>, %t: tensor<4xi64>) {
  // expected-error @below {{operand #1 must be 1D tensor of 32-bit signless integer values}}
  %p = sft.pick %x, %t : (tensor<4x320xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @token_loss_type(%m: tensor<4xf32>, %t: tensor<4xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4xf32>' are incompatible}}
  %l = sft.token_loss %m, %m, %m, %t : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<3xf32>
  return
}

// -----

func.func @cross_entropy_grad_type(%x: tensor<4x320xf32>, %m: tensor<4xf32>, %t: tensor<4xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4x320xf32>' are incompatible}}
  %g = sft.cross_entropy_grad %m, %x, %m, %m, %t : (tensor<4xf32>, tensor<4x320xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<4x319xf32>
  return
}
