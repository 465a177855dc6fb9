#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""scripts/torch_step/operations.txt lists what `novac ops` says.

  exporter_operations.py --novac NOVAC [--update]
"""
import argparse
import json
import pathlib
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    said = subprocess.run([arguments.novac, "ops", "--json"], capture_output=True, text=True, check=True).stdout
    wanted = "".join(entry["name"] + "\n" for entry in json.loads(said)["aten"])
    file = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "torch_step" / "operations.txt"
    if arguments.update:
        file.write_text(wanted)
    elif file.read_text() != wanted:
        different = set(file.read_text().split()) ^ set(wanted.split())
        sys.exit(f"FAIL: {file.name} and `novac ops` differ in {', '.join(sorted(different))}; run with --update")


if __name__ == "__main__":
    main()
