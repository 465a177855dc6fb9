#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps as the loader encodes them, on a GPU of compute capability 9.0.

  check_tensormaps.py --nova-rt libnova_rt.so [--ptxas PATH] [--device 0]

Writes a bundle around a hand-written kernel (box_to_bytes.ptx) with one launch
per case: element types, swizzles, boxes that leave the tensor, fills, strided
and transposed views. Every byte that a load leaves in shared memory is compared
with what the map says, then again with all inputs at other addresses.
"""
import argparse
import ctypes
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy
import torch

import nova_rt

HERE = pathlib.Path(__file__).parent
ROWS, COLUMNS = 40, 96
ELEMENTS = {"float32": numpy.float32, "tfloat32": numpy.float32, "bfloat16": numpy.uint16, "float16": numpy.float16,
            "uint8": numpy.uint8, "int32": numpy.int32}
SIGNATURE = ["float32", "bfloat16", "int32"]  # the dtypes of the inputs


def case(element="float32", swizzle="none", fill="zero", at=(0, 0), box=None, offset=0, sizes=(COLUMNS, ROWS), strides=None,
         promotion="none"):
    of = {"tfloat32": "float32"}.get(element, element)
    size = numpy.dtype(ELEMENTS[element]).itemsize
    row = {"none": 64, "32b": 32, "64b": 64, "128b": 128}[swizzle] // size
    return {"element": element, "input": SIGNATURE.index(of), "swizzle": swizzle, "fill": fill, "at": at, "size": size,
            "box": box or (row, 32), "offset": offset, "sizes": list(sizes), "strides": strides or [COLUMNS * size],
            "promotion": promotion}


# Where a box begins must be a multiple of 16 bytes in its row: hardware answers others with an illegal instruction.
CASES = [case(element, swizzle, at=at) for element in ("float32", "tfloat32", "bfloat16")
         for swizzle in ("none", "32b", "64b", "128b") for at in ((0, 0), (32, 8))]
CASES += [case(element, "128b", fill, at) for element in ("float32", "tfloat32", "bfloat16") for fill in ("zero", "nan")
          for at in ((-8, -3), (COLUMNS - 8, ROWS - 7), (COLUMNS + 64, 0))]
CASES += [case("int32", "128b", at=(-4, 20)), case("float32", "128b", promotion="256b"),
          # Within a tensor: from an offset, fewer columns, every other row.
          case("float32", "128b", offset=4 * COLUMNS + 64, sizes=(50, 17), strides=[2 * 4 * COLUMNS], at=(24, 3)),
          case("bfloat16", "128b", offset=32, sizes=(7, 40), at=(0, 0), fill="nan")]


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def make_bundle(folder, ptx, cubin):
    """The bundle's folder, with one output per case."""
    def tensor(name, role, dtype, shape, **more):
        size = {"float32": 4, "bfloat16": 2, "int32": 4, "uint8": 1}[dtype]
        strides = [shape[1], 1] if len(shape) == 2 else [1]
        count = 1
        for s in shape:
            count *= s
        return {"name": name, "role": role, "path": "", "dtype": dtype, "shape": shape, "strides": strides,
                "bytes": size * count, "alignment": 16, **more}

    def launch(i, c):
        box_bytes = c["box"][0] * c["box"][1] * c["size"]
        map = {"memory": {"input": c["input"], "offset": c["offset"]}, "element_type": c["element"], "rank": 2,
               "sizes": c["sizes"], "strides": c["strides"], "box": list(c["box"]), "element_strides": [1, 1],
               "interleave": "none", "swizzle": c["swizzle"], "l2_promotion": c["promotion"], "fill": c["fill"]}
        numbers = [{"immediate": v % 2**32, "type": "int32"} for v in (*c["at"], box_bytes)]
        return {"kind": "kernel", "kernel": 0, "args": [{"tensormap": map}, {"output": i, "offset": 0}, *numbers],
                "after": [], "nodes": []}

    scalar = {"kind": "scalar", "size": 4, "alignment": 4}
    kernel = {"name": "box_to_bytes", "symbol": "box_to_bytes", "blob": 0, "ptx_blob": 1, "grid": [1, 1, 1], "block": [128, 1, 1],
              "cluster": [1, 1, 1], "dynamic_shared_bytes": 0, "static_shared_bytes": 32776, "registers": 16, "spill_bytes": 0,
              "schedule": {}, "flops": 0, "bytes": 0, "predicted_ns": 0,
              "params": [{"kind": "tensormap", "size": 128, "alignment": 64}, {"kind": "pointer", "size": 8, "alignment": 8}] + 3 * [scalar]}
    manifest = {
        "schema_version": 1, "features": [], "name": "tensormaps", "graph_digest": digest(b"tensormaps"),
        "producer": {"novac": "0.1.0", "llvm": "", "ptxas": "", "options": {}},
        "numerics": {"matmul": "f32", "deterministic": True, "fast_math": []},
        "inputs": [tensor(f"in_{d}", "input", d, [ROWS, COLUMNS]) for d in SIGNATURE],
        "outputs": [tensor(f"out_{i}", "output", "uint8", [c["box"][0] * c["box"][1] * c["size"]], updates=None) for i, c in enumerate(CASES)],
        "blobs": [{"digest": digest(cubin), "size": len(cubin), "media_type": "application/vnd.nova.cubin"},
                  {"digest": digest(ptx), "size": len(ptx), "media_type": "application/vnd.nova.ptx"}],
        "buckets": [],
        "targets": [{"name": "sm_90a", "device": "h200", "min_driver": 12000, "ptx_version": 80, "kernels": [kernel],
                     "launches": [launch(i, c) for i, c in enumerate(CASES)],
                     "arena": {"size": 0, "alignment": 256, "lower_bound": 0, "buffers": []}, "bucket_ready": [], "constants": []}]}
    bundle = folder / "tensormaps.nova"
    blobs = bundle / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    for content in (cubin, ptx):
        (blobs / hashlib.sha256(content).hexdigest()).write_bytes(content)
    (bundle / "manifest.json").write_text(json.dumps(manifest, sort_keys=True, separators=(",", ":")) + "\n")
    return bundle


