// RUN: sftc-opt %s --sft-lower-to-plan --verify-diagnostics --split-input-file

// expected-error @below {{has no function @train}}
module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.padded_tokens = 8 : i64, sft.max_documents = 4 : i64} {
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.padded_tokens = 8 : i64, sft.max_documents = 4 : i64} {
  // expected-error @below {{argument 1 names no table}}
  func.func @train(%a: tensor<4xi32> {sft.table = "tokens"}, %b: tensor<4xi32>) {
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.padded_tokens = 8 : i64, sft.max_documents = 4 : i64} {
  func.func @train(%a: tensor<4x4xf32> {sft.table = "a"}) {
    // expected-error @below {{all_gather along dimension 1 cannot run yet: the runtime moves whole rows}}
    %g = sft.all_gather %a ["cp"] {dimension = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x8xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.padded_tokens = 8 : i64, sft.max_documents = 4 : i64} {
  func.func @train(%a: tensor<4x4xf32> {sft.table = "a"}) {
    // expected-error @below {{sft.slice cannot run yet: the runtime has no instruction for it}}
    %g = sft.slice %a ["cp"] {dimension = 0 : i64} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.padded_tokens = 8 : i64, sft.max_documents = 4 : i64} {
  func.func @train(%a: tensor<4x4xf32> {sft.table = "a"}) {
    // expected-error @below {{sft.axis_offset cannot run yet}}
    %g = sft.axis_offset ["cp"] * 8 : tensor<1xi32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.padded_tokens = 8 : i64, sft.max_documents = 4 : i64} {
  func.func @train(%a: tensor<4x4xf32> {sft.table = "a"}) {
    // expected-error @below {{sft.add cannot run yet}}
    %g = sft.add %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.padded_tokens = 8 : i64, sft.max_documents = 4 : i64} {
  func.func @train(%a: tensor<4x4xf32> {sft.table = "a"}) {
    // expected-error @below {{has no kernel; run sft-generate-row-kernels first}}
    %g = sft.fused %a attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 4 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32> {
    ^bb0(%x: f32):
      sft.yield %x : f32
    }
    return
  }
}

// -----

// expected-error @below {{has no `sft.mesh`}}
module attributes {sft.padded_tokens = 8 : i64, sft.max_documents = 4 : i64} {
}

// -----

// expected-error @below {{has no `sft.padded_tokens`}}
module attributes {sft.mesh = #sft.mesh<["cp"], [2]>} {
}
