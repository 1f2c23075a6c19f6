// RUN: sftc-opt %s --verify-diagnostics --split-input-file

// The result's shape is made of head_dim and rows, so C1 and C2 of rotary_table are checked by type inference.

func.func @rotary_table_c1() {
  // expected-error @+2 {{head_dim 15 is not even and positive; rotary embedding turns pairs}}
  // expected-error @+1 {{failed to infer returned types}}
  %c, %s = sft.rotary_table {rows = 512 : i64, head_dim = 15 : i64, parameters = {}} : () -> (tensor<512x15xf32>, tensor<512x15xf32>)
  return
}

// -----

func.func @rotary_table_c1_zero() {
  // expected-error @+2 {{head_dim 0 is not even and positive; rotary embedding turns pairs}}
  // expected-error @+1 {{failed to infer returned types}}
  %c, %s = sft.rotary_table {rows = 512 : i64, head_dim = 0 : i64, parameters = {}} : () -> (tensor<512x0xf32>, tensor<512x0xf32>)
  return
}

// -----

func.func @rotary_table_c2() {
  // expected-error @+2 {{rows is 0; a table has at least one}}
  // expected-error @+1 {{failed to infer returned types}}
  %c, %s = sft.rotary_table {rows = 0 : i64, head_dim = 16 : i64, parameters = {}} : () -> (tensor<0x16xf32>, tensor<0x16xf32>)
  return
}

// -----

func.func @rotary_table_c2_negative() {
  // expected-error @+2 {{rows is -1; a table has at least one}}
  // expected-error @+1 {{failed to infer returned types}}
  %c, %s = sft.rotary_table {rows = -1 : i64, head_dim = 16 : i64, parameters = {}} : () -> (tensor<1x16xf32>, tensor<1x16xf32>)
  return
}

// -----

func.func @rotary_c1(%x: tensor<4x40xf32>, %p: tensor<4xi32>, %t: tensor<512x16xf32>) {
  // expected-error @below {{a row of 40 elements is no whole number of heads of 16}}
  %y = sft.rotary %x, %p, %t, %t : (tensor<4x40xf32>, tensor<4xi32>, tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<4x40xf32>
  return
}

// -----

func.func @rotary_c1_empty(%x: tensor<4x40xf32>, %p: tensor<4xi32>, %t: tensor<512x0xf32>) {
  // expected-error @below {{a row of 40 elements is no whole number of heads of 0}}
  %y = sft.rotary %x, %p, %t, %t : (tensor<4x40xf32>, tensor<4xi32>, tensor<512x0xf32>, tensor<512x0xf32>) -> tensor<4x40xf32>
  return
}
