// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK-LABEL: func.func @activation
// CHECK-SAME: %[[A:.+]]: tensor<?x64xf32>, %[[B:.+]]: tensor<?x64xf32>
func.func @activation(%a: tensor<?x64xf32>, %b: tensor<?x64xf32>) {
  // CHECK: %[[S:.+]] = sft.add %[[A]], %[[B]] : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %s = sft.add %a, %b : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: sft.silu_gate %[[A]], %[[B]] : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  %g = sft.silu_gate %a, %b : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
  // CHECK: sft.silu_gate_grad %[[S]], %[[A]], %[[B]] : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  %da, %db = sft.silu_gate_grad %s, %a, %b : (tensor<?x64xf32>, tensor<?x64xf32>, tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  return
}
