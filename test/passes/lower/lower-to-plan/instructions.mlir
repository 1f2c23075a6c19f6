// RUN: sftc-opt %s --sft-form-row-kernels --sft-generate-row-kernels=target-cpu=x86-64-v3 --sft-lower-to-plan | FileCheck %s
// Values become buffers and ops instructions. A tied parameter gets two contributions: the first in program order overwrites in
// the first pack of a step (2), the second adds (1). A kernel that can add writes the gradient itself; what no such kernel
// makes is added by a launch of its own. Gradients are reduced after the last pack.

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>, sft.token_axes = ["cp"], sft.token_order = "contiguous", sft.padded_tokens = 8 : i64, sft.max_documents = 5 : i64} {
  sft.parameter @table : tensor<16x8xf32> roles ["vocabulary", "hidden"] checkpoint "embed" aliases ["head"] decay true {sft.group = "g", sft.element_offset = 0 : i64, sft.local_type = tensor<16x8xf32>}
  sft.parameter @norm : tensor<8xf32> roles ["hidden"] checkpoint "n" decay true {sft.group = "g", sft.element_offset = 128 : i64, sft.local_type = tensor<8xf32>}
  sft.state @parameter.g : tensor<2x256xf32> "parameter" of "g" {sft.axes = ["cp"]}
  sft.state @gradient.g : tensor<2x256xf32> "gradient" of "g" {sft.axes = ["cp"]}
  sft.state @gradient.g.slice : tensor<1x256xf32> "gradient" of "g" sliced {sft.axes = ["cp"]}
  sft.state @exp_avg.g.slice : tensor<1x256xf32> "exp_avg" of "g" sliced {sft.axes = ["cp"]}
  sft.state @grad_norm : tensor<1xf32> "scalar" of ""

  // What the plan file needs of the parameters is kept on the module.
  // CHECK: module attributes {plan.parameters = [{aliases = ["head"], checkpoint = "embed", element_offset = 0 : i64, group = "g", symbol = "table", type = tensor<16x8xf32>}, {aliases = [], checkpoint = "n", element_offset = 128 : i64, group = "g", symbol = "norm", type = tensor<8xf32>}]

  // A moment is stored as the slice; a sliced gradient is a view of the whole.
  // CHECK-DAG: plan.arena @parameter_arena.g "parameter" 2048 bytes
  // CHECK-DAG: plan.arena @gradient_arena.g "gradient" 2048 bytes
  // CHECK-DAG: plan.arena @exp_avg_arena.g "moment" 1024 bytes
  // CHECK-DAG: plan.arena @scalars "state" 64 bytes
  // CHECK-DAG: plan.arena @tables "table"
  // CHECK-DAG: plan.global @parameter.g : memref<2x256xf32> in @parameter_arena.g at 0
  // CHECK-DAG: plan.global @gradient.g.slice : memref<1x256xf32> in @gradient_arena.g at 0 slice ["cp"] by 1024
  // CHECK-DAG: plan.global @exp_avg.g.slice : memref<1x256xf32> in @exp_avg_arena.g at 0{{$}}
  // CHECK-DAG: plan.global @table : memref<16x8xf32> in @parameter_arena.g at 0
  // CHECK-DAG: plan.global @gradient.table : memref<16x8xf32> in @gradient_arena.g at 0
  // CHECK-DAG: plan.global @norm : memref<8xf32> in @parameter_arena.g at 512
  // CHECK-DAG: plan.global @gradient.norm : memref<8xf32> in @gradient_arena.g at 512
  // CHECK-DAG: plan.global @grad_norm : memref<1xf32> in @scalars at 0
  // CHECK-DAG: plan.global @table.tokens : memref<4xi32> in @tables at {{[0-9]+}} table {kind = "tokens", parameters = {}, persistent = false, whole = false}
  // CHECK-DAG: plan.global @table.tokens.whole : memref<8xi32> in @tables at {{[0-9]+}} table {kind = "tokens", parameters = {}, persistent = false, whole = true}
  // CHECK-DAG: plan.global @table.embedding_order : memref<4xi32>
  // CHECK-DAG: plan.global @table.embedding_segments : memref<4x3xi32>

  // CHECK-LABEL: plan.program @train ["first", "last"]
  // CHECK-DAG:     %[[NORMGRAD:.+]] = plan.get @gradient.norm
  // CHECK-DAG:     %[[TABLEGRAD:.+]] = plan.get @gradient.table
  // CHECK-DAG:     %[[TABLE:.+]] = plan.get @table : memref<16x8xf32>
  // CHECK-DAG:     %[[TOKENS:.+]] = plan.get @table.tokens : memref<4xi32>
  // CHECK-DAG:     %[[SLICE:.+]] = plan.get @gradient.g.slice
  // CHECK-DAG:     %[[WHOLE:.+]] = plan.get @gradient.g :
  // CHECK-DAG:     %[[ORDER:.+]] = plan.get @table.embedding_order
  // CHECK-DAG:     %[[SEGMENTS:.+]] = plan.get @table.embedding_segments
  // CHECK:         %[[X:.+]] = plan.alloc "program.train.0.embedding" : memref<4x8xf32>
  // CHECK-NEXT:    plan.launch "row_kernel"["rk_0_embedding"] (%[[TOKENS]], %[[TABLE]], %[[X]]) {block_rows = 64 : i64, column_sums = 0 : i64, rows = 4 : i64} {accesses = ["in", "in", "out"], positions = array<i64: 0, 1, 2>}
  // CHECK:         %[[Y:.+]] = plan.alloc "program.train.1.matmul" result : memref<4x16xf32>
  // CHECK-NEXT:    plan.launch "matmul" (%[[X]], %[[TABLE]], %[[Y]]) {transpose_a = 0 : i64, transpose_b = 1 : i64} {accesses = ["in", "in", "out"], positions = array<i64: 0, 1, 3>}
  // CHECK-NEXT:    plan.launch "matmul" (%[[Y]], %[[X]], %[[TABLEGRAD]]) {accumulate = 2 : i64, transpose_a = 1 : i64, transpose_b = 0 : i64} {accesses = ["in", "in", "inout"], positions = array<i64: 0, 1, 3>}
  // CHECK-NEXT:    plan.launch "embedding_grad" (%[[X]], %[[ORDER]], %[[SEGMENTS]], %[[TABLEGRAD]]) {accumulate = 1 : i64} {accesses = ["in", "in", "in", "inout"], positions = array<i64: 0, 1, 2, 4>}
  // CHECK:         %[[SUM:.+]] = plan.alloc "program.train.2.column_sum" : memref<8xf32>
  // CHECK:         %[[W:.+]] = plan.alloc "{{.*}}row_kernel.workspace" : memref<32xi8>
  // CHECK-NEXT:    plan.launch "row_kernel"["rk_1_column_sum"] (%[[X]], %[[SUM]]) workspace(%[[W]] : memref<32xi8>) {block_rows = 64 : i64, column_sums = 2 : i64, rows = 4 : i64}
  // CHECK-NEXT:    plan.launch "accumulate" (%[[SUM]], %[[NORMGRAD]]) {accumulate = 2 : i64} {accesses = ["in", "inout"], positions = array<i64: 0, 1>} :
  // CHECK-NEXT:    plan.collective "reduce_scatter" ["cp"](%[[WHOLE]], %[[SLICE]]) {when = "last"} : memref<2x256xf32>, memref<1x256xf32>
  // CHECK-NEXT:  {{^  }$}}
  func.func @train(%tokens: tensor<4xi32> {sft.table = "tokens"}, %unused: tensor<4xi32> {sft.table = "documents"}) -> tensor<4x16xf32> {
    %table = sft.read @table : tensor<16x8xf32>
    %x = sft.embedding %tokens, %table : (tensor<4xi32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %y = sft.matmul %x, %table {transpose_b} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
    %dw = sft.matmul %y, %x {transpose_a} : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    sft.accumulate_gradient %dw, @table : tensor<16x8xf32>
    %dt = sft.embedding_grad %x, %tokens {rows = 16 : i64} : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<16x8xf32>
    sft.accumulate_gradient %dt, @table : tensor<16x8xf32>
    %dn = sft.column_sum %x : (tensor<4x8xf32>) -> tensor<8xf32>
    sft.accumulate_gradient %dn, @norm : tensor<8xf32>
    return %y : tensor<4x16xf32>
  }
  func.func @reduce_gradients() {
    %g = sft.read @gradient.g : tensor<2x256xf32>
    %s = sft.reduce_scatter %g ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>} : (tensor<2x256xf32>) -> tensor<1x256xf32>
    sft.write %s, @gradient.g.slice : tensor<1x256xf32>
    return
  }

  // Whole tables are tables of their own. A maximum is reduced as one.
  // CHECK-LABEL: plan.program @evaluate []
  // CHECK:         plan.get @table.tokens.whole : memref<8xi32>
  // CHECK:         plan.launch "row_kernel"["rk_2_row_max"]
  // CHECK:         plan.collective "all_reduce" ["cp"](%{{.+}}, %{{.+}}) {reduction = "max"} : memref<8xf32>, memref<8xf32>
  func.func @evaluate(%tokens: tensor<8xi32> {sft.table = "tokens", sft.whole}) -> tensor<8xf32> {
    %table = sft.read @table : tensor<16x8xf32>
    %x = sft.embedding %tokens, %table : (tensor<8xi32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %m = sft.row_max %x : (tensor<8x8xf32>) -> tensor<8xf32>
    %r = sft.all_reduce %m ["cp"] {kind = #sft<reduction max>} : (tensor<8xf32>) -> tensor<8xf32>
    return %r : tensor<8xf32>
  }

  // A value that is stored is written in place; one that was not made here is copied.
  // CHECK-LABEL: plan.program @update []
  // CHECK-DAG:     %[[NORM:.+]] = plan.get @grad_norm
  // CHECK-DAG:     %[[MOMENT:.+]] = plan.get @exp_avg.g.slice
  // CHECK-DAG:     %[[SLICE:.+]] = plan.get @gradient.g.slice
  // CHECK:         %[[W:.+]] = plan.alloc "program.update.0.sum_of_squares.workspace" : memref<8xi8>
  // CHECK-NEXT:    plan.launch "sum_of_squares" (%[[SLICE]], %[[NORM]]) workspace(%[[W]] : memref<8xi8>)
  // CHECK-NEXT:    plan.launch "copy" (%[[SLICE]], %[[MOMENT]])
  // CHECK-NEXT:  {{^  }$}}
  // CHECK-LABEL: plan.program @update_sgd []
  // CHECK-NOT:   sft.parameter
  // CHECK-NOT:   sft.state
  // CHECK-NOT:   func.func
  func.func @update() {
    %g = sft.read @gradient.g.slice : tensor<1x256xf32>
    %s = sft.sum_of_squares %g : (tensor<1x256xf32>) -> tensor<1xf32>
    sft.write %s, @grad_norm : tensor<1xf32>
    sft.write %g, @exp_avg.g.slice : tensor<1x256xf32>
    return
  }
  func.func @update_sgd() {
    return
  }
}
