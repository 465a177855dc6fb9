#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one row of a table of commands, or all of them.

  run_case.py --novac NOVAC --table FILE.json [--case NAME] [--update]

A row is run in a folder of its own that holds small.json (tests/Cli/Inputs). Its
fields, in the order in which they are used:

  name      of the row
  what      is wrong, for people
  bundle    true: small.json has been compiled to small.nova
  graph     {"JSON.PATH[0]": value, ...}: graph.json is small.json with these
            values in place; null deletes
  files     {"name": "text", ...} files to write; a list is joined by newlines
  append    {"name": "text", ...} text to put behind a file
  repeat    {"name": ["text", times], ...} files of repeated text
  damage    [["FILE GLOB", offset, "text"], ...]: overwrites bytes; a null text
            cuts the file there
  command   arguments of novac; may contain {graphs}
  stdin     file to read, stdout: file to write (such as /dev/full)
  status    the expected exit status
  stderr    the expected standard error, by line; the folder's own path and
            digests are replaced by <here> and <digest>
  gone      files that must not be there any more

Afterwards the folder holds what it held before and nothing else, but for what
`gone` names, and standard output is empty. --update rewrites status and stderr
of the rows that differ; the diff is to be read.
"""
import argparse
import copy
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def put(document, path, value):
    """Sets, or with None deletes, what "nodes[1].op" names."""
    steps = [int(i) if i else name for i, name in re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)]
    for step in steps[:-1]:
        document = document[step]
    last = steps[-1]
    if value is None:
        del document[last]
    elif isinstance(document, list) and last == len(document):
        document.append(value)
    else:
        document[last] = value


def snapshot(folder):
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = path.read_bytes() if path.is_file() else None
    return found


def prepare(row, folder, novac, environment):
    shutil.copy(HERE / "Inputs/small.json", folder)
    if row.get("bundle"):
        subprocess.run([novac, "compile", "small.json", "--target", "host", "-o", "small.nova", "--no-cache"],
                       cwd=folder, env=environment, check=True, capture_output=True)
    if "graph" in row:
        document = json.loads((HERE / "Inputs/small.json").read_text())
        for path, value in row["graph"].items():
            put(document, path, copy.deepcopy(value))
        (folder / "graph.json").write_text(json.dumps(document, indent=1))
    for name, text in row.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(text) if isinstance(text, list) else text)
    for name, text in row.get("append", {}).items():
        with open(folder / name, "a") as file:
            file.write(text)
    for name, (text, times) in row.get("repeat", {}).items():
        (folder / name).write_text(text * times)
    for pattern, offset, text in row.get("damage", []):
        for name in sorted(glob.glob(str(folder / pattern), recursive=True)):
            data = bytearray(pathlib.Path(name).read_bytes())
            if text is None:
                data = data[:offset]
            else:
                data[offset:offset + len(text)] = text.encode()
            pathlib.Path(name).write_bytes(data)


def normalised(text, folder, novac):
    text = text.replace(str(folder), "<here>").replace(str(novac), "novac")
    text = re.sub(r"sha256:[0-9a-f]{64}", "sha256:<digest>", text)
    text = re.sub(r"sha256/[0-9a-f]{64}", "sha256/<digest>", text)
    # The size of generated code is nobody's contract.
    text = re.sub(r"(<digest>' has \d+ bytes, the manifest says )\d+", r"\1<size>", text)
    # As in "not in this version (0.1.0)".
    text = re.sub(r"\(\d+\.\d+\.\d+\)", "(<version>)", text)
    return text.splitlines()


def run(row, novac, update):
    with tempfile.TemporaryDirectory(prefix="novac-case-") as name, \
            tempfile.TemporaryDirectory(prefix="novac-cache-") as cache:
        folder = pathlib.Path(name).resolve()
        environment = dict(os.environ, NOVAC_CACHE_DIR=cache, LC_ALL="C")
        prepare(row, folder, novac, environment)
        before = snapshot(folder)
        graphs = str(HERE.parent.parent / "graphs")
        command = [argument.replace("{graphs}", graphs) for argument in row["command"]]
        stdin = open(folder / row["stdin"]) if "stdin" in row else subprocess.DEVNULL
        stdout = open(row["stdout"], "w") if "stdout" in row else subprocess.PIPE
        done = subprocess.run([novac, *command], cwd=folder, env=environment, stdin=stdin, stdout=stdout,
                              stderr=subprocess.PIPE, text=True, timeout=120)
        stderr = normalised(done.stderr.replace(graphs, "<graphs>"), folder, novac)
        problems = []
        if done.stdout:
            problems.append(f"standard output is not empty: {done.stdout!r}")
        expected = dict(before)
        for gone in row.get("gone", []):
            expected.pop(gone, None)
        after = snapshot(folder)
        for path in sorted(set(expected) | set(after)):
            if path not in after:
                problems.append(f"{path} is gone")
            elif path not in expected:
                problems.append(f"{path} was left behind")
            elif after[path] != expected[path]:
                problems.append(f"{path} was changed")
        if done.returncode != row.get("status") or stderr != row.get("stderr"):
            if update:
                row["status"], row["stderr"] = done.returncode, stderr
            else:
                problems.append(f"status {done.returncode}, expected {row.get('status')}")
                problems += [f"  got      {line}" for line in stderr]
                problems += [f"  expected {line}" for line in row.get("stderr", [])]
    print(f"{'FAIL' if problems else 'pass'} {row['name']}: {row['what']}")
    for problem in problems:
        print(f"    {problem}")
    return not problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True, type=os.path.abspath)
    parser.add_argument("--table", required=True, type=pathlib.Path)
    parser.add_argument("--case")
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    rows = json.loads(arguments.table.read_text())
    chosen = [row for row in rows if arguments.case in (None, row["name"])]
    if not chosen:
        sys.exit(f"no row '{arguments.case}' in {arguments.table}")
    results = [run(row, arguments.novac, arguments.update) for row in chosen]
    if arguments.update:
        arguments.table.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
