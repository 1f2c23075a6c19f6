// RUN: sftc-opt %s --verify-diagnostics --split-input-file

// expected-error @below {{mesh has 2 names but 1 sizes}}
func.func private @mesh_c1() attributes {sft.mesh = #sft.mesh<["tp", "cp"], [1]>}

// -----

// expected-error @below {{mesh axis "tp" is not a name of its own}}
func.func private @mesh_c2() attributes {sft.mesh = #sft.mesh<["tp", "tp"], [1, 2]>}

// -----

// expected-error @below {{mesh axis 7 : i64 is not a name of its own}}
func.func private @mesh_c2_number() attributes {sft.mesh = #sft.mesh<["tp", 7], [1, 2]>}

// -----

// expected-error @below {{mesh axis "cp" has size 0; sizes are at least 1}}
func.func private @mesh_c3() attributes {sft.mesh = #sft.mesh<["tp", "cp"], [1, 0]>}

// -----

// expected-error @below {{axis "cp" occurs twice in one sharding}}
func.func private @sharding_c1() attributes {sft.sharding = #sft.sharding<[["cp"], ["cp"]], [], []>}

// -----

// expected-error @below {{axis "tp" occurs twice in one sharding}}
func.func private @sharding_c1_partial() attributes {sft.sharding = #sft.sharding<[["tp"]], [], ["tp"]>}

// -----

// expected-error @below {{expected a list of axes for each dimension, got "cp"}}
func.func private @sharding_list() attributes {sft.sharding = #sft.sharding<["cp"], [], []>}

// -----

// expected-error @below {{expected an axis name, got 1 : i64}}
func.func private @sharding_name() attributes {sft.sharding = #sft.sharding<[], [1], []>}

// -----

// expected-error @+2 {{expected one of [row, column, scalar, uniform, periodic, partner, gathered, column_sum] for how a row kernel reaches an operand, got: diagonal}}
// expected-error @+1 {{failed to parse Sft_AccessAttr parameter 'kind'}}
func.func private @access_kind() attributes {sft.access = #sft.access<diagonal>}
