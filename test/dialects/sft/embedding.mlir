// RUN: sftc-opt %s | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --mlir-print-op-generic | sftc-opt | FileCheck %s
// RUN: sftc-opt %s --emit-bytecode | sftc-opt | FileCheck %s

// CHECK-LABEL: func.func @embedding
// CHECK-SAME: %[[TOKENS:.+]]: tensor<?xi32>, %[[TABLE:.+]]: tensor<320x64xf32>, %[[OFFSET:.+]]: tensor<1xi32>
func.func @embedding(%tokens: tensor<?xi32>, %table: tensor<320x64xf32>, %offset: tensor<1xi32>) {
  // CHECK: %[[X:.+]] = sft.embedding %[[TOKENS]], %[[TABLE]] : (tensor<?xi32>, tensor<320x64xf32>) -> tensor<?x64xf32>
  %x = sft.embedding %tokens, %table : (tensor<?xi32>, tensor<320x64xf32>) -> tensor<?x64xf32>
  // CHECK: sft.embedding %[[TOKENS]], %[[TABLE]], %[[OFFSET]] : (tensor<?xi32>, tensor<320x64xf32>, tensor<1xi32>) -> tensor<?x64xf32>
  %part = sft.embedding %tokens, %table, %offset : (tensor<?xi32>, tensor<320x64xf32>, tensor<1xi32>) -> tensor<?x64xf32>
  // CHECK: sft.embedding_grad %[[X]], %[[TOKENS]] {rows = 320 : i64} : (tensor<?x64xf32>, tensor<?xi32>) -> tensor<320x64xf32>
  %g = sft.embedding_grad %x, %tokens {rows = 320 : i64} : (tensor<?x64xf32>, tensor<?xi32>) -> tensor<320x64xf32>
  // CHECK: sft.embedding_grad %[[X]], %[[TOKENS]], %[[OFFSET]] {rows = 160 : i64} :
  %h = sft.embedding_grad %x, %tokens, %offset {rows = 160 : i64} : (tensor<?x64xf32>, tensor<?xi32>, tensor<1xi32>) -> tensor<160x64xf32>
  return
}
