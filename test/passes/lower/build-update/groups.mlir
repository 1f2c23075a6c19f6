// RUN: sftc-opt %s --sft-build-update | FileCheck %s

// Parameters with the same decay and the same partial axes form a group. @w1 (12 elements) is padded to 16, so @w2 begins there;
// the group has 16 + 600 -> 608 elements and is padded to whole rows of 256 for each of the 2 x 3 ranks over which it is reduced.
// CHECK: sft.parameter @w1 {{.*}} {sft.element_offset = 0 : i64, sft.group = "decay_cp", sft.local_type = tensor<3x4xf32>}
// CHECK: sft.parameter @n {{.*}} {sft.element_offset = 0 : i64, sft.group = "no_decay_cp", sft.local_type = tensor<4xf32>}
// CHECK: sft.parameter @w2 {{.*}} {sft.element_offset = 16 : i64, sft.group = "decay_cp", sft.local_type = tensor<2x300xf32>}
// A gradient that is whole on every rank of cp is still reduced over the packs of dp. Its shape is that of one rank.
// CHECK: sft.parameter @v {{.*}} {sft.element_offset = 0 : i64, sft.group = "decay", sft.local_type = tensor<4x4xf32>}

// CHECK-DAG: sft.state @parameter.decay_cp : tensor<6x256xf32> "parameter" of "decay_cp" {sft.axes = ["cp", "dp"], sft.decay = true}
// CHECK-DAG: sft.state @gradient.decay_cp : tensor<6x256xf32> "gradient" of "decay_cp" {sft.axes = ["cp", "dp"], sft.decay = true}
// CHECK-DAG: sft.state @parameter.decay_cp.slice : tensor<1x256xf32> "parameter" of "decay_cp" sliced
// CHECK-DAG: sft.state @gradient.decay_cp.slice : tensor<1x256xf32> "gradient" of "decay_cp" sliced
// CHECK-DAG: sft.state @exp_avg.decay_cp.slice : tensor<1x256xf32> "exp_avg" of "decay_cp" sliced
// CHECK-DAG: sft.state @exp_avg_sq.decay_cp.slice : tensor<1x256xf32> "exp_avg_sq" of "decay_cp" sliced
// CHECK-DAG: sft.state @parameter.no_decay_cp : tensor<6x256xf32> "parameter" of "no_decay_cp" {sft.axes = ["cp", "dp"], sft.decay = false}
// CHECK-DAG: sft.state @parameter.decay : tensor<3x256xf32> "parameter" of "decay" {sft.axes = ["dp"], sft.decay = true}
// CHECK-DAG: sft.state @parameter.decay.slice : tensor<1x256xf32>
// CHECK-DAG: sft.state @grad_norm : tensor<1xf32> "scalar" of ""

// CHECK-LABEL: func.func @reduce_gradients()
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.decay_cp : tensor<6x256xf32>
// CHECK-NEXT:    %[[S:.+]] = sft.reduce_scatter %[[G]] ["cp", "dp"] {dimension = 0 : i64, kind = #sft<reduction sum>} : (tensor<6x256xf32>) -> tensor<1x256xf32>
// CHECK-NEXT:    sft.write %[[S]], @gradient.decay_cp.slice
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.no_decay_cp
// CHECK-NEXT:    %[[S:.+]] = sft.reduce_scatter %[[G]] ["cp", "dp"]
// CHECK-NEXT:    sft.write %[[S]], @gradient.no_decay_cp.slice
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.decay :
// CHECK-NEXT:    %[[S:.+]] = sft.reduce_scatter %[[G]] ["dp"]
// CHECK-NEXT:    sft.write %[[S]], @gradient.decay.slice
// CHECK-NEXT:    return

