#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes the bad manifests of this folder: one small good one, each with one
thing wrong. Run it after adding an attack, then `BundleTests --regenerate` for
the expected errors in table.txt, and review both.

    python3 tests/Bundle/attacks/make_attacks.py
"""
import copy
import json
import pathlib

HERE = pathlib.Path(__file__).parent
P = {"kind": "pointer", "size": 8, "alignment": 8}
S = {"kind": "scalar", "size": 4, "alignment": 4}


def tensor(name, role, shape, strides, count, **more):
    return {"name": name, "role": role, "path": "", "dtype": "float32", "shape": shape,
            "strides": strides, "bytes": 4 * count, "alignment": 16, **more}


def kernel(name, params):
    return {"name": name, "symbol": name, "blob": 0, "ptx_blob": None, "grid": [4, 1, 1],
            "block": [1, 1, 1], "cluster": [1, 1, 1], "dynamic_shared_bytes": 0,
            "static_shared_bytes": 0, "registers": 0, "spill_bytes": 0, "schedule": {},
            "flops": 0, "bytes": 0, "predicted_ns": 0, "params": params}


def launch(kind, kernel, args, after):
    return {"kind": kind, "kernel": kernel, "args": args, "after": after, "nodes": []}


def ref(kind, index, offset=0):
    return {kind: index, "offset": offset}


def good():
    digests = ["sha256:" + c * 64 for c in "abc"]
    host = {
        "name": "host", "device": "x86-64-v3", "min_driver": 0, "ptx_version": 0,
        "kernels": [kernel("forward", [P, P, S]), kernel("backward", [P, P])],
        "launches": [
            launch("kernel", 0, [ref("input", 0), ref("buffer", 0), {"immediate": 1, "type": "float32"}], []),
            launch("kernel", 1, [ref("buffer", 1), ref("output", 1)], [0]),
            launch("memset", None, [ref("output", 0), {"immediate": 0, "type": "uint8"},
                                    {"immediate": 4, "type": "int64"}], []),
            launch("copy", None, [ref("output", 2), ref("constant", 0), {"immediate": 8, "type": "int64"}], [1]),
        ],
        "arena": {"size": 1024, "alignment": 256, "lower_bound": 512,
                  "buffers": [{"offset": 0, "size": 256, "first": 0, "last": 1},
                              {"offset": 256, "size": 256, "first": 1, "last": 3}]},
        "bucket_ready": [1],
        "constants": [{"blob": 1, "offset": 8, "size": 8}],
    }
    return copy.deepcopy({
        "schema_version": 1, "features": [], "name": "attack", "graph_digest": digests[0],
        "producer": {"novac": "0.1.0", "llvm": "22.1.8", "ptxas": "", "options": {}},
        "numerics": {"matmul": "f32", "deterministic": True, "fast_math": []},
        "inputs": [tensor("w", "parameter", [2, 3], [3, 1], 6), tensor("lr", "scalar", [], [], 1)],
        "outputs": [tensor("loss", "loss", [], [], 1, updates=None),
                    tensor("g", "gradient", [2, 3], [3, 1], 6, updates=None),
                    tensor("w_new", "update", [2, 3], [3, 1], 6, updates=0)],
        "blobs": [{"digest": digests[0], "size": 100, "media_type": "application/vnd.nova.host"},
                  {"digest": digests[1], "size": 16, "media_type": "application/vnd.nova.data"},
                  {"digest": digests[2], "size": 50, "media_type": "application/vnd.nova.cubin"}],
        "targets": [host],
        "buckets": [{"bytes": 24, "gradients": [1]}],
    })  # P and S stand in it more than once


ATTACKS = {}


def text(name, edit):
    assert name not in ATTACKS, name
    ATTACKS[name] = edit(json.dumps(good(), sort_keys=True, separators=(",", ":")).encode())


def put(name, path, value):
    """Sets (or with DELETE removes) what `path` leads to, e.g. targets/0/name."""
    def edit(_):
        manifest = good()
        at = manifest
        *way, last = [int(p) if p.isdigit() else p for p in path.split("/")]
        for step in way:
            at = at[step]
        if value is DELETE:
            del at[last]
        elif isinstance(at, list) and last == len(at):
            at.append(value)
        else:
            at[last] = value
        return json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    text(name, edit)


DELETE = object()
HOST, L, K, A = "targets/0", "targets/0/launches", "targets/0/kernels", "targets/0/arena"
BIG = 2**63 - 1


def gpu(**changes):
    """A second target, with one kernel that is right but for `changes`."""
    k = kernel("k", [{"kind": "tensormap", "size": 128, "alignment": 64}])
    k.update(blob=2, **changes)
    tensormap = {"memory": ref("input", 0), "element_type": "float32", "rank": 2, "sizes": [2, 2],
                 "strides": [16], "box": [4, 2], "element_strides": [1, 1], "interleave": "none",
                 "swizzle": "none", "l2_promotion": "none", "fill": "zero"}
    return {"name": "sm_90a", "device": "h200", "min_driver": 0, "ptx_version": 0, "kernels": [k],
            "launches": [launch("kernel", 0, [{"tensormap": tensormap}], [])],
            "arena": {"size": 0, "alignment": 256, "lower_bound": 0, "buffers": []},
            "bucket_ready": [0], "constants": []}


def gpu_map(**changes):
    target = gpu()
    target["launches"][0]["args"][0]["tensormap"].update(changes)
    return target


def gpu_table(count, size=None, **changes):
    """A second target, whose kernel has a table of two pointers, and `count` arguments."""
    target = gpu()
    target["kernels"][0]["params"] = [{"kind": "pointers", "size": size or 16, "alignment": 8, **changes}]
    target["launches"][0]["args"] = [ref("input", 0)] * count
    return target


def put_table(name, target, features=("pointer_tables",)):
    def edit(_):
        return json.dumps({**good(), "features": list(features), "targets": [good()["targets"][0], target]},
                          sort_keys=True, separators=(",", ":")).encode()
    text(name, edit)


# --- not JSON, or JSON that hides something -----------------------------------
text("empty", lambda t: b"")
text("truncated", lambda t: t[:len(t) // 2])
text("after-the-object", lambda t: t + b"{}")
text("text-after", lambda t: t + b"x")
text("not-an-object", lambda t: b"[]")
text("bad-utf8", lambda t: t.replace(b'"attack"', b'"att\xffack"'))
text("nan", lambda t: t.replace(b'"size":100', b'"size":NaN'))
text("real-number", lambda t: t.replace(b'"size":100', b'"size":100.0'))
text("exponent", lambda t: t.replace(b'"size":100', b'"size":1e2'))
text("integer-of-65-bits", lambda t: t.replace(b'"size":100', b'"size":18446744073709551616'))
text("duplicate-key", lambda t: t.replace(b'"name":"attack"', b'"name":"attack","name":"attack"'))
text("duplicate-key-deep", lambda t: t.replace(b'"size":100', b'"size":100,"size":1'))
text("deep-nesting", lambda t: t.replace(b'"options":{}', b'"options":{"a":' + b"[" * 100 + b"]" * 100 + b"}"))
text("comment", lambda t: b"/* */" + t)

# --- keys and types -----------------------------------------------------------
put("missing-key", "numerics", DELETE)
put("missing-key-deep", K + "/1/grid", DELETE)
put("missing-schema-version", "schema_version", DELETE)
put("unknown-key", "entry_point", "x")
put("unknown-key-deep", L + "/0/stream", 1)
put("schema-version-0", "schema_version", 0)
put("schema-version-string", "schema_version", "1")
put("unknown-feature", "features/0", "multicast")
put("name-is-a-number", "name", 5)
put("deterministic-is-a-number", "numerics/deterministic", 1)
put("inputs-is-an-object", "inputs", {})
put("negative-size", "blobs/0/size", -1)
put("attribute-null", "producer/options", {"x": None})
put("two-integers-for-grid", K + "/0/grid", [1, 1])
put("unknown-launch-kind", L + "/0/kind", "barrier")
put("unknown-param-kind", K + "/0/params/0/kind", "surface")

# --- paths and digests --------------------------------------------------------
put("digest-is-a-path", "blobs/0/digest", "sha256:../../../etc/passwd")
put("digest-absolute", "blobs/0/digest", "/etc/passwd")
put("digest-upper-case", "blobs/0/digest", "sha256:" + "A" * 64)
put("digest-short", "blobs/0/digest", "sha256:" + "a" * 63)
put("digest-md5", "blobs/0/digest", "md5:" + "a" * 64)
put("digest-twice", "blobs/1", {"digest": "sha256:" + "a" * 64, "size": 1,
                                "media_type": "application/vnd.nova.host"})
put("graph-digest-empty", "graph_digest", "")
put("media-type-unknown", "blobs/2/media_type", "text/plain")

# --- signature ----------------------------------------------------------------
put("matmul-fp8", "numerics/matmul", "fp8")
put("role-unknown", "inputs/0/role", "weight")
put("output-role-unknown", "outputs/0/role", "parameter")
put("dtype-unknown", "inputs/0/dtype", "float8")
put("name-empty", "inputs/0/name", "")
put("name-twice", "inputs/1/name", "w")
put("shape-negative", "inputs/0/shape", [-2, 3])
put("strides-too-few", "inputs/0/strides", [1])
put("bytes-too-few", "inputs/0/bytes", 23)
put("bytes-too-many", "outputs/1/bytes", 28)
put("shape-overflows", "inputs/0/shape", [2**40, 2**40])
put("shape-overflows-with-stride-0", "inputs/0", tensor("w", "parameter", [BIG, BIG], [0, 0], 1))
put("strides-overflow", "inputs/0/strides", [BIG, BIG])
put("alignment-8", "inputs/0/alignment", 8)
put("alignment-48", "inputs/0/alignment", 48)
put("scalar-with-a-shape", "inputs/0/role", "scalar")
put("advance-of-a-parameter", "inputs/0/advance", "0x1p+0")
put("advance-decimal", "inputs/1/advance", "1.0")
put("advance-infinite", "inputs/1/advance", "inf")
put("update-of-nothing", "outputs/2/updates", None)
put("update-out-of-range", "outputs/2/updates", 2)
put("update-of-another-shape", "outputs/2/updates", 1)
put("update-by-a-loss", "outputs/0/updates", 1)
put("update-twice", "outputs/3", tensor("w_2", "update", [2, 3], [3, 1], 6, updates=0))
put("update-in-another-layout", "outputs/2", tensor("w_new", "update", [2, 3], [1, 2], 6, updates=0))
put("bucket-out-of-range", "buckets/0/gradients", [3])
put("bucket-of-no-gradient", "buckets/0/gradients", [0])
put("bucket-too-small", "buckets/0/bytes", 20)

# --- kernels ------------------------------------------------------------------
put("target-twice", "targets/1", good()["targets"][0])
put("target-name-empty", HOST + "/name", "")
put("kernel-blob-out-of-range", K + "/0/blob", 3)
put("kernel-blob-is-data", K + "/0/blob", 1)
put("kernel-ptx-on-host", K + "/0/ptx_blob", 2)
put("kernel-name-twice", K + "/1/name", "forward")
put("kernel-name-empty", K + "/0/name", "")
put("symbol-with-a-semicolon", K + "/0/symbol", "forward;exit")
put("symbol-empty", K + "/0/symbol", "")
put("host-grid-2d", K + "/0/grid", [4, 2, 1])
put("host-block", K + "/0/block", [32, 1, 1])
put("gpu-block-too-large", "targets/1", gpu(block=[1025, 1, 1]))
put("gpu-block-product", "targets/1", gpu(block=[64, 64, 1]))
put("gpu-grid-zero", "targets/1", gpu(grid=[0, 1, 1]))
put("gpu-cluster-too-large", "targets/1", gpu(cluster=[4, 4, 2]))
put("gpu-ptx-out-of-range", "targets/1", gpu(ptx_blob=9))
put("param-pointer-of-4-bytes", K + "/0/params/0/size", 4)
put("param-scalar-of-0-bytes", K + "/0/params/2/size", 0)
put("param-alignment-3", K + "/0/params/0/alignment", 3)
put_table("table-without-the-feature", gpu_table(2), features=())
put_table("table-of-12-bytes", gpu_table(2, 12))
put_table("table-too-large", gpu_table(4096, 8 * 4096))
put_table("table-alignment-16", gpu_table(2, alignment=16))
put_table("table-args-too-few", gpu_table(1))
put_table("table-of-an-immediate",
          {**gpu_table(2), "launches": [launch("kernel", 0, [ref("input", 0), {"immediate": 1, "type": "int64"}], [])]})
put("table-on-the-host", K + "/0/params/0", {"kind": "pointers", "size": 8, "alignment": 8})
put("tensormap-rank-6", "targets/1", gpu_map(rank=6))
put("tensormap-sizes", "targets/1", gpu_map(sizes=[6]))
put("tensormap-memory", "targets/1", gpu_map(memory=ref("input", 7)))
put("tensormap-offset", "targets/1", gpu_map(memory=ref("input", 0, 4)))
put("tensormap-beyond-its-memory", "targets/1", gpu_map(sizes=[3, 2]))
put("tensormap-sizes-overflow", "targets/1", gpu_map(sizes=[2**32, 2**32], strides=[2**40 - 16]))
put("tensormap-size-of-none", "targets/1", gpu_map(sizes=[0, 2]))
put("tensormap-stride", "targets/1", gpu_map(strides=[12]))
put("tensormap-stride-of-none", "targets/1", gpu_map(strides=[0]))
put("tensormap-stride-2-to-the-40", "targets/1", gpu_map(strides=[2**40]))
put("tensormap-box-too-large", "targets/1", gpu_map(box=[4, 257]))
put("tensormap-box-of-12-bytes", "targets/1", gpu_map(box=[3, 2]))
put("tensormap-box-wider-than-its-swizzle", "targets/1", gpu_map(box=[36, 2], swizzle="128b"))
put("tensormap-element-strides", "targets/1", gpu_map(element_strides=[1, 9]))
put("tensormap-element-type", "targets/1", gpu_map(element_type="bool"))
put("tensormap-swizzle", "targets/1", gpu_map(swizzle="256b"))
put("tensormap-l2-promotion", "targets/1", gpu_map(l2_promotion="32b"))
put("tensormap-fill", "targets/1", gpu_map(fill="one"))
put("tensormap-nan-for-integers", "targets/1", gpu_map(element_type="int32", fill="nan"))
put("tensormap-interleave-of-rank-2", "targets/1", gpu_map(interleave="16b"))
put("tensormap-interleave-without-swizzle", "targets/1",
    gpu_map(rank=3, interleave="32b", sizes=[2, 1, 1], strides=[32, 32], box=[4, 2, 1],
            element_strides=[1, 1, 1]))

# --- launches -----------------------------------------------------------------
put("after-itself", L + "/1/after", [1])
put("after-a-later-one", L + "/0/after", [2])
put("order-read-before-it-is-written", L + "/1", launch("kernel", 1, [ref("buffer", 0), ref("output", 1)], []))
put("order-overwritten-before-it-is-read", L + "/3/after", [])
put("order-written-twice", L + "/2/args/0", ref("output", 1))
put("order-by-a-path-elsewhere", L + "/3/after", [2])
put("kernel-null", L + "/0/kernel", None)
put("kernel-out-of-range", L + "/0/kernel", 2)
put("memset-with-a-kernel", L + "/2/kernel", 0)
put("args-too-few", L + "/0/args", [])
put("arg-empty", L + "/0/args/0", {})
put("arg-two-kinds", L + "/0/args/0", {"input": 0, "output": 0, "offset": 0})
put("arg-is-a-number", L + "/0/args/0", 7)
put("arg-immediate-for-a-pointer", L + "/0/args/0", {"immediate": 1, "type": "int64"})
put("arg-memory-for-a-scalar", L + "/0/args/2", ref("input", 0))
put("arg-tensormap-on-a-pointer", L + "/0/args/0", gpu()["launches"][0]["args"][0])
put("immediate-of-an-unknown-type", L + "/0/args/2", {"immediate": 1, "type": "pointer"})
put("immediate-negative", L + "/0/args/2", {"immediate": -1, "type": "int64"})
put("input-out-of-range", L + "/0/args/0", ref("input", 2))
put("output-out-of-range", L + "/1/args/1", ref("output", 3))
put("constant-out-of-range", L + "/3/args/1", ref("constant", 1))
put("buffer-out-of-range", L + "/0/args/1", ref("buffer", 2))
put("buffer-index-of-40-bits", L + "/0/args/1", ref("buffer", 2**40))
put("offset-at-the-end", L + "/0/args/0", ref("input", 0, 24))
put("offset-beyond", L + "/0/args/1", ref("buffer", 0, BIG))
put("buffer-not-alive-yet", L + "/0/args/1", ref("buffer", 1))
put("buffer-not-alive-any-more", L + "/3/args/1", ref("buffer", 0))
put("memset-too-long", L + "/2/args/2", {"immediate": 5, "type": "int64"})
put("memset-2-to-the-64", L + "/2/args/2", {"immediate": 2**64 - 1, "type": "int64"})
put("memset-of-no-byte", L + "/2/args/1", {"immediate": 256, "type": "uint8"})
put("memset-of-a-float", L + "/2/args/1", {"immediate": 0, "type": "float32"})
put("copy-beyond-the-source", L + "/3/args/2", {"immediate": 9, "type": "int64"})
put("copy-from-an-immediate", L + "/3/args/1", {"immediate": 0, "type": "int64"})
put("bucket-ready-missing", HOST + "/bucket_ready", [])
put("bucket-ready-out-of-range", HOST + "/bucket_ready", [4])

# --- arena and constants ------------------------------------------------------
put("arena-alignment-128", A + "/alignment", 128)
put("arena-lower-bound", A + "/lower_bound", 1025)
put("buffer-misaligned", A + "/buffers/0/offset", 16)
put("buffer-outside", A + "/buffers/1/offset", 1024)
put("buffer-range-overflows", A + "/buffers/1/size", BIG)
put("buffer-last-out-of-range", A + "/buffers/1/last", 4)
put("buffer-first-after-last", A + "/buffers/1/first", 4)
put("buffers-overlap", A + "/buffers/1/offset", 0)
put("buffer-alias-of-itself", A + "/buffers/0/alias", 0)
put("buffer-alias-out-of-range", A + "/buffers/0/alias", 2)
put("constant-blob-is-code", HOST + "/constants/0/blob", 0)
put("constant-beyond-its-blob", HOST + "/constants/0/size", 9)
put("constant-range-overflows", HOST + "/constants/0", {"blob": 1, "offset": BIG, "size": BIG})

for old in HERE.glob("*.json"):
    old.unlink()
for name, content in ATTACKS.items():
    (HERE / f"{name}.json").write_bytes(content)
table = HERE / "table.txt"
known = dict(line.split("\t", 1) for line in table.read_text(errors="replace").splitlines()
             if "\t" in line) if table.exists() else {}
head = ("# Bad manifests (NAME.json, written by make_attacks.py), a tab, and the one error each gives.\n"
        "# The right-hand column is written by `BundleTests --regenerate`; review the difference.\n")
table.write_text(head + "".join(f"{n}\t{known.get(n, '')}\n" for n in ATTACKS))
