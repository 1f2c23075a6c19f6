//===- SftDialect.h ---------------------------------------------------------------===//
#ifndef DIALECTS_SFT_SFTDIALECT_H
#define DIALECTS_SFT_SFTDIALECT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dialect.h"

#include "dialects/sft/SftDialect.h.inc"

#endif // DIALECTS_SFT_SFTDIALECT_H
