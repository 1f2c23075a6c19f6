// RUN: sftc-opt %s --verify-diagnostics --split-input-file

func.func @embedding_type(%tokens: tensor<4xi32>, %table: tensor<320x64xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<4x64xf32>' are incompatible with return type(s) of operation 'tensor<5x64xf32>'}}
  %x = sft.embedding %tokens, %table : (tensor<4xi32>, tensor<320x64xf32>) -> tensor<5x64xf32>
  return
}

// -----

func.func @embedding_operands(%tokens: tensor<4xi32>) {
  // expected-error @below {{expected 2 or more operands, but found 1}}
  %x = sft.embedding %tokens : (tensor<4xi32>) -> tensor<4x64xf32>
  return
}

// -----

func.func @embedding_tokens(%tokens: tensor<4xf32>, %table: tensor<320x64xf32>) {
  // expected-error @below {{operand #0 must be 1D tensor of 32-bit signless integer values}}
  %x = sft.embedding %tokens, %table : (tensor<4xf32>, tensor<320x64xf32>) -> tensor<4x64xf32>
  return
}

// -----

func.func @embedding_grad_type(%g: tensor<4x64xf32>, %tokens: tensor<4xi32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<10x64xf32>' are incompatible}}
  %x = sft.embedding_grad %g, %tokens {rows = 10 : i64} : (tensor<4x64xf32>, tensor<4xi32>) -> tensor<11x64xf32>
  return
}
