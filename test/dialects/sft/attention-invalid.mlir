// RUN: sftc-opt %s --verify-diagnostics --split-input-file

func.func @attention_c1_q(%q: tensor<4x60xf32>, %k: tensor<4x32xf32>, %p: tensor<4xi32>) {
  // expected-error @below {{q has 60 columns, k 32 and v 32; with head_dim 16 they must be whole heads}}
  %y, %l = sft.attention %q, %k, %k, %p, %p, %p, %p {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x60xf32>, tensor<4x32xf32>, tensor<4x32xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x60xf32>, tensor<4x3xf32>)
  return
}

// -----

func.func @attention_c1_head_dim(%q: tensor<4x64xf32>, %p: tensor<4xi32>) {
  // expected-error @below {{q has 64 columns, k 64 and v 64; with head_dim 0 they must be whole heads}}
  %y, %l = sft.attention %q, %q, %q, %p, %p, %p, %p {head_dim = 0 : i64, scale = 0.25 : f64} : (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x64xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @attention_c1_dynamic(%q: tensor<4x?xf32>, %p: tensor<4xi32>) {
  // expected-error @below {{with head_dim 16 they must be whole heads}}
  %y, %l = sft.attention %q, %q, %q, %p, %p, %p, %p {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x?xf32>, tensor<4x?xf32>, tensor<4x?xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x?xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @attention_c1_groups(%q: tensor<4x64xf32>, %k: tensor<4x48xf32>, %p: tensor<4xi32>) {
  // expected-error @below {{q has 64 columns, k 48 and v 48; with head_dim 16 they must be whole heads, k and v of the same number that divides q's}}
  %y, %l = sft.attention %q, %k, %k, %p, %p, %p, %p {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x64xf32>, tensor<4x48xf32>, tensor<4x48xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x64xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @attention_c1_k(%q: tensor<4x64xf32>, %k: tensor<4x8xf32>, %p: tensor<4xi32>) {
  // expected-error @below {{q has 64 columns, k 8 and v 8; with head_dim 16 they must be whole heads}}
  %y, %l = sft.attention %q, %k, %k, %p, %p, %p, %p {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x64xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x64xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @attention_c1_v(%q: tensor<4x64xf32>, %k: tensor<4x32xf32>, %v: tensor<4x16xf32>, %p: tensor<4xi32>) {
  // expected-error @below {{q has 64 columns, k 32 and v 16; with head_dim 16 they must be whole heads}}
  %y, %l = sft.attention %q, %k, %v, %p, %p, %p, %p {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x64xf32>, tensor<4x32xf32>, tensor<4x16xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x64xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<4x64xf32>, %k: tensor<8x32xf32>, %p: tensor<4xi32>) {
  // expected-error @below {{rows of q, k and v must agree with their positions and documents}}
  %y, %l = sft.attention %q, %k, %k, %p, %p, %p, %p {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x64xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x64xf32>, tensor<4x4xf32>)
  return
}

// -----

func.func @attention_grad_type(%q: tensor<4x64xf32>, %l: tensor<4x4xf32>, %p: tensor<4xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4x64xf32>', 'tensor<4x64xf32>', 'tensor<4x64xf32>' are incompatible}}
  %0, %1, %2 = sft.attention_grad %q, %q, %q, %q, %q, %l, %p, %p, %p, %p {head_dim = 16 : i64, scale = 0.25 : f64} : (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x32xf32>)
  return
}
