#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the generated blocks of README.md.

  update_readme.py [--results FOLDER] [--check]

Between "<!-- begin NAME -->" and "<!-- end NAME -->" stands, for NAME

  example   tests/Runtime/example_step.c, which the tests build and run
  works     what tests/EndToEnd/verify_graph.py found, in FOLDER (build/results);
            left as it is when there is no --results

--check writes nothing and exits with 1 when README.md is not what it would write.
"""
import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def example():
    return "```c\n" + (ROOT / "tests/Runtime/example_step.c").read_text() + "```\n"


def megabytes(size):
    return f"{size / 1e6:.2f}"


def works(folder):
    rows = ["| graph | nodes | launches (unraised) | kernels (unraised) | remarks | arena, MB (lower bound) | "
            "`host`: largest used fraction of the tolerance |", "|---|---|---|---|---|---|---|"]
    for path in sorted(folder.glob("verify-*.json")):
        result = json.loads(path.read_text())
        if "largest_used" not in result:
            verdict = "does not compile"
        elif result["passed"]:
            verdict = f"{result['largest_used']:.2g} of column `{result['column']}`, {result['tested']} outputs"
            if result["untested"]:
                verdict += f", {result['untested']} untested"
        else:
            verdict = f"FAILS ({result['failed']} outputs)"
        rows.append(f"| `{result['graph']}` | {result['nodes']} | {result.get('launches', '')} ({result.get('launches_plain', '')}) | "
                    f"{result.get('kernels', '')} ({result.get('kernels_plain', '')}) | {result.get('remarks', '')} | "
                    f"{megabytes(result.get('arena_bytes', 0))} ({megabytes(result.get('arena_lower_bound', 0))}) | {verdict} |")
    if len(rows) == 2:
        sys.exit(f"update_readme: no results in {folder}")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    blocks = {"example": example()}
    if arguments.results:
        blocks["works"] = works(arguments.results)
    path = ROOT / "README.md"
    text = old = path.read_text()
    for name, block in blocks.items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.S)
        if not pattern.search(text):
            sys.exit(f"update_readme: README.md has no block '{name}'")
        text = pattern.sub(lambda m: m.group(1) + block + m.group(2), text)
    if arguments.check:
        if text != old:
            print("README.md is not what its tests say: run scripts/update_readme.py")
        sys.exit(1 if text != old else 0)
    if text != old:
        path.write_text(text)
    print("README.md " + ("updated" if text != old else "is as it should be"))


if __name__ == "__main__":
    main()