// The norm is that of all gradients, each element once: slices are squared, their sums reduced over the axes that cut them.
// CHECK-LABEL: func.func @update(
// CHECK-SAME:    %[[SCALARS:.+]]: tensor<16xf32> {sft.table = "step_scalars"})
// CHECK-NEXT:    %[[G1:.+]] = sft.read @gradient.decay_cp.slice
// CHECK-NEXT:    %[[Q1:.+]] = sft.sum_of_squares %[[G1]]
// CHECK-NEXT:    %[[R1:.+]] = sft.all_reduce %[[Q1]] ["cp", "dp"] {kind = #sft<reduction sum>}
// CHECK-NEXT:    %[[G2:.+]] = sft.read @gradient.no_decay_cp.slice
// CHECK-NEXT:    %[[Q2:.+]] = sft.sum_of_squares %[[G2]]
// CHECK-NEXT:    %[[R2:.+]] = sft.all_reduce %[[Q2]] ["cp", "dp"]
// CHECK-NEXT:    %[[G3:.+]] = sft.read @gradient.decay.slice
// CHECK-NEXT:    %[[Q3:.+]] = sft.sum_of_squares %[[G3]]
// CHECK-NEXT:    %[[R3:.+]] = sft.all_reduce %[[Q3]] ["dp"]
// CHECK-NEXT:    %[[NORM:.+]], %[[SCALE:.+]] = sft.clip_scale %[[SCALARS]], %[[R1]], %[[R2]], %[[R3]]
// CHECK-NEXT:    sft.write %[[NORM]], @grad_norm
// CHECK-NEXT:    %[[P:.+]] = sft.read @parameter.decay_cp.slice
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.decay_cp.slice
// CHECK-DAG:     %[[M:.+]] = sft.read @exp_avg.decay_cp.slice
// CHECK-DAG:     %[[V:.+]] = sft.read @exp_avg_sq.decay_cp.slice
// CHECK-NEXT:    %[[NP:.+]], %[[NM:.+]], %[[NV:.+]] = sft.adamw %[[P]], %[[G]], %[[M]], %[[V]], %[[SCALE]], %[[SCALARS]] {decay}
// CHECK-NEXT:    sft.write %[[NM]], @exp_avg.decay_cp.slice
// CHECK-NEXT:    sft.write %[[NV]], @exp_avg_sq.decay_cp.slice
// CHECK-NEXT:    sft.write %[[NP]], @parameter.decay_cp.slice
// CHECK-NEXT:    %[[W:.+]] = sft.all_gather %[[NP]] ["cp", "dp"] {dimension = 0 : i64} : (tensor<1x256xf32>) -> tensor<6x256xf32>
// CHECK-NEXT:    sft.write %[[W]], @parameter.decay_cp
// CHECK-NEXT:    %[[P:.+]] = sft.read @parameter.no_decay_cp.slice
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.no_decay_cp.slice
// CHECK-DAG:     %[[M:.+]] = sft.read @exp_avg.no_decay_cp.slice
// CHECK-DAG:     %[[V:.+]] = sft.read @exp_avg_sq.no_decay_cp.slice
// CHECK-NEXT:    %[[NP:.+]], %[[NM:.+]], %[[NV:.+]] = sft.adamw %[[P]], %[[G]], %[[M]], %[[V]], %[[SCALE]], %[[SCALARS]] : (
// CHECK-NEXT:    sft.write %[[NM]], @exp_avg.no_decay_cp.slice
// CHECK-NEXT:    sft.write %[[NV]], @exp_avg_sq.no_decay_cp.slice
// CHECK-NEXT:    sft.write %[[NP]], @parameter.no_decay_cp.slice
// CHECK-NEXT:    %[[W:.+]] = sft.all_gather %[[NP]] ["cp", "dp"] {dimension = 0 : i64}
// CHECK-NEXT:    sft.write %[[W]], @parameter.no_decay_cp :
// CHECK-NEXT:    %[[P:.+]] = sft.read @parameter.decay.slice
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.decay.slice
// CHECK-DAG:     %[[M:.+]] = sft.read @exp_avg.decay.slice
// CHECK-DAG:     %[[V:.+]] = sft.read @exp_avg_sq.decay.slice
// CHECK-NEXT:    %[[NP:.+]], %[[NM:.+]], %[[NV:.+]] = sft.adamw %[[P]], %[[G]], %[[M]], %[[V]], %[[SCALE]], %[[SCALARS]] {decay}
// CHECK-NEXT:    sft.write %[[NM]], @exp_avg.decay.slice
// CHECK-NEXT:    sft.write %[[NV]], @exp_avg_sq.decay.slice
// CHECK-NEXT:    sft.write %[[NP]], @parameter.decay.slice
// CHECK-NEXT:    %[[W:.+]] = sft.all_gather %[[NP]] ["dp"] {dimension = 0 : i64}
// CHECK-NEXT:    sft.write %[[W]], @parameter.decay :
// CHECK-NEXT:    return

