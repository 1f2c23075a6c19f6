// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK: module attributes {sft.mesh = #sft.mesh<["tp", "cp", "dp"], [1, 2, 1]>}
module attributes {sft.mesh = #sft.mesh<["tp", "cp", "dp"], [1, 2, 1]>} {
  // CHECK: func.func private @shardings() attributes {sft.shardings = [#sft.sharding<{{\[}}["cp"], []], [], []>, #sft.sharding<{{\[}}["cp", "dp"]], ["tp"], []>, #sft.sharding<[], [], ["tp"]>]}
  func.func private @shardings() attributes {sft.shardings = [
    #sft.sharding<[["cp"], []], [], []>, #sft.sharding<[["cp", "dp"]], ["tp"], []>, #sft.sharding<[], [], ["tp"]>]}
  // CHECK: func.func private @accesses() attributes {sft.accesses = [#sft.access<row>, #sft.access<column>, #sft.access<scalar>, #sft.access<uniform, element = 3>, #sft.access<periodic, period = 16>, #sft.access<partner, period = 16>, #sft.access<gathered, period = 16, index = 0>, #sft.access<gathered, period = 16, index = 0, offset = 2>, #sft.access<column_sum>]}
  func.func private @accesses() attributes {sft.accesses = [
    #sft.access<row>, #sft.access<column>, #sft.access<scalar>, #sft.access<uniform, element = 3>,
    #sft.access<periodic, period = 16>, #sft.access<partner, period = 16>, #sft.access<gathered, period = 16, index = 0>,
    #sft.access<gathered, period = 16, index = 0, offset = 2>, #sft.access<column_sum>]}
}
