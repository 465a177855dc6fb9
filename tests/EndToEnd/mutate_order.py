#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether every dependence of a bundle is missed.

  mutate_order.py --novac NOVAC --nova-rt libnova_rt.so --target T,... GRAPH.json...

Compiles each graph; then, of every target, takes each entry out of each launch's
`after`, one at a time, and all of them together: the bundle must be refused, and
the error name both launches. Entries are needed, because novac writes none that
another path implies. The whole manifest is accepted, in under a second.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Device"))
from nova_rt import Library  # noqa: E402
import ctypes  # noqa: E402


def opened(library, bundle):
    """What the reader says; empty if it has nothing to say."""
    handle = ctypes.c_void_p()
    if library.lib.nova_rt_bundle_open(str(bundle).encode(), ctypes.byref(handle)):
        return library.lib.nova_rt_error_message().decode()
    library.lib.nova_rt_bundle_close(handle)
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    parser.add_argument("--nova-rt", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("graphs", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    library = Library(arguments.nova_rt)
    for graph in arguments.graphs:
        with tempfile.TemporaryDirectory() as name:
            bundle = pathlib.Path(name) / "step.nova"
            subprocess.run([arguments.novac, "compile", graph, "-o", bundle, "--target", arguments.target, "--no-cache"],
                           check=True, capture_output=True)
            path = bundle / "manifest.json"
            whole = path.read_text()
            manifest = json.loads(whole)

            def message():
                path.write_text(json.dumps(manifest, sort_keys=True, separators=(",", ":")))
                return opened(library, bundle)

            start = time.monotonic()
            if message():
                sys.exit(f"FAIL: {graph.name}: the whole manifest is refused: {message()}")
            seconds = time.monotonic() - start
            if seconds > 1:
                sys.exit(f"FAIL: {graph.name}: the manifest took {seconds:.2f} s, expected at most 1")
            edges = 0
            for t, target in enumerate(manifest["targets"]):
                launches = target["launches"]
                for i, launch in enumerate(launches):
                    for before in list(launch["after"]):
                        launch["after"].remove(before)
                        said = message()
                        launch["after"] = sorted(launch["after"] + [before])
                        edges += 1
                        where = f"targets[{t}].launches[{i}].after: "
                        if where not in said or f"a path to launch {before} (" not in said or \
                                not re.search(r"bytes \d+ to \d+ of (the arena \(buffer \d+\)|(input|output) \d+ \()", said):
                            sys.exit(f"FAIL: {graph.name}, {target['name']}: launch {i} without {before}: "
                                     f"{said or 'accepted'}")
                if any(launch["after"] for launch in launches):
                    kept = [launch["after"] for launch in launches]
                    for launch in launches:
                        launch["after"] = []
                    if "a path to launch" not in message():
                        sys.exit(f"FAIL: {graph.name}, {target['name']}: accepted without any dependence")
                    for launch, after in zip(launches, kept):
                        launch["after"] = after
            print(f"{graph.name}: {edges} dependences of {arguments.target}, each is missed; "
                  f"{1000 * seconds:.0f} ms for the whole", flush=True)


if __name__ == "__main__":
    main()