// CHECK-LABEL: func.func @update_sgd(
// CHECK-SAME:    %[[SCALARS:.+]]: tensor<16xf32> {sft.table = "step_scalars"})
// CHECK-NOT:     exp_avg
// CHECK:         %[[R1:.+]] = sft.all_reduce %{{.+}} ["cp", "dp"]
// CHECK:         %[[R2:.+]] = sft.all_reduce %{{.+}} ["cp", "dp"]
// CHECK:         %[[R3:.+]] = sft.all_reduce %{{.+}} ["dp"]
// CHECK-NEXT:    %[[NORM:.+]], %[[SCALE:.+]] = sft.clip_scale %[[SCALARS]], %[[R1]], %[[R2]], %[[R3]]
// CHECK-NEXT:    sft.write %[[NORM]], @grad_norm
// CHECK:         %[[P:.+]] = sft.read @parameter.decay_cp.slice
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.decay_cp.slice
// CHECK-NEXT:    %[[NP:.+]] = sft.sgd %[[P]], %[[G]], %[[SCALE]], %[[SCALARS]]
// CHECK-NEXT:    sft.write %[[NP]], @parameter.decay_cp.slice
// CHECK-NEXT:    %[[W:.+]] = sft.all_gather %[[NP]] ["cp", "dp"]
// CHECK-NEXT:    sft.write %[[W]], @parameter.decay_cp :
// CHECK:         %[[P:.+]] = sft.read @parameter.no_decay_cp.slice
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.no_decay_cp.slice
// CHECK-NEXT:    %[[NP:.+]] = sft.sgd %[[P]], %[[G]], %[[SCALE]], %[[SCALARS]]
// CHECK-NEXT:    sft.write %[[NP]], @parameter.no_decay_cp.slice
// CHECK-NEXT:    %[[W:.+]] = sft.all_gather %[[NP]] ["cp", "dp"]
// CHECK-NEXT:    sft.write %[[W]], @parameter.no_decay_cp :
// CHECK:         %[[P:.+]] = sft.read @parameter.decay.slice
// CHECK-NEXT:    %[[G:.+]] = sft.read @gradient.decay.slice
// CHECK-NEXT:    %[[NP:.+]] = sft.sgd %[[P]], %[[G]], %[[SCALE]], %[[SCALARS]]
// CHECK-NEXT:    sft.write %[[NP]], @parameter.decay.slice
// CHECK-NEXT:    %[[W:.+]] = sft.all_gather %[[NP]] ["dp"]
// CHECK-NEXT:    sft.write %[[W]], @parameter.decay :
// CHECK-NEXT:    return

module attributes {sft.mesh = #sft.mesh<["tp", "cp", "dp"], [2, 2, 3]>, sft.batch_axes = ["dp"]} {
  sft.parameter @w1 : tensor<3x4xf32> roles ["hidden", "hidden"] checkpoint "w1" decay true
  sft.parameter @n : tensor<4xf32> roles ["hidden"] checkpoint "n" decay false
  sft.parameter @w2 : tensor<2x300xf32> roles ["hidden", "hidden"] checkpoint "w2" decay true
  sft.parameter @v : tensor<8x4xf32> roles ["ffn", "hidden"] checkpoint "v" decay true
  func.func @train(%a: tensor<3x4xf32>, %b: tensor<4xf32>, %c: tensor<2x300xf32>, %d: tensor<4x4xf32>) {
    %0 = sft.read @w1 : tensor<3x4xf32>
    %1 = sft.read @n : tensor<4xf32>
    %2 = sft.read @w2 : tensor<2x300xf32>
    %3 = sft.read @v : tensor<4x4xf32>
    sft.accumulate_gradient %d, @v {sft.partial = []} : tensor<4x4xf32>
    sft.accumulate_gradient %a, @w1 {sft.partial = ["cp"]} : tensor<3x4xf32>
    sft.accumulate_gradient %a, @w1 {sft.partial = ["cp"]} : tensor<3x4xf32>
    sft.accumulate_gradient %b, @n {sft.partial = ["cp"]} : tensor<4xf32>
    sft.accumulate_gradient %c, @w2 {sft.partial = ["cp"]} : tensor<2x300xf32>
    return
  }
}
