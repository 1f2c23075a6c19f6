// RUN: sftc-opt %s --sft-plan-memory --split-input-file 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: sftc-opt %s --sft-plan-memory --sft-verify-plan --split-input-file -o /dev/null

// A chain: never more than two buffers are live, so two places serve all four. Sizes are rounded up to 64 bytes.
// REMARK: memory: program chain needs 512 transient bytes; at most 512 are live at once
// CHECK-LABEL: module
// CHECK-NEXT:    plan.arena @transient "activation" 512 bytes
// CHECK:         plan.alloc "a" at [[A:[0-9]+]] :
// CHECK:         plan.alloc "b" at [[B:[0-9]+]] :
// CHECK:         plan.alloc "c" at [[A]] :
// CHECK:         plan.alloc "d" at [[B]] :
module {
  plan.program @chain [] {
    %a = plan.alloc "a" : memref<49xf32>
    %b = plan.alloc "b" : memref<49xf32>
    %c = plan.alloc "c" : memref<49xf32>
    %d = plan.alloc "d" : memref<49xf32>
    plan.launch "fill"(%a) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<49xf32>
    plan.launch "copy"(%a, %b) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<49xf32>, memref<49xf32>
    plan.launch "copy"(%b, %c) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<49xf32>, memref<49xf32>
    plan.launch "copy"(%c, %d) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<49xf32>, memref<49xf32>
  }
}

// -----

// Where the kernel allows it, the output takes the place of the input: one place serves the chain.
// REMARK: memory: program in_place needs 256 transient bytes; at most 256 are live at once
// CHECK-LABEL: module
// CHECK-NEXT:    plan.arena @transient "activation" 256 bytes
// CHECK:         plan.alloc "a" at 0 :
// CHECK:         plan.alloc "b" at 0 :
// CHECK:         plan.alloc "c" at 0 :
module {
  plan.program @in_place [] {
    %a = plan.alloc "a" : memref<64xf32>
    %b = plan.alloc "b" : memref<64xf32>
    %c = plan.alloc "c" : memref<64xf32>
    plan.launch "fill"(%a) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<64xf32>
    plan.launch "copy"(%a, %b) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"], aliases = array<i64: 1, 0>} : memref<64xf32>, memref<64xf32>
    plan.launch "copy"(%b, %c) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"], aliases = array<i64: 1, 0>} : memref<64xf32>, memref<64xf32>
  }
}

// -----

// Not when the input is read again later.
// REMARK: memory: program read_again needs 512 transient bytes; at most 512 are live at once
// CHECK-LABEL: module
// CHECK:         plan.alloc "a" at [[A:[0-9]+]] :
// CHECK-NOT:     plan.alloc "b" at [[A]] :
// CHECK:         plan.alloc "c" at [[A]] :
module {
  plan.program @read_again [] {
    %a = plan.alloc "a" : memref<64xf32>
    %b = plan.alloc "b" : memref<64xf32>
    %c = plan.alloc "c" : memref<64xf32>
    plan.launch "fill"(%a) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<64xf32>
    plan.launch "copy"(%a, %b) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"], aliases = array<i64: 1, 0>} : memref<64xf32>, memref<64xf32>
    plan.launch "copy"(%a, %c) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"], aliases = array<i64: 1, 0>} : memref<64xf32>, memref<64xf32>
  }
}

// -----

// Two outputs of one launch cannot both take the one input's place.
// REMARK: memory: program one_input needs 512 transient bytes; at most 512 are live at once
// CHECK-LABEL: module
// CHECK:         plan.alloc "a" at [[A:[0-9]+]] :
// CHECK:         plan.alloc "b" at [[A]] :
// CHECK-NOT:     plan.alloc "c" at [[A]] :
// CHECK:         plan.launch "row_kernel"
module {
  plan.program @one_input [] {
    %a = plan.alloc "a" : memref<64xf32>
    %b = plan.alloc "b" : memref<64xf32>
    %c = plan.alloc "c" : memref<64xf32>
    plan.launch "fill"(%a) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<64xf32>
    plan.launch "row_kernel"["k"] (%a, %b, %c) {rows = 1 : i64, block_rows = 64 : i64} {positions = array<i64: 0, 1, 2>, accesses = ["in", "out", "out"], aliases = array<i64: 1, 0, 2, 0>} : memref<64xf32>, memref<64xf32>, memref<64xf32>
    plan.launch "copy"(%b, %c) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<64xf32>, memref<64xf32>
  }
}

// -----

// A result lives to the end; a workspace and an output that nobody reads only during their launch. Globals take no
// transient memory. The transient arena is as large as the largest program.
// REMARK-DAG: memory: program results needs 192 transient bytes; at most 192 are live at once
// REMARK-DAG: memory: program small needs 64 transient bytes; at most 64 are live at once
// CHECK-LABEL: module
// CHECK-NEXT:    plan.arena @transient "activation" 192 bytes
// CHECK:         plan.alloc "r" at [[R:[0-9]+]] result :
// CHECK-NOT:     plan.alloc "{{.+}}" at [[R]] :
// CHECK:         plan.program @small
// CHECK:         plan.alloc "x" at 0 :
module {
  plan.arena @gradients "gradient" 4096 bytes
  plan.global @g : memref<1024xf32> in @gradients at 0
  plan.program @results [] {
    %g = plan.get @g : memref<1024xf32>
    %r = plan.alloc "r" result : memref<16xf32>
    %s = plan.alloc "s" : memref<1xf32>
    %w = plan.alloc "w" : memref<8xi8>
    %u = plan.alloc "u" : memref<32xf32>
    plan.launch "fill"(%r) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<16xf32>
    plan.launch "sum_of_squares"(%g, %s) workspace(%w : memref<8xi8>) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<1024xf32>, memref<1xf32>
    plan.launch "fill"(%u) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<32xf32>
  }
  plan.program @small [] {
    %x = plan.alloc "x" : memref<1xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<1xf32>
  }
}

// -----

// Placing by order, size, length, area or begin leaves a hole here (7 or 8 units of 256 bytes): searching finds the 6 that are live.
// REMARK: memory: program search needs 1536 transient bytes; at most 1536 are live at once
module {
  plan.program @search [] {
    %a = plan.alloc "a" : memref<64xf32>
    %b = plan.alloc "b" : memref<192xf32>
    %c = plan.alloc "c" : memref<64xf32>
    %d = plan.alloc "d" : memref<128xf32>
    %e = plan.alloc "e" : memref<192xf32>
    plan.launch "row_kernel"["k"] (%a) {rows = 1 : i64, block_rows = 64 : i64} {positions = array<i64: 0>, accesses = ["out"]} : memref<64xf32>
    plan.launch "row_kernel"["k"] (%b) {rows = 1 : i64, block_rows = 64 : i64} {positions = array<i64: 0>, accesses = ["out"]} : memref<192xf32>
    plan.launch "row_kernel"["k"] (%b, %c) {rows = 1 : i64, block_rows = 64 : i64} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<192xf32>, memref<64xf32>
    plan.launch "row_kernel"["k"] (%a, %d) {rows = 1 : i64, block_rows = 64 : i64} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<64xf32>, memref<128xf32>
    plan.launch "row_kernel"["k"] (%c, %d, %e) {rows = 1 : i64, block_rows = 64 : i64} {positions = array<i64: 0, 1, 2>, accesses = ["in", "in", "out"]} : memref<64xf32>, memref<128xf32>, memref<192xf32>
  }
}
