// RUN: sftc-opt %s --sft-propagate-sharding --verify-diagnostics --split-input-file

// expected-error @below {{has no `sft.mesh`}}
module {
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [4, 3]>, sft.role_axes = {tokens = ["cp"], ffn = ["tp"]}} {
  func.func @rows(%a: tensor<8x4xf32> {sft.roles = ["tokens", "hidden"]}) -> tensor<8x4xf32> {
    // expected-error @below {{factor t of sft.add has 8 elements, which cannot be cut over ["cp"] of 3 ranks}}
    %y = sft.add %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp"], [4]>, sft.role_axes = {ffn = ["tp"]}} {
  sft.parameter @w : tensor<6x8xf32> roles ["ffn", "hidden"] checkpoint "w" decay true
  func.func @parameter(%x: tensor<8x8xf32>) -> tensor<8x6xf32> {
    %w = sft.read @w : tensor<6x8xf32>
    // expected-error @below {{factor n of sft.matmul has 6 elements, which cannot be cut over ["tp"] of 4 ranks}}
    %y = sft.matmul %x, %w {transpose_b} : (tensor<8x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
    return %y : tensor<8x6xf32>
  }
}

// -----

// Columns divide by the ranks, whole heads do not: heads are what counts.
// huggingface/transformers #48307: more ranks than KV heads loaded fine and broke in the first forward.
module attributes {sft.mesh = #sft.mesh<["tp"], [4]>, sft.role_axes = {heads = ["tp"], kv_heads = ["tp"]}} {
  func.func @kv_heads(%q: tensor<8x48xf32> {sft.roles = ["tokens", "heads"]}, %k: tensor<8x12xf32> {sft.roles = ["tokens", "kv_heads"]}, %p: tensor<8xi32>) -> tensor<8x48xf32> {
    // expected-error @below {{factor g of sft.attention has 3 elements, which cannot be cut over ["tp"] of 4 ranks}}
    %y, %l = sft.attention %q, %k, %k, %p, %p, %p, %p {head_dim = 4 : i64, scale = 0.5 : f64} : (tensor<8x48xf32>, tensor<8x12xf32>, tensor<8x12xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>) -> (tensor<8x48xf32>, tensor<8x12xf32>)
    return %y : tensor<8x48xf32>
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp"], [2]>, sft.role_axes = {heads = ["tp"]}} {
  func.func @rotated_heads(%x: tensor<8x12xf32> {sft.roles = ["tokens", "heads"]}, %p: tensor<8xi32>) -> tensor<8x12xf32> {
    %cosine, %sine = sft.rotary_table {rows = 8 : i64, head_dim = 4 : i64, parameters = {}} : () -> (tensor<8x4xf32>, tensor<8x4xf32>)
    // expected-error @below {{factor h of sft.rotary has 3 elements, which cannot be cut over ["tp"] of 2 ranks}}
    %y = sft.rotary %x, %p, %cosine, %sine : (tensor<8x12xf32>, tensor<8xi32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x12xf32>
    return %y : tensor<8x12xf32>
  }
}

// -----

// openxla/xla #45717: an annotation of the wrong rank.
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [1, 2]>, sft.role_axes = {tokens = ["cp"]}} {
  // expected-error @below {{argument 1 has 1 roles for 2 dimensions}}
  func.func @too_few(%t: tensor<8xi32> {sft.roles = ["tokens"]}, %a: tensor<8x4xf32> {sft.roles = ["tokens"]}) -> tensor<8x4xf32> {
    %y = sft.add %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [1, 2]>, sft.role_axes = {tokens = ["cp"]}} {
  // expected-error @below {{argument 0 has 2 roles for 1 dimensions}}
  func.func @too_many(%t: tensor<8xi32> {sft.roles = ["tokens", "hidden"]}) {
    return
  }
}
