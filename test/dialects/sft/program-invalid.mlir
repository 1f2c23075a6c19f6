// RUN: sftc-opt %s --verify-diagnostics --split-input-file

// expected-error @below {{has 1 roles for 2 dimensions}}
sft.parameter @parameter_c1 : tensor<4x4xf32> roles ["hidden"] checkpoint "w" decay true

// -----

// expected-error @below {{has type 'tensor<?x4xf32>'; a parameter's shape is static and not empty}}
sft.parameter @parameter_c2_dynamic : tensor<?x4xf32> roles ["hidden", "ffn"] checkpoint "w" decay true

// -----

// expected-error @below {{has type 'tensor<0x4xf32>'; a parameter's shape is static and not empty}}
sft.parameter @parameter_c2_empty : tensor<0x4xf32> roles ["hidden", "ffn"] checkpoint "w" decay true

// -----

// expected-error @below {{has kind "weight"; kinds are parameter, gradient, exp_avg, exp_avg_sq and scalar}}
sft.state @state_c1 : tensor<4x256xf32> "weight" of "decayed"

// -----

func.func @read_c1() {
  // expected-error @below {{reads @missing, which is no sft.parameter or sft.state}}
  %0 = sft.read @missing : tensor<4xf32>
  return
}

// -----

func.func @read_c1_kind() {
  // expected-error @below {{reads @read_c1_kind, which is no sft.parameter or sft.state}}
  %0 = sft.read @read_c1_kind : tensor<4xf32>
  return
}

// -----

// expected-note @below {{declared here}}
sft.parameter @w : tensor<4x4xf32> roles ["hidden", "ffn"] checkpoint "w" decay true
func.func @read_c2_element() {
  // expected-error @below {{has type 'tensor<4x4xbf16>' but the symbol has type 'tensor<4x4xf32>'}}
  %0 = sft.read @w : tensor<4x4xbf16>
  return
}

// -----

// expected-note @below {{declared here}}
sft.parameter @w : tensor<4x4xf32> roles ["hidden", "ffn"] checkpoint "w" decay true
func.func @read_c2_shape() {
  // expected-error @below {{has type 'tensor<3x4xf32>' but the symbol has type 'tensor<4x4xf32>'}}
  %0 = sft.read @w : tensor<3x4xf32>
  return
}

// -----

// expected-note @below {{declared here}}
sft.state @s : tensor<4x256xf32> "gradient" of "decayed"
func.func @read_c2_rank() {
  // expected-error @below {{has type 'tensor<4xf32>' but the symbol has type 'tensor<4x256xf32>'}}
  %0 = sft.read @s : tensor<4xf32>
  return
}

// -----

sft.parameter @w : tensor<4x4xf32> roles ["hidden", "ffn"] checkpoint "w" decay true
func.func @write_c1(%v: tensor<4x4xf32>) {
  // expected-error @below {{writes @w, which is no sft.state}}
  sft.write %v, @w : tensor<4x4xf32>
  return
}

// -----

// expected-note @below {{declared here}}
sft.state @s : tensor<4x256xf32> "gradient" of "decayed"
func.func @write_c2(%v: tensor<8x256xf32>) {
  // expected-error @below {{has type 'tensor<8x256xf32>' but the symbol has type 'tensor<4x256xf32>'}}
  sft.write %v, @s : tensor<8x256xf32>
  return
}

// -----

sft.state @s : tensor<4x256xf32> "gradient" of "decayed"
func.func @accumulate_gradient_c1(%v: tensor<4x256xf32>) {
  // expected-error @below {{adds to the gradient of @s, which is no sft.parameter}}
  sft.accumulate_gradient %v, @s : tensor<4x256xf32>
  return
}

// -----

// expected-note @below {{declared here}}
sft.parameter @w : tensor<4x4xf32> roles ["hidden", "ffn"] checkpoint "w" decay true
func.func @accumulate_gradient_c2(%v: tensor<?x4xf32>) {
  // expected-error @below {{has type 'tensor<?x4xf32>' but the symbol has type 'tensor<4x4xf32>'}}
  sft.accumulate_gradient %v, @w : tensor<?x4xf32>
  return
}

// -----

func.func @axis_offset_c1() {
  // expected-error @below {{scale is 0; it is at least 1}}
  %0 = sft.axis_offset ["tp"] * 0 : tensor<1xi32>
  return
}

// -----

