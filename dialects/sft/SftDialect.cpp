#include "dialects/sft/SftDialect.h"
#include "dialects/sft/SftOps.h"

using namespace mlir;
using namespace sftc;

#include "dialects/sft/SftDialect.cpp.inc"
#include "dialects/sft/SftInterfaces.cpp.inc"

void SftDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/sft/SftOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/sft/SftOps.cpp.inc"
