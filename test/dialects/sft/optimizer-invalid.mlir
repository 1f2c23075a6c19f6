// RUN: sftc-opt %s --verify-diagnostics --split-input-file

func.func @clip_scale_c1(%s: tensor<16xf32>) {
  // expected-error @below {{needs at least one sum of squares}}
  %n, %c = sft.clip_scale %s : (tensor<16xf32>) -> (tensor<1xf32>, tensor<1xf32>)
  return
}

// -----

func.func @adamw_c1(%p: tensor<8x256xf32>, %m: tensor<4x256xf32>, %c: tensor<1xf32>, %s: tensor<16xf32>) {
  // expected-error @below {{group tensors have different types: 'tensor<8x256xf32>' and 'tensor<4x256xf32>'}}
  %0:3 = sft.adamw %p, %p, %m, %m, %c, %s : (tensor<8x256xf32>, tensor<8x256xf32>, tensor<4x256xf32>, tensor<4x256xf32>, tensor<1xf32>, tensor<16xf32>) -> (tensor<8x256xf32>, tensor<8x256xf32>, tensor<8x256xf32>)
  return
}

// -----

func.func @sgd_c1(%p: tensor<8x256xf32>, %g: tensor<8x256xbf16>, %c: tensor<1xf32>, %s: tensor<16xf32>) {
  // expected-error @below {{group tensors have different types: 'tensor<8x256xf32>' and 'tensor<8x256xbf16>'}}
  %0 = sft.sgd %p, %g, %c, %s : (tensor<8x256xf32>, tensor<8x256xbf16>, tensor<1xf32>, tensor<16xf32>) -> tensor<8x256xf32>
  return
}

// -----

func.func @sum_of_squares_type(%g: tensor<8x256xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<1xf32>' are incompatible}}
  %0 = sft.sum_of_squares %g : (tensor<8x256xf32>) -> tensor<8xf32>
  return
}
