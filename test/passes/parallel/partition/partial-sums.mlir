// RUN: sftc-opt %s --sft-partition | FileCheck %s --implicit-check-not=all_reduce --implicit-check-not=reduce_scatter --implicit-check-not=all_gather --implicit-check-not=slice
// openxla/xla #40034: turning partial sums into a partly cut, partly replicated layout left out a reduction. Here the
// contraction is cut over both axes and the result is wanted in every way: each axis is reduced exactly once.

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>, sft.token_axes = ["cp"], sft.token_order = "contiguous"} {
  sft.parameter @w : tensor<16x8xf32> roles ["hidden", "hidden"] checkpoint "w" decay true

  // CHECK-LABEL: func.func @replicated
  // CHECK:         %[[Y:.+]] = sft.matmul %{{.+}} : (tensor<16x4xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
  // CHECK-NEXT:    %[[R:.+]] = sft.all_reduce %[[Y]] ["tp", "cp"] {kind = #sft<reduction sum>}
  // CHECK-NEXT:    return %[[R]] : tensor<16x8xf32>
  func.func @replicated(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp", "cp"], []], [], []>]}) -> tensor<16x8xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[[], []], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %y : tensor<16x8xf32>
  }

  // CHECK-LABEL: func.func @rows
  // CHECK:         %[[Y:.+]] = sft.matmul
  // CHECK-NEXT:    %[[S:.+]] = sft.reduce_scatter %[[Y]] ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>}
  // CHECK-NEXT:    %[[R:.+]] = sft.all_reduce %[[S]] ["tp"] {kind = #sft<reduction sum>}
  // CHECK-NEXT:    return %[[R]] : tensor<4x8xf32>
  func.func @rows(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp", "cp"], []], [], []>]}) -> tensor<16x8xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %y : tensor<16x8xf32>
  }

  // CHECK-LABEL: func.func @columns
  // CHECK:         %[[Y:.+]] = sft.matmul
  // CHECK-NEXT:    %[[S:.+]] = sft.reduce_scatter %[[Y]] ["tp"] {dimension = 1 : i64, kind = #sft<reduction sum>}
  // CHECK-NEXT:    %[[R:.+]] = sft.all_reduce %[[S]] ["cp"] {kind = #sft<reduction sum>}
  // CHECK-NEXT:    return %[[R]] : tensor<16x4xf32>
  func.func @columns(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp", "cp"], []], [], []>]}) -> tensor<16x8xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[[], ["tp"]], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %y : tensor<16x8xf32>
  }

  // CHECK-LABEL: func.func @rows_and_columns
  // CHECK:         %[[Y:.+]] = sft.matmul
  // CHECK-NEXT:    %[[S:.+]] = sft.reduce_scatter %[[Y]] ["cp"] {dimension = 0 : i64
  // CHECK-NEXT:    %[[R:.+]] = sft.reduce_scatter %[[S]] ["tp"] {dimension = 1 : i64
  // CHECK-NEXT:    return %[[R]] : tensor<4x4xf32>
  func.func @rows_and_columns(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp", "cp"], []], [], []>]}) -> tensor<16x8xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[["cp"], ["tp"]], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %y : tensor<16x8xf32>
  }

  // CHECK-LABEL: func.func @rows_over_both
  // CHECK:         %[[Y:.+]] = sft.matmul
  // CHECK-NEXT:    %[[R:.+]] = sft.reduce_scatter %[[Y]] ["cp", "tp"] {dimension = 0 : i64
  // CHECK-NEXT:    return %[[R]] : tensor<2x8xf32>
  func.func @rows_over_both(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp", "cp"], []], [], []>]}) -> tensor<16x8xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[["cp", "tp"], []], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %y : tensor<16x8xf32>
  }

  // Partial over one axis, already cut over the other.
  // CHECK-LABEL: func.func @one_axis
  // CHECK:         %[[Y:.+]] = sft.matmul %{{.+}} : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT:    %[[R:.+]] = sft.all_reduce %[[Y]] ["tp"]
  // CHECK-NEXT:    return %[[R]] : tensor<4x8xf32>
  func.func @one_axis(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[["cp"], ["tp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp"], []], [], []>]}) -> tensor<16x8xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %y : tensor<16x8xf32>
  }

  // A dimension that is to be cut further is reduced first, then cut anew.
  // CHECK-LABEL: func.func @cut_further
  // CHECK:         %[[Y:.+]] = sft.matmul
  // CHECK-NEXT:    %[[S:.+]] = sft.all_reduce %[[Y]] ["tp"]
  // CHECK-NEXT:    %[[G:.+]] = sft.all_gather %[[S]] ["cp"] {dimension = 0 : i64}
  // CHECK-NEXT:    %[[R:.+]] = sft.slice %[[G]] ["cp", "tp"] {dimension = 0 : i64}
  // CHECK-NEXT:    return %[[R]] : tensor<2x8xf32>
  func.func @cut_further(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[["cp"], ["tp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp"], []], [], []>]}) -> tensor<16x8xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[["cp", "tp"], []], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    return %y : tensor<16x8xf32>
  }

  // A maximum is not a sum.
  // CHECK-LABEL: func.func @maximum
  // CHECK:         %[[Y:.+]] = sft.row_max
  // CHECK-NEXT:    %[[S:.+]] = sft.reduce_scatter %[[Y]] ["cp"] {dimension = 0 : i64, kind = #sft<reduction max>}
  // CHECK-NEXT:    %[[R:.+]] = sft.all_reduce %[[S]] ["tp"] {kind = #sft<reduction max>}
  // CHECK-NEXT:    return %[[R]] : tensor<4xf32>
  func.func @maximum(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}) -> tensor<16xf32> {
    %y = sft.row_max %a {sft.shardings = [#sft.sharding<[["cp"]], [], []>]} : (tensor<16x32xf32>) -> tensor<16xf32>
    return %y : tensor<16xf32>
  }

  // A gradient stays partial: it is reduced once a step, not here.
  // CHECK-LABEL: func.func @gradient
  // CHECK:         %[[Y:.+]] = sft.matmul
  // CHECK-NEXT:    sft.accumulate_gradient %[[Y]], @w {sft.partial = ["tp", "cp"]} : tensor<16x8xf32>
  func.func @gradient(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp", "cp"], []], [], []>]}) {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[[], []], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    sft.accumulate_gradient %y, @w : tensor<16x8xf32>
    return
  }

  // The gradient of a parameter that is cut over one of the axes is reduced over that axis and stays partial over the other.
  // CHECK-LABEL: func.func @gradient_of_a_cut_parameter
  // CHECK:         %[[Y:.+]] = sft.matmul
  // CHECK-NEXT:    %[[S:.+]] = sft.reduce_scatter %[[Y]] ["tp"] {dimension = 0 : i64, kind = #sft<reduction sum>}
  // CHECK-NEXT:    sft.accumulate_gradient %[[S]], @w {sft.partial = ["cp"]} : tensor<8x8xf32>
  func.func @gradient_of_a_cut_parameter(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp", "cp"], []], [], []>]}) {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[["tp"], []], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    sft.accumulate_gradient %y, @w : tensor<16x8xf32>
    return
  }

  // Another user needs the whole sum: then all get it.
  // CHECK-LABEL: func.func @gradient_used_elsewhere
  // CHECK:         %[[Y:.+]] = sft.matmul
  // CHECK-NEXT:    %[[R:.+]] = sft.all_reduce %[[Y]] ["tp", "cp"]
  // CHECK-NEXT:    sft.accumulate_gradient %[[R]], @w {sft.partial = []}
  // CHECK-NEXT:    return %[[R]]
  func.func @gradient_used_elsewhere(%a: tensor<16x32xf32> {sft.shardings = [#sft.sharding<[[], ["tp", "cp"]], [], []>]}, %b: tensor<32x8xf32> {sft.shardings = [#sft.sharding<[["tp", "cp"], []], [], []>]}) -> tensor<16x8xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[[], []], [], []>]} : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
    sft.accumulate_gradient %y, @w : tensor<16x8xf32>
    return %y : tensor<16x8xf32>
  }
}
