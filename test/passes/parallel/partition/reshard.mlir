// RUN: sftc-opt %s --sft-partition | FileCheck %s --check-prefixes=CHECK,CONTIGUOUS
// RUN: sed 's/"contiguous"/"zigzag"/' %s | sftc-opt --sft-partition | FileCheck %s --check-prefixes=CHECK,ZIGZAG
// How a value gets from the layout it has to the one its user wants, in both token orders. Only rows cut over the token axes
// have an order; operands of a gate may not be swapped (pytorch/xla #5264).

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>, sft.token_axes = ["cp"], sft.token_order = "contiguous"} {
  sft.parameter @w : tensor<8x16xf32> roles ["hidden", "hidden"] checkpoint "w" decay true

  // A replicated value that is wanted cut is sliced, once for two users.
  // CHECK-LABEL:     func.func @cut
  // CHECK-NEXT:        %[[W:.+]] = sft.read @w : tensor<8x16xf32>
  // CONTIGUOUS-NEXT:   %[[S:.+]] = sft.slice %[[W]] ["cp"] {dimension = 0 : i64} : (tensor<8x16xf32>) -> tensor<2x16xf32>
  // ZIGZAG-NEXT:       %[[O:.+]] = sft.reorder %[[W]] ["cp"] {inverse}
  // ZIGZAG-NEXT:       %[[S:.+]] = sft.slice %[[O]] ["cp"] {dimension = 0 : i64} : (tensor<8x16xf32>) -> tensor<2x16xf32>
  // CHECK-NEXT:        %[[G:.+]] = sft.silu_gate %[[S]], %{{.+}}
  // CHECK-NEXT:        %[[A:.+]] = sft.add %[[G]], %[[S]]
  // CHECK-NEXT:        return %[[A]] : tensor<2x16xf32>
  func.func @cut(%a: tensor<8x16xf32> {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]}) -> tensor<8x16xf32> {
    %w = sft.read @w {sft.shardings = [#sft.sharding<[[], []], [], []>]} : tensor<8x16xf32>
    %g = sft.silu_gate %w, %a {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %y = sft.add %g, %w {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }

  // Columns have no order.
  // CHECK-LABEL:     func.func @gather_columns
  // CHECK-NEXT:        %[[G:.+]] = sft.silu_gate
  // CHECK-NEXT:        %[[R:.+]] = sft.all_gather %[[G]] ["tp"] {dimension = 1 : i64} : (tensor<2x8xf32>) -> tensor<2x16xf32>
  // CHECK-NEXT:        return %[[R]]
  func.func @gather_columns(%a: tensor<8x16xf32> {sft.shardings = [#sft.sharding<[["cp"], ["tp"]], [], []>]}) -> tensor<8x16xf32> {
    %y = sft.silu_gate %a, %a {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }

  // CHECK-LABEL:     func.func @gather_rows
  // CHECK-NEXT:        %[[Y:.+]] = sft.silu_gate
  // CHECK-NEXT:        %[[G:.+]] = sft.all_gather %[[Y]] ["cp"] {dimension = 0 : i64} : (tensor<2x16xf32>) -> tensor<8x16xf32>
  // ZIGZAG-NEXT:       %[[O:.+]] = sft.reorder %[[G]] ["cp"] :
  // CHECK-NEXT:        return %{{.+}} : tensor<8x16xf32>
  func.func @gather_rows(%a: tensor<8x16xf32> {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]}) -> tensor<8x16xf32> {
    %y = sft.silu_gate %a, %a {sft.shardings = [#sft.sharding<[[], []], [], []>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }

  // Rows over another axis than the token axes are in plain order.
  // CHECK-LABEL:     func.func @gather_other_rows
  // CHECK-NEXT:        %[[Y:.+]] = sft.silu_gate
  // CHECK-NEXT:        %[[G:.+]] = sft.all_gather %[[Y]] ["tp"] {dimension = 0 : i64}
  // CHECK-NEXT:        return %[[G]]
  func.func @gather_other_rows(%a: tensor<8x16xf32> {sft.shardings = [#sft.sharding<[["tp"], []], [], []>]}) -> tensor<8x16xf32> {
    %y = sft.silu_gate %a, %a {sft.shardings = [#sft.sharding<[[], []], [], []>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }

  // Axes that move from one dimension to another.
  // CHECK-LABEL:     func.func @move
  // CHECK-NEXT:        %[[Y:.+]] = sft.silu_gate
  // CHECK-NEXT:        %[[R:.+]] = sft.all_to_all %[[Y]] ["tp"] {concat = 0 : i64, split = 1 : i64} : (tensor<4x16xf32>) -> tensor<8x8xf32>
  // CHECK-NEXT:        return %[[R]]
  func.func @move(%a: tensor<8x16xf32> {sft.shardings = [#sft.sharding<[["tp"], []], [], []>]}) -> tensor<8x16xf32> {
    %y = sft.silu_gate %a, %a {sft.shardings = [#sft.sharding<[[], ["tp"]], [], []>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }

  // In zigzag order the rows pass through global order.
  // CHECK-LABEL:     func.func @move_rows
  // CHECK-NEXT:        %[[Y:.+]] = sft.silu_gate
  // CONTIGUOUS-NEXT:   sft.all_to_all %[[Y]] ["cp"] {concat = 0 : i64, split = 1 : i64} : (tensor<2x16xf32>) -> tensor<8x4xf32>
  // ZIGZAG-NEXT:       %[[G:.+]] = sft.all_gather %[[Y]] ["cp"] {dimension = 0 : i64}
  // ZIGZAG-NEXT:       %[[O:.+]] = sft.reorder %[[G]] ["cp"] :
  // ZIGZAG-NEXT:       sft.slice %[[O]] ["cp"] {dimension = 1 : i64} : (tensor<8x16xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT:        return %{{.+}} : tensor<8x4xf32>
  func.func @move_rows(%a: tensor<8x16xf32> {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]}) -> tensor<8x16xf32> {
    %y = sft.silu_gate %a, %a {sft.shardings = [#sft.sharding<[[], ["cp"]], [], []>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }

  // Two operands in conflict: the first one's layout wins, the second is moved.
  // CHECK-LABEL:     func.func @conflict
  // CHECK-SAME:        (%[[A:.+]]: tensor<2x16xf32>, %[[B:.+]]: tensor<8x4xf32>)
  // CONTIGUOUS-NEXT:   %[[M:.+]] = sft.all_to_all %[[B]] ["cp"] {concat = 1 : i64, split = 0 : i64} : (tensor<8x4xf32>) -> tensor<2x16xf32>
  // ZIGZAG-NEXT:       %[[G:.+]] = sft.all_gather %[[B]] ["cp"] {dimension = 1 : i64}
  // ZIGZAG-NEXT:       %[[O:.+]] = sft.reorder %[[G]] ["cp"] {inverse}
  // ZIGZAG-NEXT:       %[[M:.+]] = sft.slice %[[O]] ["cp"] {dimension = 0 : i64}
  // CHECK-NEXT:        %[[Y:.+]] = sft.silu_gate %[[A]], %[[M]]
  // CHECK-NEXT:        return %[[Y]] : tensor<2x16xf32>
  func.func @conflict(%a: tensor<8x16xf32> {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]}, %b: tensor<8x16xf32> {sft.shardings = [#sft.sharding<[[], ["cp"]], [], []>]}) -> tensor<8x16xf32> {
    %y = sft.silu_gate %a, %b {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }

  // A partial sum goes straight to cut rows; in zigzag order its rows are put into the order of the cut before.
  // CHECK-LABEL:     func.func @scatter_rows
  // CHECK-NEXT:        %[[Y:.+]] = sft.matmul
  // CONTIGUOUS-NEXT:   %[[R:.+]] = sft.reduce_scatter %[[Y]] ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>}
  // ZIGZAG-NEXT:       %[[O:.+]] = sft.reorder %[[Y]] ["cp"] {inverse}
  // ZIGZAG-NEXT:       %[[R:.+]] = sft.reduce_scatter %[[O]] ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>}
  // CHECK-NEXT:        return %[[R]] : tensor<2x16xf32>
  func.func @scatter_rows(%a: tensor<8x12xf32> {sft.shardings = [#sft.sharding<[[], ["cp"]], [], []>]}, %b: tensor<12x16xf32> {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]}) -> tensor<8x16xf32> {
    %y = sft.matmul %a, %b {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<8x12xf32>, tensor<12x16xf32>) -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }
}
