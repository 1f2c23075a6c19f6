// RUN: sftc-opt %s --verify-diagnostics --split-input-file

func.func @add_c1(%a: tensor<4x64xf32>, %b: tensor<5x64xf32>) {
  // expected-error @below {{operands have different types: 'tensor<4x64xf32>' and 'tensor<5x64xf32>'}}
  %s = sft.add %a, %b : (tensor<4x64xf32>, tensor<5x64xf32>) -> tensor<4x64xf32>
  return
}

// -----

func.func @silu_gate_c1(%a: tensor<4x64xf32>, %b: tensor<4x64xbf16>) {
  // expected-error @below {{operands have different types: 'tensor<4x64xf32>' and 'tensor<4x64xbf16>'}}
  %s = sft.silu_gate %a, %b : (tensor<4x64xf32>, tensor<4x64xbf16>) -> tensor<4x64xf32>
  return
}

// -----

func.func @silu_gate_grad_type(%a: tensor<4x64xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4x64xf32>', 'tensor<4x64xf32>' are incompatible}}
  %0, %1 = sft.silu_gate_grad %a, %a, %a : (tensor<4x64xf32>, tensor<4x64xf32>, tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x32xf32>)
  return
}
