//===- SftAttrs.h -----------------------------------------------------------------===//
#ifndef DIALECTS_SFT_SFTATTRS_H
#define DIALECTS_SFT_SFTATTRS_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/sft/SftEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/sft/SftAttrs.h.inc"

namespace sftc {

/// Names of the module attributes of the dialect.
inline constexpr llvm::StringLiteral kMeshAttr = "sft.mesh";              ///< MeshAttr
inline constexpr llvm::StringLiteral kConfigAttr = "sft.config";          ///< StringAttr: config.json
inline constexpr llvm::StringLiteral kRoleAxesAttr = "sft.role_axes";     ///< DictionaryAttr: role -> array of axes
inline constexpr llvm::StringLiteral kTokenAxesAttr = "sft.token_axes";   ///< ArrayAttr: axes that cut the token axis
inline constexpr llvm::StringLiteral kBatchAxesAttr = "sft.batch_axes";   ///< ArrayAttr: axes over which packs differ
inline constexpr llvm::StringLiteral kTokenOrderAttr = "sft.token_order"; ///< StringAttr: global, contiguous, zigzag
inline constexpr llvm::StringLiteral kTokensAttr = "sft.tokens";          ///< IntegerAttr: real tokens of a pack, at most
inline constexpr llvm::StringLiteral kPadReasonsAttr = "sft.pad_reasons"; ///< ArrayAttr of dictionaries: op, multiple, why
/// Argument attributes.
inline constexpr llvm::StringLiteral kTableAttr = "sft.table";            ///< StringAttr: kind of the batch table
inline constexpr llvm::StringLiteral kRolesAttr = "sft.roles";            ///< ArrayAttr: role of each dimension
inline constexpr llvm::StringLiteral kWholeAttr = "sft.whole";            ///< UnitAttr: all rows in global order
/// Op attributes.
inline constexpr llvm::StringLiteral kBackwardAttr = "sft.backward";      ///< UnitAttr: the op belongs to the backward half
inline constexpr llvm::StringLiteral kShardingsAttr = "sft.shardings";    ///< ArrayAttr of ShardingAttr, one a result

} // namespace sftc

#endif // DIALECTS_SFT_SFTATTRS_H
