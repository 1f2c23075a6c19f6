//===- sftc-opt.cpp - runs single passes on the compiler's dialects -------------===//

#include "compiler/Register.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  sftc::registerAll(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "sftc-opt: runs passes of sftc on a file\n", registry));
}
