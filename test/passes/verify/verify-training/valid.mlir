// RUN: sftc-opt %s --sft-verify-training | FileCheck %s
// CHECK: sft.accumulate_gradient

sft.parameter @w : tensor<4xf32> roles ["hidden"] checkpoint "w" decay true
func.func @train(%a: tensor<4xf32> {sft.table = "weights", sft.roles = ["tokens"]}) {
  sft.accumulate_gradient %a, @w : tensor<4xf32>
  return
}
func.func @evaluate(%a: tensor<4xf32> {sft.table = "weights", sft.roles = ["tokens"]}) {
  return
}
