// RUN: sftc-opt %s --sft-build-update | FileCheck %s --implicit-check-not=all_reduce --implicit-check-not=all_gather --implicit-check-not=reduce_scatter
// On one rank nothing is reduced or gathered, and the slice is the whole group.
// CHECK: sft.state @parameter.decay : tensor<1x256xf32> "parameter" of "decay" {sft.axes = [], sft.decay = true}
// CHECK: sft.state @parameter.decay.slice : tensor<1x256xf32>
// CHECK-LABEL: func.func @reduce_gradients() {
// CHECK-NEXT:    return
// CHECK-LABEL: func.func @update(
// CHECK:         sft.clip_scale
// CHECK:         sft.adamw
// CHECK:         sft.write %{{.+}}, @parameter.decay.slice
// CHECK-NEXT:    return

module attributes {sft.mesh = #sft.mesh<["tp", "cp", "dp"], [1, 1, 1]>, sft.batch_axes = []} {
  sft.parameter @w : tensor<3x4xf32> roles ["hidden", "hidden"] checkpoint "w" decay true
  func.func @train(%a: tensor<3x4xf32>) {
    %0 = sft.read @w : tensor<3x4xf32>
    sft.accumulate_gradient %a, @w : tensor<3x4xf32>
    return
  }
}
