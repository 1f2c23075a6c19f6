// RUN: sftc-opt %s --verify-diagnostics --split-input-file

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_gather_c1(%x: tensor<16x32xf32>) {
    // expected-error @below {{names axis "pp", which the mesh #sft.mesh<["tp", "cp"], [2, 4]> does not have}}
    %0 = sft.all_gather %x ["pp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @reduce_scatter_c1(%x: tensor<16x32xf32>) {
    // expected-error @below {{names axis "pp", which the mesh #sft.mesh<["tp", "cp"], [2, 4]> does not have}}
    %0 = sft.reduce_scatter %x ["pp"] {dimension = 0 : i64, kind = #sft<reduction sum>} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_reduce_c1(%x: tensor<16x32xf32>) {
    // expected-error @below {{names axis "pp", which the mesh #sft.mesh<["tp", "cp"], [2, 4]> does not have}}
    %0 = sft.all_reduce %x ["pp"] {kind = #sft<reduction sum>} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_to_all_c1(%x: tensor<16x32xf32>) {
    // expected-error @below {{names axis "pp", which the mesh #sft.mesh<["tp", "cp"], [2, 4]> does not have}}
    %0 = sft.all_to_all %x ["pp"] {split = 1 : i64, concat = 0 : i64} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @slice_c1(%x: tensor<16x32xf32>) {
    // expected-error @below {{names axis "pp", which the mesh #sft.mesh<["tp", "cp"], [2, 4]> does not have}}
    %0 = sft.slice %x ["pp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @reorder_c1(%x: tensor<16x32xf32>) {
    // expected-error @below {{names axis "pp", which the mesh #sft.mesh<["tp", "cp"], [2, 4]> does not have}}
    %0 = sft.reorder %x ["pp"] : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_gather_c1_empty(%x: tensor<16x32xf32>) {
    // expected-error @below {{names no mesh axis; a collective needs at least one}}
    %0 = sft.all_gather %x [] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_gather_c1_twice(%x: tensor<16x32xf32>) {
    // expected-error @below {{names axis "cp" twice}}
    %0 = sft.all_gather %x ["cp", "cp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module {
  func.func @all_gather_c1_mesh(%x: tensor<16x32xf32>) {
    // expected-error @below {{stands in a module without `sft.mesh`}}
    %0 = sft.all_gather %x ["cp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_gather_c2(%x: tensor<16x32xf32>) {
    // expected-error @below {{'tensor<32x32xf32>' is not 4 times 'tensor<16x32xf32>' along dimension 0}}
    %0 = sft.all_gather %x ["cp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<32x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_gather_c2_other(%x: tensor<16x32xf32>) {
    // expected-error @below {{'tensor<64x16xf32>' is not 4 times 'tensor<16x32xf32>' along dimension 0}}
    %0 = sft.all_gather %x ["cp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<64x16xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_gather_c2_dimension(%x: tensor<16x32xf32>) {
    // expected-error @below {{dimension 2 is not one of 'tensor<64x32xf32>'}}
    %0 = sft.all_gather %x ["cp"] {dimension = 2 : i64} : (tensor<16x32xf32>) -> tensor<64x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_gather_c2_negative(%x: tensor<16x32xf32>) {
    // expected-error @below {{dimension -1 is not one of 'tensor<64x32xf32>'}}
    %0 = sft.all_gather %x ["cp"] {dimension = -1 : i64} : (tensor<16x32xf32>) -> tensor<64x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @reduce_scatter_c2(%x: tensor<16x32xf32>) {
    // expected-error @below {{'tensor<16x32xf32>' is not 4 times 'tensor<8x32xf32>' along dimension 0}}
    %0 = sft.reduce_scatter %x ["cp"] {dimension = 0 : i64, kind = #sft<reduction sum>} : (tensor<16x32xf32>) -> tensor<8x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_reduce_c2(%x: tensor<16x32xf32>) {
    // expected-error @below {{turns 'tensor<16x32xf32>' into 'tensor<16x32xbf16>'; the types must agree}}
    %0 = sft.all_reduce %x ["cp"] {kind = #sft<reduction sum>} : (tensor<16x32xf32>) -> tensor<16x32xbf16>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_to_all_c2(%x: tensor<16x32xf32>) {
    // expected-error @below {{gives 'tensor<64x8xf32>', not 'tensor<64x32xf32>'}}
    %0 = sft.all_to_all %x ["cp"] {split = 1 : i64, concat = 0 : i64} : (tensor<16x32xf32>) -> tensor<64x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_to_all_c2_same(%x: tensor<16x32xf32>) {
    // expected-error @below {{cannot cut dimension 0 and put dimension 0 of 'tensor<16x32xf32>' together over 4 ranks}}
    %0 = sft.all_to_all %x ["cp"] {split = 0 : i64, concat = 0 : i64} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @all_to_all_c2_divide(%x: tensor<16x30xf32>) {
    // expected-error @below {{cannot cut dimension 1 and put dimension 0 of 'tensor<16x30xf32>' together over 4 ranks}}
    %0 = sft.all_to_all %x ["cp"] {split = 1 : i64, concat = 0 : i64} : (tensor<16x30xf32>) -> tensor<64x7xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @slice_c2(%x: tensor<16x32xf32>) {
    // expected-error @below {{'tensor<16x32xf32>' is not 4 times 'tensor<16x32xf32>' along dimension 0}}
    %0 = sft.slice %x ["cp"] {dimension = 0 : i64} : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @reorder_c2(%x: tensor<16x32xf32>) {
    // expected-error @below {{turns 'tensor<16x32xf32>' into 'tensor<8x32xf32>'; the types must agree}}
    %0 = sft.reorder %x ["cp"] : (tensor<16x32xf32>) -> tensor<8x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @reorder_c3(%x: tensor<12x32xf32>) {
    // expected-error @below {{has 12 rows, which do not divide into 8 slots}}
    %0 = sft.reorder %x ["cp"] : (tensor<12x32xf32>) -> tensor<12x32xf32>
    return
  }
}

// -----

module attributes {sft.mesh = #sft.mesh<["tp", "cp"], [2, 4]>} {
  func.func @reorder_c3_rank(%x: tensor<f32>) {
    // expected-error @below {{has 1 rows, which do not divide into 8 slots}}
    %0 = sft.reorder %x ["cp"] : (tensor<f32>) -> tensor<f32>
    return
  }
}
