#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gate on the shape of the tree.

  python3 scripts/check_tree.py [ROOT]

Checks, and prints one line per violation (path: what was found, what was
expected); the last line counts. Exit status 1 if there is any.

  passes    record <-> src/FOLDER/RECORD.cpp <-> flag <-> tests/FOLDER/flag.mlir,
            and flag-errors.mlir where the pass emits errors; every record has a
            summary and a description
  arrows    a library includes only what ARROWS allows it; other people's
            libraries only where THIRD_PARTY allows them
  sizes     no source file is longer than MAX_LINES
  names     no graph of graphs/ is named in src/ or include/
  classes   nothing below the stage `configured` knows a class of operators: no
            operation of the nova dialect but those that move data, no kernel's
            role, no such word in code or in strings
  headers   every source file says what licence it is under (but for examples,
            which README prints)
  leftovers no mark of unfinished work in src/, include/ or scripts/
"""
import pathlib
import re
import sys

MAX_LINES = 800

# A library may include what it points to, and what that may include.
ARROWS = {
    "Support": [],
    "Target": ["Support"],
    "Config": ["Target"],
    "Graph": ["Support"],
    "Bundle": ["Support"],
    "Cache": ["Support"],
    "Simulator": ["Bundle", "Target"],
    "Layout": [],
    "Tile": ["Layout"],
    "TileLowering": ["Tile", "Math"],
    # The loader asks the table which device an architecture stands for.
    "Runtime": ["Bundle", "Target", "Simulator"],
    "IR": ["Config"],
    "Math": [],
    "Import": ["IR", "Graph"],
    "Transforms": ["IR"],
    "Tiling": ["Transforms", "Tile"],
    "HostCodegen": ["IR", "Math"],
    "GpuCodegen": ["IR", "Tiling", "TileLowering"],
    "Pipelines": ["Import", "Transforms", "HostCodegen", "GpuCodegen", "Bundle"],
    "Driver": ["Pipelines", "Cache", "Runtime"],
    "Tools": ["Driver", "Runtime"],
}
MLIR_FOLDERS = {"IR", "Tile", "TileLowering", "Math", "Import", "Transforms", "Tiling", "HostCodegen", "GpuCodegen",
                "Pipelines", "Driver", "Tools"}
# Prefix of an include -> the folders that may have it.
THIRD_PARTY = {
    "nlohmann/": {"Graph", "Bundle", "Runtime"},
    "CLI/": {"Driver"},
    "spdlog/": {"Driver"},
    "mlir/": MLIR_FOLDERS,
    "llvm/": MLIR_FOLDERS,
    "lld/": {"HostCodegen"},
    # The C ABI: its implementation, and those who use it like anybody else.
    "nova-rt/": {"Runtime", "Driver", "Tools"},
}
SOURCES = {".cpp", ".h", ".c", ".td", ".in"}
EMITS_ERRORS = re.compile(r"\bemit(Op)?Error\b")
LEFTOVERS = re.compile(r"\b(TODO|FIXME|XXX)\b")


# What comes after `configured`, and the operations that kernel bodies may hold
# then (nova/Transforms/KernelContract.h).
BELOW_CONFIGURED = ("Tile", "Tiling", "TileLowering", "GpuCodegen")
MOVEMENTS = {"CumsumOp", "ScatterOp", "IndexPutOp", "SegmentSumOp"}
CLASS_WORDS = re.compile(r"attention|softmax|cross_?entropy|(?:layer|rms|batch)_?norm|gelu|silu|adam|embedding|dropout"
                         r"|optimi[sz]er|attr::role|nova\.role", re.I)


class Tree:
    def __init__(self, root):
        self.root = root
        self.violations = []
        self.checked = 0

    def bad(self, path, message):
        self.violations.append(f"{path.relative_to(self.root)}: {message}")

    def files(self, *folders):
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield path

    def sources(self):
        for path in self.files("src", "include"):
            if path.suffix in SOURCES:
                yield path

    # --- passes -----------------------------------------------------------

    def check_passes(self):
        for td in sorted((self.root / "include/nova").glob("*/Passes.td")):
            folder = td.parent.name
            text = td.read_text()
            records = re.findall(r'^def (\w+) : Pass<"([^"]+)"[^>]*> \{\n(.*?)^\}', text, re.M | re.S)
            if len(records) != len(re.findall(r"^def \w+ : Pass<", text, re.M)):
                self.bad(td, "a pass record without a body in braces of its own")
            for name, flag, body in records:
                self.checked += 1
                self.check_pass(td, folder, name, flag, body)

    def check_pass(self, td, folder, name, flag, body):
        kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
        if flag != "nova-" + kebab:
            # Names of libraries keep their own spelling: MLIR's Linalg, LLVM.
            if flag.replace("-", "") != "nova" + name.lower():
                self.bad(td, f"pass {name} has the flag {flag}, expected nova-{kebab}")
            kebab = flag[len("nova-"):]
        for field in ("summary", "description"):
            if not re.search(r"let %s = (\"[^\"]+\"|\[\{\s*\S)" % field, body):
                self.bad(td, f"pass {name} has no {field}")
        if "let constructor" in body:
            self.bad(td, f"pass {name} has a constructor, expected the generated one")
        source = self.root / f"src/{folder}/{name}.cpp"
        if not source.exists():
            self.bad(td, f"pass {name} has no src/{folder}/{name}.cpp")
            return
        test = self.root / f"tests/{folder}/{kebab}.mlir"
        if not test.exists():
            self.bad(source, f"no test tests/{folder}/{kebab}.mlir")
        elif not re.search(r"%s\b" % flag, test.read_text()):
            self.bad(test, f"does not run {flag}")
        errors = self.root / f"tests/{folder}/{kebab}-errors.mlir"
        if EMITS_ERRORS.search(source.read_text()):
            if not errors.exists():
                self.bad(source, f"emits errors, but there is no tests/{folder}/{kebab}-errors.mlir")
            elif "expected-error" not in errors.read_text():
                self.bad(errors, "expects no error")

    # --- includes -----------------------------------------------------------

    def allowed(self, folder):
        seen, todo = set(), [folder]
        while todo:
            for below in ARROWS[todo.pop()]:
                if below not in seen:
                    seen.add(below)
                    todo.append(below)
        return seen | {folder}

    def check_arrows(self):
        for path in self.sources():
            parts = path.relative_to(self.root).parts
            if parts[:2] == ("include", "nova-rt"):
                folder, allowed = "Runtime", set()
            elif parts[0] == "include":
                folder = parts[2]
            else:
                folder = parts[1]
            if folder not in ARROWS:
                if len(parts) > 3 - (parts[0] == "src"):
                    self.bad(path, f"folder {folder} has no arrows in scripts/check_tree.py")
                continue
            allowed = self.allowed(folder)
            for included in re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', path.read_text(), re.M):
                self.checked += 1
                match = re.match(r"nova/(\w+)/", included)
                if match and match.group(1) not in allowed:
                    self.bad(path, f"includes {included}, expected of {folder} only {', '.join(sorted(allowed))}")
                for prefix, folders in THIRD_PARTY.items():
                    if included.startswith(prefix) and folder not in folders:
                        self.bad(path, f"includes {included}, expected only in {', '.join(sorted(folders))}")

    # --- text ---------------------------------------------------------------

    def check_text(self):
        names = {p.stem for p in (self.root / "graphs").glob("*.json")}
        pattern = re.compile(r"\b(%s)\b" % "|".join(sorted(names))) if names else None
        for path in self.files("src", "include", "scripts", "tests"):
            if path.suffix not in SOURCES | {".py", ".sh"}:
                continue
            self.checked += 1
            text = path.read_text()
            top = path.relative_to(self.root).parts[0]
            lines = text.count("\n")
            if lines > MAX_LINES:
                self.bad(path, f"{lines} lines, expected at most {MAX_LINES}")
            if "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception" not in text[:1200] and path.suffix != ".in" \
                    and not path.name.startswith("example_"):
                self.bad(path, "no SPDX line, expected Apache-2.0 WITH LLVM-exception")
            if top == "tests":
                continue
            for number, line in enumerate(text.split("\n"), 1):
                if LEFTOVERS.search(line) and path.name != "check_tree.py":
                    self.bad(path, f"line {number}: '{line.strip()}', expected finished work")
                if pattern and top in ("src", "include") and pattern.search(line):
                    self.bad(path, f"line {number} names the graph '{pattern.search(line).group()}'")


    def check_classes(self):
        ops = set(re.findall(r"^def Nova_(\w+Op)\b", (self.root / "include/nova/IR/NovaOps.td").read_text(), re.M))
        names = re.compile(r"(?<!tile::)(?<!arith::)(?<!linalg::)(?<!tensor::)(?<!math::)\b(?:nova::)?(%s)\b" % "|".join(sorted(ops - MOVEMENTS)))
        for folder in BELOW_CONFIGURED:
            for path in self.files(f"src/{folder}", f"include/nova/{folder}"):
                if path.suffix not in {".cpp", ".h"}:
                    continue
                self.checked += 1
                tile_ops = "namespace nova::tile" in path.read_text() or "using namespace nova::tile" in path.read_text()
                for number, line in enumerate(path.read_text().split("\n"), 1):
                    code = line.split("//")[0]
                    found = CLASS_WORDS.search(code)
                    if not found and not tile_ops:
                        found = names.search(code)
                    if found:
                        self.bad(path, f"line {number} names the operator class '{found.group()}' below the stage configured")


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    tree = Tree(root)
    tree.check_passes()
    tree.check_arrows()
    tree.check_text()
    tree.check_classes()
    for violation in tree.violations:
        print(violation)
    print(f"check_tree: {tree.checked} checks, {len(tree.violations)} violations")
    return 1 if tree.violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
