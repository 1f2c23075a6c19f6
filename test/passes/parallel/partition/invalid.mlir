// RUN: sftc-opt %s --sft-partition --verify-diagnostics --split-input-file

// expected-error @below {{has no `sft.mesh`}}
module {
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>} {
  // expected-error @below {{argument 0 has no sharding; run sft-propagate-sharding first}}
  func.func @argument(%a: tensor<8x4xf32>) {
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>} {
  func.func @op(%a: tensor<8x4xf32> {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]}) -> tensor<8x4xf32> {
    // expected-error @below {{has no shardings; run sft-propagate-sharding first}}
    %y = sft.add %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}
