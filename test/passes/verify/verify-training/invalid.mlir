// RUN: sftc-opt %s --sft-verify-training --verify-diagnostics --split-input-file

// Both programs exist.
// expected-error @below {{training level: there is no function @train}}
// expected-error @below {{training level: there is no function @evaluate}}
module {
}

// -----

// Every argument is a table with roles.
module {
  // expected-error @below {{training level: argument 1 of @train has no `sft.table` or no `sft.roles`}}
  func.func @train(%a: tensor<?xi32> {sft.table = "tokens", sft.roles = ["tokens"]}, %b: tensor<?xf32> {sft.roles = ["tokens"]}) {
    return
  }
  // expected-error @below {{training level: argument 0 of @evaluate has no `sft.table` or no `sft.roles`}}
  func.func @evaluate(%a: tensor<?xi32> {sft.table = "tokens"}) {
    return
  }
}

// -----

// Every parameter gets a gradient.
module {
  sft.parameter @w : tensor<4xf32> roles ["hidden"] checkpoint "w" decay true
  // expected-error @below {{training level: parameter @v gets no gradient}}
  sft.parameter @v : tensor<4xf32> roles ["hidden"] checkpoint "v" decay true
  func.func @train(%a: tensor<4xf32> {sft.table = "weights", sft.roles = ["tokens"]}) {
    sft.accumulate_gradient %a, @w : tensor<4xf32>
    return
  }
  func.func @evaluate() {
    return
  }
}

// -----

// Composite ops are gone.
module {
  func.func @train() {
    return
  }
  func.func @evaluate(%a: tensor<?x4xf32> {sft.table = "a", sft.roles = ["tokens", "hidden"]}, %t: tensor<?xi32> {sft.table = "targets", sft.roles = ["tokens"]}) {
    // expected-error @below {{training level: sft.cross_entropy is left; run sft-decompose first}}
    %l = sft.cross_entropy %a, %t : (tensor<?x4xf32>, tensor<?xi32>) -> tensor<?xf32>
    return
  }
}

// -----

// Nothing moves between ranks yet.
module attributes {sft.mesh = #sft.mesh<["cp"], [2]>} {
  func.func @train(%a: tensor<8x4xf32> {sft.table = "a", sft.roles = ["tokens", "hidden"]}) {
    // expected-error @below {{training level: sft.all_gather moves data between ranks before the graph is partitioned}}
    %0 = sft.all_gather %a ["cp"] {dimension = 0 : i64} : (tensor<8x4xf32>) -> tensor<16x4xf32>
    // expected-error @below {{training level: sft.reduce_scatter moves data}}
    %1 = sft.reduce_scatter %a ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{training level: sft.all_reduce moves data}}
    %2 = sft.all_reduce %a ["cp"] {kind = #sft<reduction sum>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // expected-error @below {{training level: sft.all_to_all moves data}}
    %3 = sft.all_to_all %a ["cp"] {split = 0 : i64, concat = 1 : i64} : (tensor<8x4xf32>) -> tensor<4x8xf32>
    // expected-error @below {{training level: sft.slice moves data}}
    %4 = sft.slice %a ["cp"] {dimension = 0 : i64} : (tensor<8x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{training level: sft.reorder moves data}}
    %5 = sft.reorder %a ["cp"] : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return
  }
  func.func @evaluate() {
    return
  }
}
