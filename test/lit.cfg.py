# The text tests of the compiler and its tools. Run one: lit -v build/release/test --filter NAME
import os

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import FindTool, ToolSubst

config.name = "sft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = os.path.dirname(__file__)
config.suffixes = [".mlir", ".test"]
# Other kinds of tests, run by CTest, and folders with data.
config.excludes = ["Inputs", "conformance", "corpus", "damaged", "e2e", "fuzz", "released", "unit"]

llvm_config.use_default_substitutions()
tools = ["sftc", "sftc-opt", "sft-plan", "sft-run"]
llvm_config.add_tool_substitutions(
    [ToolSubst(name, FindTool(name), unresolved="ignore") for name in tools], [config.sft_tools_dir]
)
llvm_config.with_environment("PATH", [config.sft_tools_dir, config.llvm_tools_dir], append_path=True)
# The packaged LLVM is not built with AddressSanitizer: it does not lift what our copies of its inline allocators poison.
llvm_config.with_environment("ASAN_OPTIONS", "allow_user_poisoning=0")
