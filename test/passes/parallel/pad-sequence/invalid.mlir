// RUN: sftc-opt %s --sft-pad-sequence="tokens=130 rule=none" --verify-diagnostics --split-input-file
// RUN: not sftc-opt %s --sft-pad-sequence 2>&1 | FileCheck %s
// CHECK: error: tokens is 0; a pack holds at least one

// NVIDIA-NeMo/RL #3380: a length that 2 * cp does not divide made every row fail, late, and blamed another setting.
// expected-error @below {{a pack of 130 tokens over 4 ranks would need padding, which the rule `none` forbids; the nearest valid --tokens are 128 and 136}}
// expected-note @below {{sft.attention needs a multiple of 8: zigzag order cuts a pack into 2*cp equal chunks}}
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [1, 4]>, sft.token_axes = ["cp"], sft.token_order = "zigzag"} {
  func.func @forward(%q: tensor<?x8xf32>, %p: tensor<?xi32>) -> tensor<?x8xf32> {
    // expected-remark @below {{sequence: sft.attention needs a multiple of 8}}
    %a, %l = sft.attention %q, %q, %q, %p, %p, %p, %p {head_dim = 4 : i64, scale = 0.5 : f64} : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2xf32>)
    return %a : tensor<?x8xf32>
  }
}

// -----

// There is no valid number below.
// expected-error @below {{the nearest valid --tokens are 256}}
// expected-note @below {{sft.attention needs a multiple of 256: contiguous order cuts a pack into cp equal parts}}
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [1, 256]>, sft.token_axes = ["cp"], sft.token_order = "contiguous"} {
  func.func @forward(%q: tensor<?x8xf32>, %p: tensor<?xi32>) -> tensor<?x8xf32> {
    // expected-remark @below {{sequence: sft.attention needs a multiple of 256}}
    %a, %l = sft.attention %q, %q, %q, %p, %p, %p, %p {head_dim = 4 : i64, scale = 0.5 : f64} : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2xf32>)
    return %a : tensor<?x8xf32>
  }
}

// -----

// What fits passes.
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [1, 13]>, sft.token_axes = ["cp"], sft.token_order = "contiguous"} {
  func.func @forward(%q: tensor<?x8xf32>, %p: tensor<?xi32>) -> tensor<?x8xf32> {
    // expected-remark @below {{sequence: sft.attention needs a multiple of 13}}
    %a, %l = sft.attention %q, %q, %q, %p, %p, %p, %p {head_dim = 4 : i64, scale = 0.5 : f64} : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> (tensor<?x8xf32>, tensor<?x2xf32>)
    return %a : tensor<?x8xf32>
  }
}
