// RUN: sftc-opt %s --sft-build-update --verify-diagnostics --split-input-file

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>} {
  // expected-error @below {{parameter @w gets no gradient}}
  sft.parameter @w : tensor<4xf32> roles ["hidden"] checkpoint "w" decay true
  func.func @train() {
    %0 = sft.read @w : tensor<4xf32>
    return
  }
}

// -----

// Contributions are summed before they are reduced, so they must be partial over the same axes.
module attributes {sft.mesh = #sft.mesh<["cp"], [2]>} {
  sft.parameter @w : tensor<4xf32> roles ["hidden"] checkpoint "w" decay true
  func.func @train(%a: tensor<4xf32>) {
    %0 = sft.read @w : tensor<4xf32>
    sft.accumulate_gradient %a, @w {sft.partial = ["cp"]} : tensor<4xf32>
    // expected-error @below {{contributions to the gradient of @w are partial over ["cp"] and over []}}
    sft.accumulate_gradient %a, @w : tensor<4xf32>
    return
  }
}

// -----

// expected-error @below {{has no `sft.mesh`}}
module {
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>} {
  // expected-error @below {{parameter @w gets a gradient but is read nowhere}}
  sft.parameter @w : tensor<4xf32> roles ["hidden"] checkpoint "w" decay true
  func.func @train(%a: tensor<4xf32>) {
    sft.accumulate_gradient %a, @w : tensor<4xf32>
    return
  }
}