def rounded(values):
    """float32 to the nearest TF32 (ties away from zero, then ties to even): the two rules that are possible."""
    bits = values.view(numpy.uint32).astype(numpy.uint64)
    away = (bits + 0x1000) & 0xffffe000
    even = (bits + 0xfff + ((bits >> 13) & 1)) & 0xffffe000
    return [b.astype(numpy.uint32).view(numpy.float32) for b in (away, even)]


def expected(c, memory):
    """The bytes that the box must have in shared memory: one array per rule of rounding."""
    element = ELEMENTS[c["element"]]
    (columns, rows), (width, height), (x, y) = c["sizes"], c["box"], c["at"]
    steps = (c["strides"][0], c["size"])
    view = numpy.lib.stride_tricks.as_strided(memory[c["offset"]:].view(element), (rows, columns), steps)
    answers = []
    for values in rounded(numpy.ascontiguousarray(view)) if c["element"] == "tfloat32" else [view]:
        fill = {"zero": 0, "nan": 0x7fff if element == numpy.uint16 else numpy.nan}[c["fill"]]
        box = numpy.full((height, width), fill, dtype=element)
        for j in range(height):
            for i in range(width):
                if 0 <= y + j < rows and 0 <= x + i < columns:
                    box[j, i] = values[y + j, x + i]
        flat = box.view(numpy.uint8).reshape(-1)
        # 16-byte pieces change places within 2, 4 or 8 of them, by the row of 128 bytes that they are in.
        places = numpy.arange(flat.size)
        pieces = {"none": 1, "32b": 2, "64b": 4, "128b": 8}[c["swizzle"]]
        turn = {1: 0, 2: places >> 7 & 1, 4: places >> 7 & 3, 8: places >> 7 & 7}[pieces]
        swizzled = numpy.empty_like(flat)
        swizzled[places ^ turn << 4] = flat
        answers.append(swizzled)
    return answers


def same(c, ours, answer):
    """Bytes, but any NaN for a NaN that fills."""
    if c["fill"] == "zero":
        return bool((ours == answer).all())
    bits, exponent = (numpy.uint16, 0x7f80) if c["size"] == 2 else (numpy.uint32, 0x7f800000)
    ours, answer = ours.view(bits), answer.view(bits)
    nan = lambda v: ((v & exponent) == exponent) & ((v & (exponent >> 8 | 0x7f)) != 0)
    return bool(((ours == answer) | (nan(ours) & nan(answer))).all())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nova-rt", required=True)
    parser.add_argument("--ptxas", default=shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas")
    parser.add_argument("--device", type=int, default=0)
    arguments = parser.parse_args()
    torch.cuda.set_device(arguments.device)
    random = numpy.random.default_rng(1)
    host = [random.standard_normal((ROWS, COLUMNS), dtype=numpy.float32), None, None]
    host[1] = (random.standard_normal((ROWS, COLUMNS), dtype=numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
    host[2] = random.integers(-2**31, 2**31, (ROWS, COLUMNS), dtype=numpy.int32)
    bytes_of = [h.reshape(-1).view(numpy.uint8) for h in host]
    library = nova_rt.Library(arguments.nova_rt)
    failed, rules = 0, [0, 0]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        subprocess.run([arguments.ptxas, "-arch=sm_90a", "-o", folder / "cubin", HERE / "box_to_bytes.ptx"], check=True)
        bundle = make_bundle(folder, (HERE / "box_to_bytes.ptx").read_bytes(), (folder / "cubin").read_bytes())
        torch.zeros(1, device="cuda")
        step = nova_rt.Step(library, bundle, arguments.device)
        signature = nova_rt.Signature(library, bundle)
        keep = []
        for turn in ("first addresses", "other addresses"):
            inputs = [torch.from_numpy(b.copy()).cuda() for b in bytes_of]
            outputs = [torch.full((c["box"][0] * c["box"][1] * c["size"],), 0xcd, dtype=torch.uint8, device="cuda") for c in CASES]
            keep += inputs + outputs
            step.bind(signature.addresses(inputs, outputs))
            torch.cuda.synchronize()
            step.launch(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
            torch.cuda.synchronize()
            for c, out in zip(CASES, outputs):
                ours = out.cpu().numpy()
                good = [same(c, ours, answer) for answer in expected(c, bytes_of[c["input"]])]
                if c["element"] == "tfloat32":
                    rules = [r + g for r, g in zip(rules, good)]
                if not any(good):
                    failed += 1
                    print(f"FAILED {turn}: {c}: {int((ours != expected(c, bytes_of[c['input']])[0]).sum())} of {ours.size} bytes differ")
        print(f"{torch.cuda.get_device_name()}: {2 * len(CASES) - failed} of {2 * len(CASES)} boxes right; of the tfloat32 ones "
              f"{rules[0]} round ties away from zero, {rules[1]} to even; node updates {step.instance_info().node_updates}")
        step.close()
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
