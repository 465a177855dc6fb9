#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Would the simulator notice? Puts faults into the PTX of a compiled graph.

  mutate_ptx.py --novac NOVAC --graph GRAPH.json --data DATA --precision P
                [--seed S] [--count 20] [--expect 18] [--keep DIR]
  mutate_ptx.py --novac NOVAC --hopper ... puts them into a product by warpgroups, with
                tensor maps and mbarriers, for sm_90a

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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Device"))
import problems  # noqa: E402

NUMBERS = {"wrong result"}
ORDER = {"race", "unfinished copy", "uninitialised read", "partial barrier", "deadlock"} | NUMBERS
PLACE = {"out of bounds", "misaligned", "uninitialised read", "race", "unfinished copy", "write outside the outputs",
         "undefined behaviour"} | NUMBERS


def drop(line):
    return "\t// dropped: " + line.strip()


def more_offset(line, by):
    """The first address of the line, which a register or a name begins, `by` bytes further."""
    found = re.search(r"\[([%\w$]+)(\+(-?\d+))?\]", line)
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


ASYNC = ORDER | {"missing proxy fence", "unfinished product", "phase error", "transaction count", "out of bounds", "misaligned",
                 "divergence", "undefined behaviour"}


def with_changed(register, change):
    """The line, with a register of its own for one operand."""
    def apply(line):
        operand = re.search(register, line)[1]
        body = line[:line.index(operand, re.search(register, line).start(1))] + "changed" + \
            line[re.search(register, line).end(1):]
        return "\t{ .reg .b32 changed; " + change.replace("$", operand) + " " + body.strip() + " }"
    return apply


# Of what runs by itself: copies by tensor maps, mbarriers, products of warpgroups.
HOPPER_KINDS = {
    "drop the fence of the mbarriers": (r"\tfence\.mbarrier_init", drop, ASYNC),
    "drop a wait for a phase": (r"\tmbarrier\.try_wait", lambda l: "\tsetp.eq.u32 P1, 0, 0;", ASYNC),
    "wait for the other phase": (r"\tmbarrier\.try_wait.*", with_changed(r"\], ([^,]+),", "xor.b32 changed, $, 1;"), ASYNC),
    "expect fewer bytes": (r"\tmbarrier\.arrive\.expect_tx", with_changed(r"\], ([^;]+);", "sub.u32 changed, $, 1024;"), ASYNC),
    "expect more bytes": (r"\tmbarrier\.arrive\.expect_tx", with_changed(r"\], ([^;]+);", "add.u32 changed, $, 16;"), {"deadlock"}),
    "drop a wait for products": (r"\twgmma\.(commit_group.*)?wait_group", drop, ASYNC),
    "drop a commit of products": (r"\twgmma\.commit_group", lambda l: l.replace("wgmma.commit_group.sync.aligned;", ""), ASYNC),
    "drop a fence of registers": (r".*wgmma\.fence\.sync", lambda l: l.replace("wgmma.fence.sync.aligned;", ""), ASYNC),
    "drop an arrival": (r"\tmbarrier\.arrive\.shared", drop, ASYNC),
    "one arrival more in a phase": (r"\tmbarrier\.init", with_changed(r"\], ([^;]+);", "add.u32 changed, $, 1;"), ASYNC),
    "one stage less for one side": (r"\tsetp\.eq\.b(32|64) \t%p\d+, %rd?\d+, [2-8];",
                                    lambda l: re.sub(r"(\d);", lambda m: f"{int(m[1]) - 1};", l), ASYNC | {"endless"}),
    "another swizzle in a descriptor": (r"\tor\.b64 \t%rd\d+, %rd\d+, 46\d{17};",
                                        lambda l: re.sub(r"(\d+);", lambda m: f"{int(m[1]) ^ 3 << 62};", l), ASYNC),
    "a copy to another place": (r"\tcp\.async\.bulk\.tensor", lambda l: more_offset(l, 128), ASYNC),
    "drop a copy": (r"\tcp\.async\.bulk\.tensor", drop, ASYNC),
}

# Later products find their sums as the one before has left them, and need no
# fence: of this kind the first line is changed.
FIRST = {"drop a fence of registers"}


def product(folder):
    """A product that `novac` computes by warpgroups, as a graph."""
    m, n, k = 500, 768, 1000
    b = problems.Builder(random.Random(0), "float32")
    right = b.op("aten.t.default", [b.input([n, k])], [k, n])
    y = b.op("aten.mm.default", [b.input([m, k]), right], [m, n])
    b.output(b.op("aten.mul.Tensor", [y, 0.03], [m, n]), "gradient")
    path = folder / "product.json"
    path.write_text(json.dumps(b.finish("product"), separators=(",", ":")))
    return path


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
    """Without data, against the host target of the bundle."""
    given = ["--data", data] if data else ["--seed", "1"]
    done = subprocess.run([novac, "verify", bundle, "--simulate", "--json"] + given, capture_output=True, text=True)
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
    parser.add_argument("--graph")
    parser.add_argument("--data")
    parser.add_argument("--hopper", action="store_true")
    parser.add_argument("--precision", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--expect", type=int, default=18)
    arguments = parser.parse_args()
    if bool(arguments.graph and arguments.data) == arguments.hopper:
        sys.exit("mutate_ptx: --graph and --data, or --hopper")
    print(f"seed {arguments.seed}")
    rng = random.Random(arguments.seed)
    found = 0
    with tempfile.TemporaryDirectory() as name:
        original = pathlib.Path(name) / "step.nova"
        graph = product(pathlib.Path(name)) if arguments.hopper else arguments.graph
        target = "sm_90a,host" if arguments.hopper else "sm_80"
        subprocess.run([arguments.novac, "compile", graph, "-o", original, "--target", target, "--precision",
                        arguments.precision, "--no-cache"], check=True, capture_output=True)
        kind, what = simulate(arguments.novac, original, arguments.data)
        if kind:
            sys.exit(f"FAIL: the bundle as compiled: {what}")
        texts = {}
        bundle = Bundle(original)
        kernels = [k for t in bundle.manifest["targets"] if t["name"] != "host" for k in t["kernels"]]
        if arguments.hopper and not any(k["schedule"].get("family") == "hopper" for k in kernels):
            sys.exit("FAIL: the product is not computed by warpgroups: draw a larger one")
        for kernel in kernels:
            if kernel["block"][0] > 32:
                texts[kernel["ptx_blob"]] = (kernel["name"], bundle.blob(kernel["ptx_blob"]).read_text().split("\n"))
        all_kinds = HOPPER_KINDS if arguments.hopper else KINDS
        kinds = list(all_kinds)
        for number in range(arguments.count):
            kind = kinds[number % len(kinds)]
            pattern, change, expected = all_kinds[kind]
            places = [(blob, k) for blob, (_, lines) in sorted(texts.items()) for k, l in enumerate(lines) if re.match(pattern, l)]
            if not places:
                sys.exit(f"FAIL: no line for '{kind}' in the PTX")
            blob, line = places[0] if kind in FIRST else rng.choice(places)
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
