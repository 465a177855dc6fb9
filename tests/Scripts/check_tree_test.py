#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/check_tree.py passes a copy of this tree, and fails it with each
violation planted alone.

  check_tree_test.py --source ROOT
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

LICENCE = "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
# A file that is added, its text, and what is said of it: None if nothing is.
PLANTED = [
    # classes: below `configured` there are no operators, only what bodies hold.
    ("src/Tiling/Planted.cpp", "bool f(Operation *op) { return isa<SoftmaxOp>(op); }",
     "line 2 names the operator class 'Softmax' below the stage configured"),
    ("include/nova/TileLowering/Planted.h", "bool f(Operation *op) { return isa<nova::MatmulOp>(op); }",
     "line 2 names the operator class 'nova::MatmulOp' below the stage configured"),
    ("src/GpuCodegen/Planted.cpp", 'bool f(func::FuncOp k) { return k->hasAttr(attr::role); }',
     "line 2 names the operator class 'attr::role' below the stage configured"),
    ("src/Tile/Planted.cpp", 'bool f(StringRef name) { return name.starts_with("layer_norm"); }',
     "line 2 names the operator class 'layer_norm' below the stage configured"),
    ("src/Tiling/Planted.cpp", "// as in attention\nbool f(Operation *op) { return isa<IndexPutOp, linalg::MatmulOp>(op); }", None),
    ("src/Transforms/Planted.cpp", "bool f(Operation *op) { return isa<SoftmaxOp>(op); }", None),
    # The other rules.
    ("src/Bundle/Planted.cpp", '#include "nova/IR/Nova.h"',
     "includes nova/IR/Nova.h, expected of Bundle only Bundle, Support"),
    ("src/Tiling/Planted.cpp", '#include <spdlog/spdlog.h>', "includes spdlog/spdlog.h, expected only in Driver"),
    ("src/Tiling/Planted.cpp", "// TODO: later", "line 2: '// TODO: later', expected finished work"),
    ("src/Tiling/Planted.cpp", "// gpt2_tiny is special", "line 2 names the graph 'gpt2_tiny'"),
    ("src/Tiling/Planted.cpp", "\n" * 800, "801 lines, expected at most 800"),
]


def check(root):
    result = subprocess.run([sys.executable, root / "scripts/check_tree.py", root], capture_output=True, text=True)
    return result.returncode, result.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, type=pathlib.Path)
    source = parser.parse_args().source
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name in ("src", "include", "scripts", "tests"):
            shutil.copytree(source / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(source / "graphs", root / "graphs", ignore=shutil.ignore_patterns("*.safetensors"))
        status, output = check(root)
        if status:
            failures.append(f"the tree as it is:\n{output}")
        for path, text, said in PLANTED:
            planted = root / path
            planted.write_text(LICENCE + text + "\n" * (not text.endswith("\n")))
            status, output = check(root)
            planted.unlink()
            lines = [line for line in output.splitlines() if line.startswith(path)]
            expected = [f"{path}: {said}"] if said else []
            if lines != expected or status != (1 if said else 0):
                failures.append(f"{path} with {text[:60]!r}: status {status}, {lines}, expected {expected}")
    print("".join(f"FAIL: {failure}\n" for failure in failures) or f"{len(PLANTED)} plants, all as expected")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
