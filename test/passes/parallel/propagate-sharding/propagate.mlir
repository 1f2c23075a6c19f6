// RUN: sftc-opt %s --sft-propagate-sharding --split-input-file | FileCheck %s

// Roles of arguments and parameters are the seeds; axes of size 1 and roles without axes cut nothing.
// CHECK-LABEL: func.func @seeds
// CHECK-SAME:    %{{[^:]+}}: tensor<8xi32> {sft.roles = ["tokens"], sft.shardings = [#sft.sharding<{{\[}}["cp"]], [], []>]}
// CHECK-SAME:    %{{[^:]+}}: tensor<8x6xf32> {sft.roles = ["hidden", "batch"], sft.shardings = [#sft.sharding<{{\[}}[], []], [], []>]}
// CHECK-NEXT:    sft.read @w {sft.shardings = [#sft.sharding<{{\[}}["tp"], []], [], []>]} : tensor<4x6xf32>
module attributes {sft.mesh = #sft.mesh<["tp", "cp", "dp"], [2, 2, 1]>, sft.role_axes = {tokens = ["cp"], ffn = ["tp"], batch = ["dp"]}} {
  sft.parameter @w : tensor<4x6xf32> roles ["ffn", "hidden"] checkpoint "w" decay true
  func.func @seeds(%t: tensor<8xi32> {sft.roles = ["tokens"]}, %x: tensor<8x6xf32> {sft.roles = ["hidden", "batch"]}) -> tensor<4x6xf32> {
    %w = sft.read @w : tensor<4x6xf32>
    return %w : tensor<4x6xf32>
  }
}

// -----

// Forward: rows of x, columns from w. Backward, too: what is added to a cut value is cut, down to an argument without roles.
// CHECK-LABEL: func.func @both_directions
// CHECK-SAME:    %{{[^:]+}}: tensor<8x4xf32> {sft.shardings = [#sft.sharding<{{\[}}["cp"], ["tp"]], [], []>]}
// CHECK:         sft.matmul {{.*}}sft.shardings = [#sft.sharding<{{\[}}["cp"], ["tp"]], [], []>]
// CHECK-NEXT:    sft.silu_gate {{.*}}sft.shardings = [#sft.sharding<{{\[}}["cp"], ["tp"]], [], []>]
// CHECK-NEXT:    sft.add {{.*}}sft.shardings = [#sft.sharding<{{\[}}["cp"], ["tp"]], [], []>]
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 2]>, sft.role_axes = {tokens = ["cp"], ffn = ["tp"]}} {
  sft.parameter @w : tensor<4x6xf32> roles ["ffn", "hidden"] checkpoint "w" decay true
  func.func @both_directions(%x: tensor<8x6xf32> {sft.roles = ["tokens", "hidden"]}, %b: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %w = sft.read @w : tensor<4x6xf32>
    %y = sft.matmul %x, %w {transpose_b} : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    %c = sft.silu_gate %b, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %z = sft.add %y, %c : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %z : tensor<8x4xf32>
  }
}

// -----

// A contracted factor vanishes, a fixed one (the row of a norm) stops the propagation: only the rows go through.
// CHECK-LABEL: func.func @stops
// CHECK:         sft.matmul {{.*}}sft.shardings = [#sft.sharding<{{\[}}["cp"], []], [], []>]
// CHECK:         sft.rms_norm {{.*}}sft.shardings = [#sft.sharding<{{\[}}["cp"], []], [], []>, #sft.sharding<{{\[}}["cp"]], [], []>]
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 2]>, sft.role_axes = {tokens = ["cp"], ffn = ["tp"]}} {
  sft.parameter @w : tensor<4x6xf32> roles ["ffn", "hidden"] checkpoint "w" decay true
  sft.parameter @n : tensor<4xf32> roles ["hidden"] checkpoint "n" decay false
  func.func @stops(%x: tensor<8x4xf32> {sft.roles = ["tokens", "ffn"]}) -> (tensor<8x6xf32>, tensor<8x4xf32>) {
    %w = sft.read @w : tensor<4x6xf32>
    %y = sft.matmul %x, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %n = sft.read @n : tensor<4xf32>
    %z, %r = sft.rms_norm %x, %n {epsilon = 1.0e-06 : f64} : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
    return %y, %z : tensor<8x6xf32>, tensor<8x4xf32>
  }
}

// -----

// One axis cuts one dimension: both factors of the product want tp, the first gets it.
// CHECK-LABEL: func.func @taken
// CHECK:         sft.matmul {{.*}}sft.shardings = [#sft.sharding<{{\[}}["tp"], []], [], []>]
module attributes {sft.mesh = #sft.mesh<["tp"], [2]>, sft.role_axes = {ffn = ["tp"]}} {
  func.func @taken(%a: tensor<8x6xf32> {sft.roles = ["ffn", "hidden"]}, %b: tensor<4x6xf32> {sft.roles = ["ffn", "hidden"]}) -> tensor<8x4xf32> {
    %y = sft.matmul %a, %b {transpose_b} : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    return %y : tensor<8x4xf32>
  }
}

// -----

// Attention: rows over cp, heads over tp; keys and values keep their rows whole in the op, whatever they lie like before it.
// CHECK-LABEL: func.func @heads
// CHECK:         sft.attention {{.*}}sft.shardings = [#sft.sharding<{{\[}}["cp"], ["tp"]], [], []>, #sft.sharding<{{\[}}["cp"], ["tp"]], [], []>]
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 2]>, sft.role_axes = {tokens = ["cp"], heads = ["tp"], kv_heads = ["tp"]}} {
  func.func @heads(%q: tensor<8x16xf32> {sft.roles = ["tokens", "heads"]}, %k: tensor<8x8xf32> {sft.roles = ["tokens", "kv_heads"]}, %p: tensor<8xi32> {sft.roles = ["tokens"]}) -> tensor<8x16xf32> {
    %y, %l = sft.attention %q, %k, %k, %p, %p, %p, %p {head_dim = 4 : i64, scale = 0.5 : f64} : (tensor<8x16xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>) -> (tensor<8x16xf32>, tensor<8x4xf32>)
    return %y : tensor<8x16xf32>
  }
}

// -----

// openxla/xla #45717: propagation gave small values the layout of their neighbours. Tables and offsets stay whole.
// CHECK-LABEL: func.func @whole
// CHECK:         sft.rotary_table {{.*}}sft.shardings = [#sft.sharding<{{\[}}[], []], [], []>, #sft.sharding<{{\[}}[], []], [], []>]
// CHECK:         sft.rotary %{{.*}}sft.shardings = [#sft.sharding<{{\[}}["cp"], ["tp"]], [], []>]
module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 2]>, sft.role_axes = {tokens = ["cp"], heads = ["tp"]}} {
  func.func @whole(%x: tensor<8x16xf32> {sft.roles = ["tokens", "heads"]}, %p: tensor<8xi32> {sft.roles = ["tokens"]}) -> tensor<8x16xf32> {
    %cosine, %sine = sft.rotary_table {rows = 8 : i64, head_dim = 4 : i64, parameters = {}} : () -> (tensor<8x4xf32>, tensor<8x4xf32>)
    %y = sft.rotary %x, %p, %cosine, %sine : (tensor<8x16xf32>, tensor<8xi32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }
}
