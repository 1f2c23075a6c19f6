// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK-LABEL: func.func @rotary
// CHECK-SAME: %[[X:.+]]: tensor<?x64xf32>, %[[P:.+]]: tensor<?xi32>
func.func @rotary(%x: tensor<?x64xf32>, %positions: tensor<?xi32>) {
  // CHECK: %[[COS:.+]], %[[SIN:.+]] = sft.rotary_table {head_dim = 16 : i64, parameters = {rope_type = "default", theta = 1.000000e+04 : f64}, rows = 512 : i64} : () -> (tensor<512x16xf32>, tensor<512x16xf32>)
  %cos, %sin = sft.rotary_table {rows = 512 : i64, head_dim = 16 : i64, parameters = {rope_type = "default", theta = 1.0e+04 : f64}} : () -> (tensor<512x16xf32>, tensor<512x16xf32>)
  // CHECK: %[[Y:.+]] = sft.rotary %[[X]], %[[P]], %[[COS]], %[[SIN]] : (tensor<?x64xf32>, tensor<?xi32>, tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<?x64xf32>
  %y = sft.rotary %x, %positions, %cos, %sin : (tensor<?x64xf32>, tensor<?xi32>, tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<?x64xf32>
  // CHECK: sft.rotary %[[Y]], %[[P]], %[[COS]], %[[SIN]] {inverse} :
  %z = sft.rotary %y, %positions, %cos, %sin {inverse} : (tensor<?x64xf32>, tensor<?xi32>, tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<?x64xf32>
  return
}
