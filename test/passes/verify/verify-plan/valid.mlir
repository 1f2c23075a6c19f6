// RUN: sftc-opt %s --sft-verify-plan | FileCheck %s
// Memory is handed on when its last reader has run, by an alias at once. Optional operands may be absent.
// CHECK: plan.program @train

module {
  plan.arena @transient "activation" 64 bytes
  plan.program @train [] {
    %x = plan.alloc "x" at 0 : memref<8xf32>
    %y = plan.alloc "y" at 32 : memref<8xf32>
    %z = plan.alloc "z" at 32 : memref<8xf32>
    %u = plan.alloc "u" at 0 : memref<4x2xf32>
    %v = plan.alloc "v" at 32 : memref<2x2xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
    plan.launch "copy"(%x, %y) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<8xf32>, memref<8xf32>
    plan.launch "copy"(%y, %z) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"], aliases = array<i64: 1, 0>} : memref<8xf32>, memref<8xf32>
    plan.launch "fill"(%u) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<4x2xf32>
    plan.launch "fill"(%v) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<2x2xf32>
    plan.launch "matmul"(%u, %u, %v) {transpose_a = 1 : i64, accumulate = 1 : i64} {positions = array<i64: 0, 1, 3>, accesses = ["in", "in", "inout"]} : memref<4x2xf32>, memref<4x2xf32>, memref<2x2xf32>
  }
}