func.func @fused_c1(%x: tensor<2x4xf32>) {
  // expected-error @below {{has 1 operands and 1 results but 0 and 1 accesses}}
  %r = sft.fused %x attributes {operand_access = [], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c1_attribute(%x: tensor<2x4xf32>) {
  // expected-error @below {{"row" is no #sft.access}}
  %r = sft.fused %x attributes {operand_access = ["row"], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c1_yield(%x: tensor<2x4xf32>) {
  // expected-error @below {{yields 0 values for 1 results}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield
  }
  return
}

// -----

func.func @fused_c1_terminator(%x: tensor<2x4xf32>) {
  // expected-error @below {{body ends in func.return; it must end in sft.yield}}
  %r = "sft.fused"(%x) <{operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 4 : i64}> ({
  ^bb0(%a: f32):
    func.return
  }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @fused_c2(%x: tensor<2x4xf32>) {
  // expected-error @below {{body takes 0 scalars for 1 operands}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2x4xf32>) -> tensor<2x4xf32> {
    %a = arith.constant 0.0 : f32
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c2_bf16(%x: tensor<2x4xbf16>) {
  // expected-error @below {{body argument 0 has type 'bf16' for an operand of type 'tensor<2x4xbf16>'}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2x4xbf16>) -> tensor<2x4xf32> {
  ^bb0(%a: bf16):
    %b = arith.extf %a : bf16 to f32
    sft.yield %b : f32
  }
  return
}

// -----

func.func @fused_c2_i32(%x: tensor<2xi32>) {
  // expected-error @below {{body argument 0 has type 'f32' for an operand of type 'tensor<2xi32>'}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<scalar>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2xi32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_row(%x: tensor<2x3xf32>) {
  // expected-error @below {{operand 0 has type tensor<2x3xf32>; row access needs 2x4}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2x3xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_rank(%x: tensor<f32>) {
  // expected-error @below {{operand 0 has type tensor<f32>; row access needs 1x4}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<column_sum>], width = 4 : i64}
      : (tensor<f32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_column(%x: tensor<2xf32>) {
  // expected-error @below {{operand 0 has type tensor<2xf32>; column access needs 4}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<column>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_scalar(%x: tensor<4xf32>) {
  // expected-error @below {{operand 0 has type tensor<4xf32>; scalar access needs 2}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<scalar>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_uniform(%x: tensor<4xf32>) {
  // expected-error @below {{operand 0 has type tensor<4xf32>; uniform access needs an element inside a vector}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<uniform, element = 4>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_periodic(%x: tensor<2x3xf32>) {
  // expected-error @below {{operand 0 has type tensor<2x3xf32>; the period 3 must divide 4}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<periodic, period = 3>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2x3xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_partner(%x: tensor<2x3xf32>) {
  // expected-error @below {{operand 0 has type tensor<2x3xf32>; the period 3 must be even and divide 3}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<partner, period = 3>], result_access = [#sft.access<row>], width = 3 : i64}
      : (tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_gathered(%x: tensor<10x3xf32>, %i: tensor<2xi32>) {
  // expected-error @below {{operand 0 has type tensor<10x3xf32>; gathered access needs rows of 4}}
  %r = sft.fused %x, %i attributes {operand_access = [#sft.access<gathered, period = 4, index = 1>, #sft.access<scalar>],
                                    result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<10x3xf32>, tensor<2xi32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %b: i32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_index(%x: tensor<10x4xf32>, %i: tensor<2xf32>) {
  // expected-error @below {{operand 0 is gathered by operand 1, which is no i32 scalar}}
  %r = sft.fused %x, %i attributes {operand_access = [#sft.access<gathered, period = 4, index = 1>, #sft.access<scalar>],
                                    result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<10x4xf32>, tensor<2xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %b: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_offset(%x: tensor<10x4xf32>, %i: tensor<2xi32>) {
  // expected-error @below {{operand 0 is offset by operand 9, which is no i32 uniform}}
  %r = sft.fused %x, %i attributes {operand_access = [#sft.access<gathered, period = 4, index = 1, offset = 9>, #sft.access<scalar>],
                                    result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<10x4xf32>, tensor<2xi32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32, %b: i32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c3_result(%x: tensor<2x4xf32>) {
  // expected-error @below {{result 0 has type tensor<3xf32>; column access needs 4}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<column_sum>], width = 4 : i64}
      : (tensor<2x4xf32>) -> tensor<3xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c4_operand(%x: tensor<4xf32>) {
  // expected-error @below {{operand 0 has access column_sum, which is for results}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<column_sum>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c4_result(%x: tensor<2x4xf32>) {
  // expected-error @below {{result 0 has access #sft.access<column>; results are row, scalar or column_sum}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<column>], width = 4 : i64}
      : (tensor<2x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_c4_scalar(%x: tensor<2x4xf32>) {
  // expected-error @below {{result 0 is a scalar of each row but depends on the column}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<scalar>], width = 4 : i64}
      : (tensor<2x4xf32>) -> tensor<2xf32> {
  ^bb0(%a: f32):
    %b = math.exp %a : f32
    sft.yield %b : f32
  }
  return
}

// -----

func.func @fused_c5(%x: tensor<2x4xf32>) {
  // expected-error @below {{body holds sft.read; only arith, math, sft.row_reduce and sft.column_index may stand there}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 4 : i64}
      : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    %w = sft.read @w : tensor<4xf32>
    sft.yield %a : f32
  }
  return
}

// -----

func.func @fused_width(%x: tensor<2x4xf32>) {
  // expected-error @below {{width is 0; a row has at least one column}}
  %r = sft.fused %x attributes {operand_access = [#sft.access<row>], result_access = [#sft.access<row>], width = 0 : i64}
      : (tensor<2x4xf32>) -> tensor<2x4xf32> {
  ^bb0(%a: f32):
    sft.yield %a : f32
  }
  return
}

// -----

func.func @yield_parent() {
  // expected-error @below {{'sft.yield' op expects parent op 'sft.fused'}}
  sft.yield
}
