#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds tests/Build/example with an installed novac, as a user's project would be.

  build_test.py --build BUILD --source SOURCE

BUILD is novac's; it is installed into a temporary folder. The example builds, runs,
and builds nothing the second time; an edit of the graph that changes nothing compiles,
and then builds nothing more; one that does is built.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--build", required=True, type=pathlib.Path)
arguments.add_argument("--source", required=True, type=pathlib.Path)
arguments = arguments.parse_args()


def call(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"FAIL: {' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def expect(condition, what):
    if not condition:
        sys.exit(f"FAIL: {what}")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    os.environ["NOVAC_CACHE_DIR"] = str(folder / "cache")
    prefix, project, build = folder / "prefix", folder / "a project", folder / "build"
    call("cmake", "--install", arguments.build, "--prefix", prefix)
    shutil.copytree(arguments.source / "tests/Build/example", project)
    shutil.copy(arguments.source / "tests/Cli/Inputs/small.json", project)
    # The program is the one that README shows.
    text = (arguments.source / "README.md").read_text()
    program = re.search(r"<!-- begin example -->\n```c\n(.*?)```", text, re.S)[1]
    (project / "train.c").write_text(program.replace("argv[argc - 1]", "argc > 1 ? argv[1] : BUNDLE"))
    call("cmake", "-S", project, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    call("ninja", "-C", build)
    expect("one step with" in call(build / "train"), "the program does not run a step")

    expect("no work to do" in call("ninja", "-C", build), "the second build builds")
    manifest = build / "step.nova/manifest.json"
    before = manifest.stat().st_mtime_ns

    graph = project / "small.json"
    graph.write_text(graph.read_text() + "\n")
    said = call("ninja", "-C", build)
    expect("Compiling step" in said, f"an edited graph is not compiled: {said}")
    expect(manifest.stat().st_mtime_ns == before, "an unchanged bundle has a new time stamp")
    expect("no work to do" in call("ninja", "-C", build), "an unchanged bundle is built again and again")

    graph.write_text(graph.read_text().replace("aten.sub.Tensor", "aten.add.Tensor"))
    call("ninja", "-C", build)
    expect(manifest.stat().st_mtime_ns != before, "another graph gives the old bundle")
    expect("no work to do" in call("ninja", "-C", build), "the build after that builds")
print("pass")
