// RUN: sftc-opt %s --verify-diagnostics --split-input-file

func.func @rms_norm_c1(%x: tensor<4x64xf32>, %w: tensor<32xf32>) {
  // expected-error @below {{weight has 32 elements but a row has 64}}
  %y, %r = sft.rms_norm %x, %w {epsilon = 1.0e-05 : f64} : (tensor<4x64xf32>, tensor<32xf32>) -> (tensor<4x64xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<4x64xf32>, %w: tensor<64xf32>) {
  // expected-error @below {{epsilon 0.000000e+00 : f64 is not positive}}
  %y, %r = sft.rms_norm %x, %w {epsilon = 0.0 : f64} : (tensor<4x64xf32>, tensor<64xf32>) -> (tensor<4x64xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_c2_nan(%x: tensor<4x64xf32>, %w: tensor<64xf32>) {
  // expected-error @below {{is not positive}}
  %y, %r = sft.rms_norm %x, %w {epsilon = 0x7FF8000000000000 : f64} : (tensor<4x64xf32>, tensor<64xf32>) -> (tensor<4x64xf32>, tensor<4xf32>)
  return
}

// -----

func.func @rms_norm_grad_type(%g: tensor<4x64xf32>, %x: tensor<4x64xf32>, %w: tensor<64xf32>, %r: tensor<4xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4x64xf32>', 'tensor<64xf32>' are incompatible}}
  %dx, %dw = sft.rms_norm_grad %g, %x, %w, %r : (tensor<4x64xf32>, tensor<4x64xf32>, tensor<64xf32>, tensor<4xf32>) -> (tensor<4x64xf32>, tensor<4xf32>)
  return
}
