// RUN: sftc-opt %s --verify-diagnostics --split-input-file

func.func @matmul_c1(%x: tensor<4x64xf32>, %w: tensor<128x32xf32>) {
  // expected-error @below {{contracts 64 elements of a with 32 of b}}
  %y = sft.matmul %x, %w {transpose_b} : (tensor<4x64xf32>, tensor<128x32xf32>) -> tensor<4x128xf32>
  return
}

// -----

func.func @matmul_c1_transpose_a(%x: tensor<4x64xf32>, %w: tensor<5x32xf32>) {
  // expected-error @below {{contracts 4 elements of a with 5 of b}}
  %y = sft.matmul %x, %w {transpose_a} : (tensor<4x64xf32>, tensor<5x32xf32>) -> tensor<64x32xf32>
  return
}

// -----

func.func @matmul_c2(%x: tensor<4x64xf32>, %w: tensor<128x64xf32>, %b: tensor<64xf32>) {
  // expected-error @below {{bias has 64 elements but the result has 128 columns}}
  %y = sft.matmul %x, %w, %b {transpose_b} : (tensor<4x64xf32>, tensor<128x64xf32>, tensor<64xf32>) -> tensor<4x128xf32>
  return
}

// -----

func.func @matmul_type(%x: tensor<4x64xf32>, %w: tensor<128x64xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4x128xf32>' are incompatible}}
  %y = sft.matmul %x, %w {transpose_b} : (tensor<4x64xf32>, tensor<128x64xf32>) -> tensor<4x64xf32>
  return
}

// -----

func.func @matmul_rank(%x: tensor<2x4x64xf32>, %w: tensor<128x64xf32>) {
  // expected-error @below {{operand #0 must be 2D tensor of 32-bit float or bfloat16 type values, but got 'tensor<2x4x64xf32>'}}
  %y = sft.matmul %x, %w {transpose_b} : (tensor<2x4x64xf32>, tensor<128x64xf32>) -> tensor<2x4x128xf32>
  return
}
