// RUN: sftc-opt %s --sft-verify-sharded --verify-diagnostics --split-input-file

module {
  func.func @dynamic(%a: tensor<?x4xf32>) {
    // expected-error @below {{sharded level: result has type 'tensor<?x4xf32>'; shapes are static after sft-pad-sequence}}
    %y = sft.add %a, %a : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    return
  }
}

// -----

module {
  func.func @shardings_left(%a: tensor<8x4xf32>) {
    // expected-error @below {{sharded level: `sft.shardings` is left; run sft-partition first}}
    %y = sft.add %a, %a {sft.shardings = [#sft.sharding<[[], []], [], []>]} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return
  }
}

// -----

// Forgetting to put gathered zigzag rows into global order is silent otherwise.
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 2]>, sft.token_axes = ["cp"], sft.token_order = "zigzag"} {
  func.func @order(%a: tensor<4x4xf32>) {
    %g = sft.all_gather %a ["cp"] {dimension = 0 : i64} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    // expected-error @below {{sharded level: sft.add reads rows gathered from zigzag order, which are not in global order}}
    %y = sft.add %g, %g : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return
  }
  // Put into order, columns, rows over another axis: all fine.
  func.func @in_order(%a: tensor<4x4xf32>) {
    %g = sft.all_gather %a ["cp"] {dimension = 0 : i64} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %o = sft.reorder %g ["cp"] : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %0 = sft.add %o, %o : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %c = sft.all_gather %a ["cp"] {dimension = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x8xf32>
    %1 = sft.add %c, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %t = sft.all_gather %a ["tp"] {dimension = 0 : i64} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %2 = sft.add %t, %t : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return
  }
}

// -----

// What is gathered in the forward half is gathered again, not kept.
module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.token_axes = ["cp"], sft.token_order = "contiguous"} {
  func.func @gathered_lives_on(%a: tensor<4x4xf32>) {
    %g = sft.all_gather %a ["cp"] {dimension = 0 : i64} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %f = sft.add %g, %g : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    // expected-error @below {{sharded level: a value gathered in the forward half lives to the backward half; gather it again}}
    %y = sft.add %g, %f {sft.backward} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %b = sft.all_gather %a ["cp"] {dimension = 0 : i64, sft.backward} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %z = sft.add %b, %f {sft.backward} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.token_axes = ["cp"], sft.token_order = "zigzag"} {
  func.func @reordered_lives_on(%a: tensor<4x4xf32>) {
    %g = sft.all_gather %a ["cp"] {dimension = 0 : i64} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %o = sft.reorder %g ["cp"] : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // expected-error @below {{sharded level: a value gathered in the forward half lives to the backward half; gather it again}}
    %y = sft.add %o, %o {sft.backward} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return
  }
}

// -----

// Keys and values of one slot of a longer pack.
module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.padded_tokens = 8 : i64} {
  func.func @not_whole(%q: tensor<4x8xf32>, %p: tensor<4xi32>) {
    // expected-error @below {{sharded level: attention sees 4 rows of keys and values of a pack of 8; they must be whole and in global order, or of a single slot}}
    %a, %l = sft.attention %q, %q, %q, %p, %p, %p, %p {head_dim = 4 : i64, scale = 0.5 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x8xf32>, tensor<4x2xf32>)
    return
  }
}
