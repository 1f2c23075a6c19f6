#!/usr/bin/env python3
"""Checks every #include of the project's own headers, and of LLVM's, against the table of who may include whom."""
import argparse
import pathlib
import re
import sys

# What each folder may include directly; what lies below that is allowed too.
MAY_INCLUDE = {
    "runtime/base": [],
    "runtime/plan": ["runtime/base"],
    "runtime/device": ["runtime/base"],
    "runtime/comm": ["runtime/base"],
    "runtime/kernels": ["runtime/plan", "runtime/device"],
    "runtime/executor": ["runtime/kernels", "runtime/comm"],
    "runtime/backends/reference": ["runtime/kernels", "runtime/comm"],
    "runtime/backends/cpu": ["runtime/kernels", "runtime/comm"],
    "runtime/backends/cuda": ["runtime/kernels", "runtime/comm"],
    "runtime/backends/mpi": ["runtime/kernels", "runtime/comm"],
    "runtime/data": ["runtime/base"],
    "runtime/checkpoint": ["runtime/base"],
    "runtime/session": ["runtime/executor", "runtime/data", "runtime/checkpoint"],
    "tools/sft-run": ["runtime/session"],
    "tools/sft-plan": ["runtime/plan"],
    "dialects/sft": [],
    "dialects/plan": ["runtime/plan"],
    "passes": [],
    "passes/graph": ["passes", "dialects/sft"],
    "passes/parallel": ["passes", "dialects/sft"],
    "passes/fuse": ["passes", "dialects/sft"],
    "passes/codegen": ["passes", "dialects/sft", "runtime/plan"],
    "passes/lower": ["passes", "dialects/sft", "dialects/plan", "runtime/plan"],
    "passes/schedule": ["passes", "dialects/plan", "runtime/plan"],
    "passes/verify": ["passes", "dialects/sft", "dialects/plan", "runtime/plan"],
    "compiler": ["passes/graph", "passes/parallel", "passes/fuse", "passes/codegen", "passes/lower", "passes/schedule",
                 "passes/verify", "runtime/plan"],
    "tools/sftc": ["compiler"],
    "tools/sftc-opt": ["compiler"],
    "tools/sftc-lsp-server": ["compiler"],
}
# Folders that may use LLVM and MLIR.
COMPILER = ("dialects/", "passes", "compiler", "tools/sftc")
TOP_FOLDERS = ("runtime", "dialects", "passes", "compiler", "tools")
SOURCE_SUFFIXES = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".inc", ".td", ".def"}
INCLUDE = re.compile(r'^\s*#?\s*include\s*[<"]([^>"]+)[>"]')


def below(folder):
    """The folder and all that it may include, at any depth."""
    seen, todo = set(), [folder]
    while todo:
        each = todo.pop()
        if each not in seen:
            seen.add(each)
            todo += MAY_INCLUDE[each]
    return seen


def check(root):
    problems, files = [], 0
    for top in TOP_FOLDERS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SOURCE_SUFFIXES or not path.is_file():
                continue
            files += 1
            folder = path.parent.relative_to(root).as_posix()
            if folder not in MAY_INCLUDE:
                problems.append(f"{path.relative_to(root)}: folder {folder} is not in the table; add it to MAY_INCLUDE")
                continue
            allowed = below(folder)
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if not match:
                    continue
                header = match.group(1)
                place = f"{path.relative_to(root)}:{number}"
                if header.split("/")[0] in ("mlir", "mlir-c", "llvm", "llvm-c", "lld", "clang"):
                    if not folder.startswith(COMPILER):
                        problems.append(f"{place}: includes {header}, but only the compiler may use LLVM")
                elif header.split("/")[0] in TOP_FOLDERS and "/" in header:
                    target = header.rsplit("/", 1)[0]
                    if target not in allowed:
                        problems.append(f"{place}: {folder} may not include {header}")
                elif header.split("/")[0] == "test":
                    problems.append(f"{place}: includes {header}, which belongs to the tests")
    return problems, files


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=pathlib.Path, help="the source tree")
    problems, files = check(parser.parse_args().root)
    for problem in problems:
        print(problem)
    print(f"{files} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
