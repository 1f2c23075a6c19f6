// RUN: sftc-opt %s > %t.once
// RUN: FileCheck %s < %t.once
// RUN: sftc-opt %t.once | diff %t.once -
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | diff %t.once -
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | diff %t.once -

// CHECK: plan.arena @parameters "parameter" 64 bytes
plan.arena @parameters "parameter" 64 bytes
// CHECK: plan.arena @empty "workspace" 0 bytes
plan.arena @empty "workspace" 0 bytes
plan.arena @master "master" 0 bytes
plan.arena @moment "moment" 0 bytes
plan.arena @gradient "gradient" 0 bytes
plan.arena @state "state" 0 bytes
plan.arena @activation "activation" 0 bytes
plan.arena @tables "table" 32 bytes

// CHECK: plan.global @w : memref<16xf32> in @parameters at 0
plan.global @w : memref<16xf32> in @parameters at 0
// CHECK: plan.global @w.slice : memref<8xf32> in @parameters at 0 slice ["cp", "dp"] by 32
plan.global @w.slice : memref<8xf32> in @parameters at 0 slice ["cp", "dp"] by 32
// CHECK: plan.global @tokens : memref<8xi32> in @tables at 0 table {kind = "tokens", parameters = {}, persistent = false, whole = true}
plan.global @tokens : memref<8xi32> in @tables at 0 table {kind = "tokens", whole = true, persistent = false, parameters = {}}
// CHECK: plan.global @tail : memref<2xf32> in @parameters at 56 {note = "fits exactly"}
plan.global @tail : memref<2xf32> in @parameters at 56 {note = "fits exactly"}

// CHECK: plan.program @train ["first", "last"] {
plan.program @train ["first", "last"] {
  // CHECK: %[[W:.+]] = plan.get @w : memref<16xf32>
  %w = plan.get @w : memref<16xf32>
  // CHECK: %[[X:.+]] = plan.alloc "x" : memref<16xf32>
  %x = plan.alloc "x" : memref<16xf32>
  // CHECK: %[[Y:.+]] = plan.alloc "y" at 128 result : memref<16xf32>
  %y = plan.alloc "y" at 128 result : memref<16xf32>
  // CHECK: %[[Z:.+]] = plan.alloc "z" : memref<32xf32>
  %z = plan.alloc "z" : memref<32xf32>
  // CHECK: %[[S:.+]] = plan.alloc "s" at 0 : memref<8xi8>
  %s = plan.alloc "s" at 0 : memref<8xi8>
  %n = plan.alloc "n" : memref<1xf32>
  // CHECK: plan.launch "copy" (%[[W]], %[[X]]) {} {accesses = ["in", "out"], aliases = array<i64: 1, 0>, positions = array<i64: 0, 1>} : memref<16xf32>, memref<16xf32>
  plan.launch "copy" (%w, %x) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"], aliases = array<i64: 1, 0>} : memref<16xf32>, memref<16xf32>
  // CHECK: plan.launch "row_kernel"["rk_0"] (%[[X]], %[[Y]]) {block_rows = 64 : i64, rows = 1 : i64} {accesses = ["in", "inout"], positions = array<i64: 0, 1>, when = "first"} :
  plan.launch "row_kernel"["rk_0"] (%x, %y) {rows = 1 : i64, block_rows = 64 : i64} {positions = array<i64: 0, 1>, accesses = ["in", "inout"], when = "first"} : memref<16xf32>, memref<16xf32>
  // CHECK: plan.launch "sum_of_squares" (%[[X]], %{{.+}}) workspace(%[[S]] : memref<8xi8>) {} {accesses = ["in", "out"], positions = array<i64: 0, 1>} :
  plan.launch "sum_of_squares" (%x, %n) workspace(%s : memref<8xi8>) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<16xf32>, memref<1xf32>
  // CHECK: plan.collective "all_gather" ["cp"](%[[X]], %[[Z]]) : memref<16xf32>, memref<32xf32>
  plan.collective "all_gather" ["cp"] (%x, %z) : memref<16xf32>, memref<32xf32>
  // CHECK: plan.collective "reduce_scatter" ["cp"](%[[Z]], %[[X]]) {reduction = "max", when = "last"} : memref<32xf32>, memref<16xf32>
  plan.collective "reduce_scatter" ["cp"] (%z, %x) {reduction = "max", when = "last"} : memref<32xf32>, memref<16xf32>
  // CHECK: plan.collective "all_reduce" ["cp", "dp"](%[[X]], %[[Y]]) : memref<16xf32>, memref<16xf32>
  plan.collective "all_reduce" ["cp", "dp"] (%x, %y) : memref<16xf32>, memref<16xf32>
  // CHECK: plan.collective "all_to_all" ["tp"](%[[X]], %[[Y]]) : memref<16xf32>, memref<16xf32>
  plan.collective "all_to_all" ["tp"] (%x, %y) : memref<16xf32>, memref<16xf32>
}
// CHECK: plan.program @empty_program [] attributes {stage = 0 : i64} {
plan.program @empty_program [] attributes {stage = 0 : i64} {
}
