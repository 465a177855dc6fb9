#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares what commands print with tests/Cli/golden/*.txt.

  run_golden.py --novac NOVAC [--case NAME] [--update]

The first line of a golden is the command, "$ novac ARGUMENTS"; below it stands
all of standard output, with version numbers replaced by <version>. The exit
status is 0 and standard error empty. --update rewrites the goldens; the diff is
to be read.
"""
import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"


def run(path, novac, update):
    command, _, expected = path.read_text().partition("\n")
    done = subprocess.run([novac, *command.split()[2:]], capture_output=True, text=True, timeout=60)
    got = re.sub(r"\b\d+\.\d+\.\d+\b", "<version>", done.stdout)
    if update:
        path.write_text(command + "\n" + got)
    good = done.returncode == 0 and not done.stderr and (update or got == expected)
    print(f"{'pass' if good else 'FAIL'} {path.stem}: {command[2:]}")
    if done.returncode or done.stderr:
        print(f"    status {done.returncode}, standard error {done.stderr!r}")
    if got != expected:
        for line in difflib.unified_diff(expected.splitlines(), got.splitlines(), "expected", "got", lineterm=""):
            print("    " + line)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True, type=os.path.abspath)
    parser.add_argument("--case")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    chosen = [p for p in sorted(GOLDEN.glob("*.txt")) if arguments.case in (None, p.stem)]
    if not chosen:
        sys.exit(f"no golden '{arguments.case}' in {GOLDEN}")
    sys.exit(0 if all([run(p, arguments.novac, arguments.update) for p in chosen]) else 1)


if __name__ == "__main__":
    main()
