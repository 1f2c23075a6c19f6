// RUN: sftc-opt %s --verify-diagnostics --split-input-file

// arena, C1: a class of plan.fbs.
// expected-error @below {{'plan.arena' op has class "heap", which plan.fbs does not have}}
plan.arena @a "heap" 64 bytes

// -----

// arena, C2.
// expected-error @below {{'plan.arena' op has -64 bytes}}
plan.arena @a "gradient" -64 bytes

// -----

// global, C1: the arena exists and is one.
// expected-error @below {{'plan.global' op lies in @b, which is no plan.arena}}
plan.global @g : memref<4xf32> in @b at 0

// -----

plan.arena @a "gradient" 64 bytes
plan.global @g : memref<4xf32> in @a at 0
// expected-error @below {{'plan.global' op lies in @g, which is no plan.arena}}
plan.global @h : memref<4xf32> in @g at 0

// -----

// global, C2: inside the arena.
// expected-note @below {{the arena}}
plan.arena @a "gradient" 64 bytes
// expected-error @below {{'plan.global' op ends at byte 68 of an arena of 64}}
plan.global @g : memref<16xf32> in @a at 4

// -----

// expected-note @below {{the arena}}
plan.arena @a "gradient" 64 bytes
// expected-error @below {{'plan.global' op ends at byte 12 of an arena of 64}}
plan.global @g : memref<4xf32> in @a at -4

// -----

// alloc: static shapes.
plan.program @p [] {
  // expected-error @below {{must be statically shaped memref}}
  %x = plan.alloc "x" : memref<?xf32>
}

// -----

// get, C1: the symbol is a global.
plan.arena @a "gradient" 64 bytes
plan.program @p [] {
  // expected-error @below {{'plan.get' op gets @nothing, which is no plan.global}}
  %x = plan.get @nothing : memref<4xf32>
}

// -----

plan.arena @a "gradient" 64 bytes
plan.program @p [] {
  // expected-error @below {{'plan.get' op gets @a, which is no plan.global}}
  %y = plan.get @a : memref<4xf32>
}

// -----

// get, C2.
plan.arena @a "gradient" 64 bytes
plan.global @g : memref<4xf32> in @a at 0
plan.program @p [] {
  // expected-error @below {{'plan.get' op has type 'memref<4xi32>' but the global has type 'memref<4xf32>'}}
  %x = plan.get @g : memref<4xi32>
}

// -----

// launch, C1: one position and one access an operand.
plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.launch' op has 2 operands, 1 positions and 2 accesses}}
  plan.launch "copy" (%x, %x) {} {positions = array<i64: 0>, accesses = ["in", "out"]} : memref<4xf32>, memref<4xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.launch' op has 2 operands, 2 positions and 3 accesses}}
  plan.launch "copy" (%x, %x) {} {positions = array<i64: 0, 1>, accesses = ["in", "out", "in"]} : memref<4xf32>, memref<4xf32>
}

// -----

// launch, C2: a kernel of Kernels.def.
plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.launch' op runs "kopy", which is not in Kernels.def}}
  plan.launch "kopy" (%x) {} {positions = array<i64: 0>, accesses = ["in"]} : memref<4xf32>
}

// -----

// launch, C3: access and when.
plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.launch' op has access "read"; it is in, out or inout}}
  plan.launch "fill" (%x) {} {positions = array<i64: 0>, accesses = ["read"]} : memref<4xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.launch' op runs "never"; it is always, first or last}}
  plan.launch "fill" (%x) {} {positions = array<i64: 0>, accesses = ["out"], when = "never"} : memref<4xf32>
}

// -----

// launch, C4: aliases.
plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.launch' op has aliases array<i64: 1, 2>; they are pairs of numbers of its 2 operands}}
  plan.launch "copy" (%x, %x) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"], aliases = array<i64: 1, 2>} : memref<4xf32>, memref<4xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.launch' op has aliases array<i64: 1>; they are pairs}}
  plan.launch "copy" (%x, %x) {} {positions = array<i64: 0, 1>, accesses = ["in", "out"], aliases = array<i64: 1>} : memref<4xf32>, memref<4xf32>
}

// -----

// collective, C1: kind, reduction and when.
plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.collective' op is a sum broadcast that runs always, which does not exist}}
  plan.collective "broadcast" ["cp"] (%x, %x) : memref<4xf32>, memref<4xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.collective' op is a mean all_reduce that runs always, which does not exist}}
  plan.collective "all_reduce" ["cp"] (%x, %x) {reduction = "mean"} : memref<4xf32>, memref<4xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.collective' op is a sum all_reduce that runs sometimes, which does not exist}}
  plan.collective "all_reduce" ["cp"] (%x, %x) {when = "sometimes"} : memref<4xf32>, memref<4xf32>
}

// -----

// collective, C2: element counts and types fit (openxla/stablehlo #498, #508).
plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  %y = plan.alloc "y" : memref<6xf32>
  // expected-error @below {{'plan.collective' op cannot turn 'memref<4xf32>' into 'memref<6xf32>'}}
  plan.collective "all_gather" ["cp"] (%x, %y) : memref<4xf32>, memref<6xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  %y = plan.alloc "y" : memref<8xf32>
  // expected-error @below {{'plan.collective' op cannot turn 'memref<4xf32>' into 'memref<8xf32>'}}
  plan.collective "reduce_scatter" ["cp"] (%x, %y) : memref<4xf32>, memref<8xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  %y = plan.alloc "y" : memref<8xf32>
  // expected-error @below {{'plan.collective' op cannot turn 'memref<4xf32>' into 'memref<8xf32>'}}
  plan.collective "all_reduce" ["cp"] (%x, %y) : memref<4xf32>, memref<8xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  %y = plan.alloc "y" : memref<4xi32>
  // expected-error @below {{'plan.collective' op cannot turn 'memref<4xf32>' into 'memref<4xi32>'}}
  plan.collective "all_to_all" ["cp"] (%x, %y) : memref<4xf32>, memref<4xi32>
}

// -----

// collective, C3: axes.
plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.collective' op runs over []; it needs at least one axis, and each once}}
  plan.collective "all_reduce" [] (%x, %x) : memref<4xf32>, memref<4xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<4xf32>
  // expected-error @below {{'plan.collective' op runs over ["cp", "cp"]; it needs at least one axis, and each once}}
  plan.collective "all_reduce" ["cp", "cp"] (%x, %x) : memref<4xf32>, memref<4xf32>
}

// -----

// Groups and buffers of size 0 are refused, not divided by (openxla/stablehlo #2968).
plan.program @p [] {
  %x = plan.alloc "x" : memref<0x4xf32>
  // expected-error @below {{'plan.collective' op cannot turn 'memref<0x4xf32>' into 'memref<0x4xf32>'}}
  plan.collective "all_gather" ["cp"] (%x, %x) : memref<0x4xf32>, memref<0x4xf32>
}

// -----

plan.program @p [] {
  %x = plan.alloc "x" : memref<0x4xf32>
  %y = plan.alloc "y" : memref<4xf32>
  // expected-error @below {{'plan.collective' op cannot turn 'memref<4xf32>' into 'memref<0x4xf32>'}}
  plan.collective "reduce_scatter" ["cp"] (%y, %x) : memref<4xf32>, memref<0x4xf32>
}
