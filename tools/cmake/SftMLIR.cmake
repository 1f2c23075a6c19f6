# Finds the packaged MLIR 22.1 and defines sft_mlir: the interface every compiler library links.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(sft_mlir INTERFACE)
target_include_directories(sft_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS} ${CMAKE_BINARY_DIR})
separate_arguments(sft_llvm_definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_definitions(sft_mlir INTERFACE ${sft_llvm_definitions})
# Both names are needed: with MLIR alone the linker reports libLLVM.so as missing from the command line.
target_link_libraries(sft_mlir INTERFACE MLIR LLVM)



# TableGen takes its include path from the directory scope.
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
