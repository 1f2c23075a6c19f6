// RUN: sftc-opt %s --sft-build-backward --verify-diagnostics --split-input-file

// An op without a gradient between a parameter and the loss would train wrongly.
module {
  sft.parameter @x : tensor<6x8xf32> roles ["tokens", "hidden"] checkpoint "x" decay true
  func.func @forward(%dy: tensor<6xf32> {sft.table = "weights"}) -> tensor<6xf32> {
    %x = sft.read @x : tensor<6x8xf32>
    // expected-error @below {{sft.row_max lies between a parameter and the loss but has no gradient}}
    %y = sft.row_max %x : (tensor<6x8xf32>) -> tensor<6xf32>
    return %y : tensor<6xf32>
  }
}

// -----

// The gradient of a norm knows nothing of its second result: dropping that part would train wrongly, too.
module {
  sft.parameter @x : tensor<6x8xf32> roles ["tokens", "hidden"] checkpoint "x" decay true
  sft.parameter @w : tensor<8xf32> roles ["hidden"] checkpoint "w" decay false
  func.func @forward(%dy: tensor<6xf32> {sft.table = "weights"}) -> tensor<6xf32> {
    %x = sft.read @x : tensor<6x8xf32>
    %w = sft.read @w : tensor<8xf32>
    // expected-error @below {{the loss depends on result 1 of sft.rms_norm, through which no gradient is built}}
    %y, %rstd = sft.rms_norm %x, %w {epsilon = 1.0e-06 : f64} : (tensor<6x8xf32>, tensor<8xf32>) -> (tensor<6x8xf32>, tensor<6xf32>)
    return %rstd : tensor<6xf32>
  }
}

// -----

// The same op is harmless where no parameter lies behind it.
module {
  sft.parameter @x : tensor<6x8xf32> roles ["tokens", "hidden"] checkpoint "x" decay true
  func.func @forward(%a: tensor<6x8xf32>, %dy: tensor<6xf32> {sft.table = "weights"}) -> tensor<6xf32> {
    %y = sft.row_max %a : (tensor<6x8xf32>) -> tensor<6xf32>
    return %y : tensor<6xf32>
  }
}

// -----

// expected-error @below {{has no function @forward with one block; `sftc import` writes one}}
module {
  func.func @backward(%dy: tensor<6xf32> {sft.table = "weights"}) -> tensor<6xf32> {
    return %dy : tensor<6xf32>
  }
}

// -----

module {
  // expected-error @below {{has no argument with sft.table = "weights", the share of each target in the loss}}
  func.func @forward(%dy: tensor<6xf32> {sft.table = "targets"}) -> tensor<6xf32> {
    return %dy : tensor<6xf32>
  }
}

// -----

module {
  // expected-error @below {{@forward returns 2 values; it returns the token losses alone}}
  func.func @forward(%dy: tensor<6xf32> {sft.table = "weights"}) -> (tensor<6xf32>, tensor<6xf32>) {
    return %dy, %dy : tensor<6xf32>, tensor<6xf32>
  }
}
