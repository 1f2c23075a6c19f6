//===- FormRowKernels.h - one sft.fused for a row op ----------------------------------===//
#ifndef PASSES_FUSE_FORMROWKERNELS_H
#define PASSES_FUSE_FORMROWKERNELS_H

#include "dialects/sft/SftOps.h"

namespace sftc {

/// Builds the `sft.fused` of a row op at the builder's place. The op itself stays.
FusedOp buildFused(mlir::OpBuilder &builder, RowBody op);

} // namespace sftc

#endif // PASSES_FUSE_FORMROWKERNELS_H
