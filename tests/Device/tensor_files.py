# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and writes safetensors files without copies: a tensor that is read is a
view of the mapped file, one that is written goes straight into it."""
import json
import math
import mmap
import struct

# graph dtype: (safetensors dtype, bytes)
DTYPES = {"float64": ("F64", 8), "float32": ("F32", 4), "bfloat16": ("BF16", 2), "float16": ("F16", 2),
          "int64": ("I64", 8), "int32": ("I32", 4), "int16": ("I16", 2), "int8": ("I8", 1), "uint8": ("U8", 1),
          "bool": ("BOOL", 1)}
GRAPH_DTYPES = {spelled: name for name, (spelled, _) in DTYPES.items()}


class Reader:
    """`reader[name]` is (graph dtype, shape, memoryview of the bytes)."""

    def __init__(self, path):
        with open(path, "rb") as file:
            size, = struct.unpack("<Q", file.read(8))
            self.header = json.loads(file.read(size))
            # A private mapping may be written to, as torch demands of a buffer; the file stays as it is.
            self.map = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self.header.pop("__metadata__", None)
        self.start = 8 + size

    def __contains__(self, name):
        return name in self.header

    def __iter__(self):
        return iter(self.header)

    def __getitem__(self, name):
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        return (GRAPH_DTYPES[entry["dtype"]], tuple(entry["shape"]),
                memoryview(self.map)[self.start + begin:self.start + end])

    def torch(self, name):
        """A CPU tensor on the mapped bytes."""
        import torch
        dtype, shape, data = self[name]
        dtype = getattr(torch, dtype)
        if len(data) == 0:
            return torch.empty(shape, dtype=dtype)
        # A header may have any size, so the bytes need not be aligned.
        if (self.start + self.header[name]["data_offsets"][0]) % torch.empty((), dtype=dtype).element_size():
            data = bytearray(data)
        return torch.frombuffer(data, dtype=dtype).view(shape)


def write(path, entries):
    """`entries`: (name, graph dtype, shape, function that returns the bytes as a buffer or an iterator of buffers),
    in the order of the file. One tensor at a time is in memory."""
    header, offset = {}, 0
    for name, dtype, shape, _ in entries:
        spelled, size = DTYPES[dtype]
        end = offset + size * math.prod(shape)
        header[name] = {"dtype": spelled, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 64 if text else 0)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, dtype, shape, data in entries:
            parts, written = data(), 0
            for part in [parts] if hasattr(parts, "nbytes") or isinstance(parts, (bytes, bytearray)) else parts:
                part = memoryview(part).cast("B") if memoryview(part).nbytes else b""
                file.write(part)
                written += len(part)
            expected = DTYPES[dtype][1] * math.prod(shape)
            if written != expected:
                raise ValueError(f"{path}: {name}: {written} bytes written, expected {expected}")


def torch_bytes(tensor):
    """The bytes of a tensor, row-major, as a buffer; a CPU tensor that is contiguous is not copied."""
    import torch
    tensor = tensor.detach().contiguous().cpu().reshape(-1)
    return tensor.view(torch.uint8).numpy() if tensor.numel() else b""


def write_torch(path, tensors):
    """`tensors`: name to tensor."""
    write(path, [(name, str(t.dtype).removeprefix("torch."), tuple(t.shape), lambda t=t: torch_bytes(t))
                 for name, t in tensors.items()])
