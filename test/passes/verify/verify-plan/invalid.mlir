// RUN: sftc-opt %s --sft-verify-plan --verify-diagnostics --split-input-file

// Nothing but plan ops.
module {
  plan.arena @transient "activation" 0 bytes
  // expected-error @below {{plan level: func.func is left}}
  func.func @train() {
    return
  }
}

// -----

// expected-error @below {{plan level: there is no transient arena; run sft-plan-memory first}}
module {
}

// -----

module {
  plan.arena @transient "activation" 64 bytes
  plan.program @read_first [] {
    %x = plan.alloc "x" at 0 : memref<8xf32>
    %y = plan.alloc "y" at 32 : memref<8xf32>
    // expected-error @below {{plan level: buffer "x" is read before it is written}}
    plan.launch "copy"(%x, %y) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<8xf32>, memref<8xf32>
  }
}

// -----

// An addition reads what it adds to.
module {
  plan.arena @x "gradient" 32 bytes
  plan.global @g : memref<8xf32> in @x at 0
  plan.arena @transient "activation" 32 bytes
  plan.program @adds_to_nothing [] {
    %g = plan.get @g : memref<8xf32>
    %y = plan.alloc "y" at 0 : memref<8xf32>
    // expected-error @below {{plan level: buffer "y" is read before it is written}}
    plan.launch "accumulate"(%g, %y) {accumulate = 1 : i64} {positions = array<i64: 0, 1>, accesses = ["in", "inout"]} : memref<8xf32>, memref<8xf32>
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["cp"], [2]>} {
  plan.arena @transient "activation" 96 bytes
  plan.program @collective_reads_first [] {
    %x = plan.alloc "x" at 0 : memref<8xf32>
    %y = plan.alloc "y" at 32 : memref<16xf32>
    // expected-error @below {{plan level: buffer "x" is read before it is written}}
    plan.collective "all_gather" ["cp"] (%x, %y) : memref<8xf32>, memref<16xf32>
  }
}

// -----

module {
  plan.arena @transient "activation" 0 bytes
  plan.program @other_op [] {
    // expected-error @below {{plan level: arith.constant is no instruction}}
    %c = arith.constant 0 : i32
  }
}

// -----

module {
  plan.arena @transient "activation" 32 bytes
  plan.program @no_place [] {
    // expected-error @below {{plan level: buffer "x" has no place}}
    %x = plan.alloc "x" : memref<8xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
  }
}

// -----

module {
  plan.arena @transient "activation" 63 bytes
  plan.program @outside [] {
    // expected-error @below {{plan level: buffer "x" ends outside the transient arena}}
    %x = plan.alloc "x" at 32 : memref<8xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
  }
}

// -----

// y is written over the second half of x, which the third launch still reads.
module {
  plan.arena @transient "activation" 128 bytes
  plan.program @overlap [] {
    %x = plan.alloc "x" at 0 : memref<16xf32>
    // expected-error @below {{plan level: buffers "x" and "y" overlap while both are live}}
    %y = plan.alloc "y" at 32 : memref<8xf32>
    %z = plan.alloc "z" at 64 : memref<16xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<16xf32>
    plan.launch "fill"(%y) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
    plan.launch "copy"(%x, %z) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<16xf32>, memref<16xf32>
  }
}

// -----

// An output may not take the place of an input unless the kernel says that it may.
module {
  plan.arena @transient "activation" 32 bytes
  plan.program @no_alias [] {
    %x = plan.alloc "x" at 0 : memref<8xf32>
    // expected-error @below {{plan level: buffers "x" and "y" overlap while both are live}}
    %y = plan.alloc "y" at 0 : memref<8xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
    plan.launch "copy"(%x, %y) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<8xf32>, memref<8xf32>
  }
}

// -----

// A result lives to the end of the program.
module {
  plan.arena @transient "activation" 32 bytes
  plan.program @result [] {
    %x = plan.alloc "x" at 0 result : memref<8xf32>
    // expected-error @below {{plan level: buffers "x" and "y" overlap while both are live}}
    %y = plan.alloc "y" at 0 : memref<8xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
    plan.launch "fill"(%y) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
  }
}

// -----

// A workspace is memory like any other.
module {
  plan.arena @transient "activation" 64 bytes
  plan.program @workspace [] {
    %x = plan.alloc "x" at 0 : memref<8xf32>
    // expected-error @below {{plan level: buffers "x" and "w" overlap while both are live}}
    %w = plan.alloc "w" at 16 : memref<8xi8>
    %s = plan.alloc "s" at 32 : memref<1xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
    plan.launch "sum_of_squares"(%x, %s) workspace(%w : memref<8xi8>) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<8xf32>, memref<1xf32>
  }
}

// -----

module {
  plan.arena @transient "activation" 32 bytes
  plan.program @parameter [] {
    %x = plan.alloc "x" at 0 : memref<8xf32>
    // expected-error @below {{plan level: kernel "fill" has no parameter "colour"}}
    plan.launch "fill"(%x) {colour = 1 : i64} {positions = array<i64: 0>, accesses = ["out"]} : memref<8xf32>
  }
}

// -----

module {
  plan.arena @tables "table" 12 bytes
  plan.global @squares : memref<1x3xi32> in @tables at 0
  plan.arena @transient "activation" 256 bytes
  plan.program @missing [] {
    %ranges = plan.get @squares : memref<1x3xi32>
    %x = plan.alloc "x" at 0 : memref<2x4xf32>
    %o = plan.alloc "o" at 64 : memref<2x4xf32>
    %l = plan.alloc "l" at 128 : memref<2x1xf32>
    plan.launch "fill"(%x) {} {positions = array<i64: 0>, accesses = ["out"]} : memref<2x4xf32>
    // expected-error @below {{plan level: kernel "square" needs parameter "scale"}}
    // expected-error @below {{plan level: operand "v" of kernel "square" is missing}}
    plan.launch "square"(%x, %x, %ranges, %o, %l) {head_dim = 4 : i64} {positions = array<i64: 0, 1, 3, 4, 5>, accesses = ["in", "in", "in", "out", "out"]} : memref<2x4xf32>, memref<2x4xf32>, memref<1x3xi32>, memref<2x4xf32>, memref<2x1xf32>
  }
}

// -----

module {
  plan.arena @transient "activation" 32 bytes
  plan.program @position [] {
    %x = plan.alloc "x" at 0 : memref<8xf32>
    // expected-error @below {{plan level: kernel "fill" has no operand 1}}
    // expected-error @below {{plan level: operand "x" of kernel "fill" is missing}}
    plan.launch "fill"(%x) {} {positions = array<i64: 1>, accesses = ["out"]} : memref<8xf32>
  }
}

// -----

module {
  plan.arena @x "gradient" 64 bytes
  plan.global @a : memref<8xf32> in @x at 0
  plan.global @b : memref<8xf32> in @x at 32
  plan.arena @transient "activation" 0 bytes
  plan.program @access [] {
    %a = plan.get @a : memref<8xf32>
    %b = plan.get @b : memref<8xf32>
    // expected-error @below {{plan level: operand "x" of kernel "copy" is used as "out"}}
    // expected-error @below {{plan level: operand "y" of kernel "copy" is used as "in"}}
    plan.launch "copy"(%a, %b) {} {positions = array<i64: 0, 1>, accesses = ["out", "in"]} : memref<8xf32>, memref<8xf32>
  }
}

// -----

module {
  plan.arena @x "gradient" 400004 bytes
  plan.global @g : memref<100000xf32> in @x at 0
  plan.global @s : memref<1xf32> in @x at 400000
  plan.arena @transient "activation" 8 bytes
  plan.program @small_workspace [] {
    %g = plan.get @g : memref<100000xf32>
    %s = plan.get @s : memref<1xf32>
    %w = plan.alloc "w" at 0 : memref<8xi8>
    // expected-error @below {{plan level: kernel "sum_of_squares" needs a workspace of 16 bytes and gets 8}}
    plan.launch "sum_of_squares"(%g, %s) workspace(%w : memref<8xi8>) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"]} : memref<100000xf32>, memref<1xf32>
  }
}
