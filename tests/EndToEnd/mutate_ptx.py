#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Would the simulator notice? Puts faults into the PTX of a compiled graph.

  mutate_ptx.py --novac NOVAC --graph GRAPH.json --data DATA --precision P
                [--seed S] [--count 20] [--expect 18] [--keep DIR]

Draws `count` mutations, of each kind below in turn, and simulates each: the
bundle is verified with one line of one kernel changed. Found is a mutation that
is reported as a fault of a kind that fits, or whose results are wrong. At least
`expect` must be, and the bundle as compiled must be clean. Mutations of the
same kind are drawn from kernels that are launched with more than one warp.
"""
import argparse
import hashlib
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

NUMBERS = {"wrong result"}
ORDER = {"race", "unfinished copy", "uninitialised read", "partial barrier", "deadlock"} | NUMBERS
PLACE = {"out of bounds", "misaligned", "uninitialised read", "race", "unfinished copy", "write outside the outputs",
         "undefined behaviour"} | NUMBERS


def drop(line):
    return "\t// dropped: " + line.strip()


def more_offset(line, by):
    found = re.search(r"\[(%\w+)(\+(-?\d+))?\]", line)
    return line[:found.start()] + f"[{found[1]}+{int(found[3] or 0) + by}]" + line[found.end():]


def swap_comparison(line):
    swaps = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
    return re.sub(r"setp\.(lt|ge|gt|le|eq|ne)\.", lambda m: f"setp.{swaps[m[1]]}.", line, count=1)


# Kind: the lines it changes, how, and what the simulator may call it.
# A wait for all groups, after a loop, finds nothing in flight: it is no fault to
# lose it.
KINDS = {
    "drop a barrier": (r"\tbar\.sync ", drop, ORDER),
    "drop a wait": (r"\tcp\.async\.wait_group \t[1-9]", drop, ORDER),
    "wait for one group less": (r"\tcp\.async\.wait_group \t[1-9]",
                                lambda l: re.sub(r"(\d+);", lambda m: f"{int(m[1]) + 1};", l), ORDER),
    "alter a swizzle": (r"\txor\.b32 \t%r\d+, %r\d+, (16|32|64);",
                        lambda l: re.sub(r"(\d+);", lambda m: f"{int(m[1]) ^ 48};", l), PLACE),
    "alter the offset of a shared load": (r"\t(ldmatrix|ld\.shared)", lambda l: more_offset(l, 16), PLACE),
    "alter the offset of a copy": (r"\tcp\.async\.c[ag]", lambda l: more_offset(l, 16), PLACE),
    "alter the offset of a global load": (r"\t(@%p\d+ )?ld\.global", lambda l: more_offset(l, 4), PLACE),
    "alter the offset of a global store": (r"\t(@%p\d+ )?st\.global", lambda l: more_offset(l, 16), PLACE),
    "turn a comparison round": (r"\tsetp\.(lt|ge|gt|le|eq|ne)\.[us]", swap_comparison, PLACE | ORDER | {"endless", "divergence"}),
    "drop a shared store": (r"\tst\.shared", drop, ORDER | PLACE),
}


class Bundle:
    def __init__(self, folder):
        self.folder = folder
        self.manifest = json.loads((folder / "manifest.json").read_text())

    def blob(self, index):
        return self.folder / "blobs/sha256" / self.manifest["blobs"][index]["digest"].split(":")[1]

    def replace(self, index, text):
        """Gives a blob other bytes; the manifest agrees with them."""
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        # The manifest as text: its canonical form is novac's business.
        path = self.folder / "manifest.json"
        blob = self.manifest["blobs"][index]
        old = json.dumps(blob, sort_keys=True, separators=(",", ":"))
        new = json.dumps(blob | {"digest": "sha256:" + digest, "size": len(data)}, sort_keys=True, separators=(",", ":"))
        content = path.read_text()
        if content.count(old) != 1:
            sys.exit(f"FAIL: the manifest does not hold {old} once")
        path.write_text(content.replace(old, new))
        (self.folder / "blobs/sha256" / digest).write_bytes(data)


def simulate(novac, bundle, data):
    done = subprocess.run([novac, "verify", bundle, "--simulate", "--data", data, "--json"], capture_output=True, text=True)
    if done.returncode == 0:
        return None, "clean"
    if done.returncode != 5:
        sys.exit(f"FAIL: exit status {done.returncode}: {done.stderr}")
    fault = json.loads(done.stdout)["targets"][0].get("fault")
    if not fault:
        return "wrong result", "wrong result"
    return fault["kind"], f"{fault['kind']}: line {fault['ptx_line']}, {fault['what']}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--novac", required=True)
    parser.add_argument("--graph", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--precision", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--expect", type=int, default=18)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    found = 0
    with tempfile.TemporaryDirectory() as name:
        original = pathlib.Path(name) / "step.nova"
        subprocess.run([arguments.novac, "compile", arguments.graph, "-o", original, "--target", "sm_80", "--precision",
                        arguments.precision, "--no-cache"], check=True, capture_output=True)
        kind, what = simulate(arguments.novac, original, arguments.data)
        if kind:
            sys.exit(f"FAIL: the bundle as compiled: {what}")
        texts = {}
        bundle = Bundle(original)
        for kernel in bundle.manifest["targets"][0]["kernels"]:
            if kernel["block"][0] > 32:
                texts[kernel["ptx_blob"]] = (kernel["name"], bundle.blob(kernel["ptx_blob"]).read_text().split("\n"))
        kinds = list(KINDS)
        for number in range(arguments.count):
            kind = kinds[number % len(kinds)]
            pattern, change, expected = KINDS[kind]
            places = [(blob, k) for blob, (_, lines) in sorted(texts.items()) for k, l in enumerate(lines) if re.match(pattern, l)]
            blob, line = rng.choice(places)
            kernel, lines = texts[blob]
            mutant = pathlib.Path(name) / "mutant.nova"
            shutil.rmtree(mutant, ignore_errors=True)
            shutil.copytree(original, mutant)
            changed = lines[:line] + [change(lines[line])] + lines[line + 1:]
            Bundle(mutant).replace(blob, "\n".join(changed))
            reported, what = simulate(arguments.novac, mutant, arguments.data)
            good = reported in expected
            found += good
            print(f"{'found ' if good else 'MISSED'} {kind}: {kernel} line {line + 1} ({lines[line].strip()}) -> {what}"[:400], flush=True)
    print(f"{found} of {arguments.count} found")
    if found < arguments.expect:
        sys.exit(f"FAIL: {found} found, expected at least {arguments.expect}")


if __name__ == "__main__":
    main()
