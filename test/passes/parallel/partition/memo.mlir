// RUN: sftc-opt %s --sft-partition | FileCheck %s
// A value is moved once for every target in each half, and tables are at hand whole instead of being gathered.

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [1, 2]>, sft.token_axes = ["cp"], sft.token_order = "zigzag"} {
  // CHECK-LABEL: func.func @once
  // CHECK-SAME:    (%[[Q:[^:]+]]: tensor<4x8xf32> {sft.roles = ["tokens", "heads"]}, %[[K:[^:]+]]: tensor<4x8xf32>,
  // CHECK-SAME:     %[[P:[^:]+]]: tensor<4xi32> {sft.roles = ["tokens"], sft.table = "positions"}, %[[D:[^:]+]]: tensor<4xi32> {sft.table = "documents"},
  // CHECK-SAME:     %[[PW:[^:]+]]: tensor<8xi32> {sft.roles = ["tokens"], sft.table = "positions", sft.whole},
  // CHECK-SAME:     %[[DW:[^:]+]]: tensor<8xi32> {sft.table = "documents", sft.whole})
  // CHECK-NEXT:    %[[A:.+]] = sft.add
  // CHECK-NEXT:    %[[G:.+]] = sft.all_gather %[[A]] ["cp"] {dimension = 0 : i64} :
  // CHECK-NEXT:    %[[GO:.+]] = sft.reorder %[[G]] ["cp"] :
  // CHECK-NEXT:    %[[Y:.+]], %[[L:.+]] = sft.attention %[[Q]], %[[GO]], %[[GO]], %[[P]], %[[D]], %[[PW]], %[[DW]]
  // CHECK-NEXT:    %[[Z:.+]], %{{.+}} = sft.attention %[[Y]], %[[GO]], %[[GO]], %[[P]], %[[D]], %[[PW]], %[[DW]]
  // CHECK-NEXT:    %[[B:.+]] = sft.all_gather %[[A]] ["cp"] {dimension = 0 : i64, sft.backward}
  // CHECK-NEXT:    %[[BO:.+]] = sft.reorder %[[B]] ["cp"] {sft.backward}
  // CHECK-NEXT:    %[[DQ:.+]], %[[DK:.+]], %[[DV:.+]] = sft.attention_grad %[[Z]], %[[Q]], %[[BO]], %[[BO]], %[[Y]], %[[L]], %[[P]], %[[D]], %[[PW]], %[[DW]]
  // CHECK-NEXT:    %[[DKO:.+]] = sft.reorder %[[DK]] ["cp"] {inverse, sft.backward}
  // CHECK-NEXT:    %[[DKS:.+]] = sft.reduce_scatter %[[DKO]] ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>, sft.backward} : (tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT:    %[[DVO:.+]] = sft.reorder %[[DV]] ["cp"] {inverse, sft.backward}
  // CHECK-NEXT:    %[[DVS:.+]] = sft.reduce_scatter %[[DVO]]
  // CHECK-NEXT:    sft.add %[[DKS]], %[[DVS]]
  // CHECK-NEXT:    return
  func.func @once(%q: tensor<8x8xf32> {sft.roles = ["tokens", "heads"], sft.shardings = [#sft.sharding<[["cp"], []], [], []>]}, %k: tensor<8x8xf32> {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]},
                  %p: tensor<8xi32> {sft.roles = ["tokens"], sft.table = "positions", sft.shardings = [#sft.sharding<[["cp"]], [], []>]},
                  %d: tensor<8xi32> {sft.table = "documents", sft.shardings = [#sft.sharding<[["cp"]], [], []>]}) -> tensor<8x8xf32> {
    %a = sft.add %k, %k {sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %y, %l = sft.attention %q, %a, %a, %p, %d, %p, %d {head_dim = 4 : i64, scale = 0.5 : f64, sft.shardings = [#sft.sharding<[["cp"], []], [], []>, #sft.sharding<[["cp"], []], [], []>]}
        : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>) -> (tensor<8x8xf32>, tensor<8x2xf32>)
    %z, %m = sft.attention %y, %a, %a, %p, %d, %p, %d {head_dim = 4 : i64, scale = 0.5 : f64, sft.shardings = [#sft.sharding<[["cp"], []], [], []>, #sft.sharding<[["cp"], []], [], []>]}
        : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>) -> (tensor<8x8xf32>, tensor<8x2xf32>)
    %dq, %dk, %dv = sft.attention_grad %z, %q, %a, %a, %y, %l, %p, %d, %p, %d {head_dim = 4 : i64, scale = 0.5 : f64, sft.backward, sft.shardings = [#sft.sharding<[["cp"], []], [], []>, #sft.sharding<[["cp"], []], [], []>, #sft.sharding<[["cp"], []], [], []>]}
        : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x2xf32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
    %s = sft.add %dk, %dv {sft.backward, sft.shardings = [#sft.sharding<[["cp"], []], [], []>]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %s : tensor<8x8xf32>
  }
}
