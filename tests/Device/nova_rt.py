# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The C interface of libnova_rt (include/nova-rt/nova_rt.h) from Python."""
import ctypes
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

HOST = -1
LAUNCH = {"graph": 0, "chain": 1, "plain": 2}


class Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class BundleInfo(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("graph_digest", c_char_p), ("matmul", c_char_p),
                ("graph_16bit", c_int32), ("inputs", c_uint32), ("outputs", c_uint32), ("targets", c_uint32), ("blobs", c_uint32)]


class Tensor(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("role", c_char_p), ("path", c_char_p), ("dtype", c_char_p),
                ("rank", c_uint32), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("bytes", c_uint64),
                ("alignment", c_uint64), ("updates", c_int64), ("has_advance", c_int32), ("advance", c_double)]

    def sizes(self):
        return [self.shape[d] for d in range(self.rank)]

    def steps(self):
        return [self.strides[d] for d in range(self.rank)]


class Target(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("device", c_char_p), ("kernels", c_uint32),
                ("launches", c_uint32), ("arena_bytes", c_uint64), ("arena_lower_bound", c_uint64), ("constant_bytes", c_uint64)]


class InstanceOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("threads", c_uint32), ("launch", c_int32)]


class LoadOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("allow_jit", c_int32), ("context", c_void_p), ("device", c_int32),
                ("caller_bytes", c_uint64)]


class InstanceInfo(Sized):
    _fields_ = [("struct_size", c_size_t), ("threads", c_uint32), ("launch", c_int32), ("launches", c_uint64),
                ("graph_builds", c_uint64), ("graph_nodes", c_uint64), ("node_updates", c_uint64)]


SIGNATURES = {
    "bundle_open": [c_char_p, POINTER(c_void_p)], "bundle_info": [c_void_p, POINTER(BundleInfo)],
    "bundle_input": [c_void_p, c_uint32, POINTER(Tensor)], "bundle_output": [c_void_p, c_uint32, POINTER(Tensor)],
    "bundle_target": [c_void_p, c_uint32, POINTER(Target)], "bundle_choose": [c_void_p, c_int32, POINTER(c_uint32)],
    "program_load": [c_void_p, c_uint32, POINTER(LoadOptions), POINTER(c_void_p)],
    "instance_create": [c_void_p, POINTER(InstanceOptions), POINTER(c_void_p)],
    "instance_bind": [c_void_p, POINTER(c_void_p), c_size_t, POINTER(c_void_p), c_size_t],
    "instance_launch": [c_void_p, c_void_p], "instance_advance": [c_void_p, c_void_p],
    "instance_info": [c_void_p, POINTER(InstanceInfo)],
}


class Library:
    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        for name in ("error_message", "error_hint", "version"):
            getattr(self.lib, "nova_rt_" + name).restype = c_char_p
        for name, arguments in SIGNATURES.items():
            function = getattr(self.lib, "nova_rt_" + name)
            function.argtypes, function.restype = arguments, c_int32
        for name in ("bundle_close", "program_close", "instance_close"):
            getattr(self.lib, "nova_rt_" + name).argtypes = [c_void_p]
            getattr(self.lib, "nova_rt_" + name).restype = None

    def call(self, name, *arguments):
        status = getattr(self.lib, "nova_rt_" + name)(*arguments)
        if status:
            message, hint = self.lib.nova_rt_error_message().decode(), self.lib.nova_rt_error_hint().decode()
            raise RuntimeError(f"nova_rt_{name}: status {status}: {message}" + (f"\n  {hint}" if hint else ""))

    def made(self, name, *arguments):
        """The handle that a call writes to its last argument."""
        handle = c_void_p()
        self.call(name, *arguments, byref(handle))
        return handle


class Signature:
    """Inputs and outputs of a bundle; nothing is loaded."""

    def __init__(self, library, path):
        self.library, self.bundle = library, library.made("bundle_open", str(path).encode())
        self.info = BundleInfo()
        library.call("bundle_info", self.bundle, byref(self.info))
        self.inputs = [self.tensor("bundle_input", i) for i in range(self.info.inputs)]
        self.outputs = [self.tensor("bundle_output", i) for i in range(self.info.outputs)]

    def tensor(self, function, index):
        tensor = Tensor()
        self.library.call(function, self.bundle, index, byref(tensor))
        return tensor

    def addresses(self, inputs, outputs):
        """What `bind` takes, of torch tensors in the order of the signature; None for an output that updates an input."""
        for what, tensors, described in (("input", inputs, self.inputs), ("output", outputs, self.outputs)):
            for i, (tensor, wanted) in enumerate(zip(tensors, described, strict=True)):
                if tensor is not None:
                    start = tensor.storage_offset() * tensor.element_size()
                    if tensor.untyped_storage().nbytes() - start < wanted.bytes or tensor.data_ptr() % max(wanted.alignment, 1):
                        raise ValueError(f"{what} {i}: a buffer too small, or at {tensor.data_ptr():#x}; expected "
                                         f"{wanted.bytes} bytes at a multiple of {wanted.alignment}")
        array = lambda tensors: (c_void_p * max(len(tensors), 1))(*[t.data_ptr() or None if t is not None else None for t in tensors])
        return array(inputs), len(inputs), array(outputs), len(outputs)


class Step:
    """A bundle opened, loaded and instantiated on a device."""

    def __init__(self, library, path, device, launch="graph"):
        self.library, self.handles = library, []
        self.bundle = self.opened("bundle", library.made("bundle_open", str(path).encode()))
        index = c_uint32()
        library.call("bundle_choose", self.bundle, device, byref(index))
        options = LoadOptions(device=max(device, 0))
        self.program = self.opened("program", library.made("program_load", self.bundle, index,
                                                           byref(options) if device >= 0 else None))
        self.instance = self.opened("instance", library.made("instance_create", self.program,
                                                             byref(InstanceOptions(launch=LAUNCH[launch]))))
        self.index = index

    def opened(self, kind, handle):
        self.handles.append((kind, handle))
        return handle

    def target(self):
        target = Target()
        self.library.call("bundle_target", self.bundle, self.index, byref(target))
        return target

    def bind(self, addresses):
        self.library.call("instance_bind", self.instance, *addresses)

    def launch(self, stream=None):
        self.library.call("instance_launch", self.instance, stream)

    def instance_info(self):
        info = InstanceInfo()
        self.library.call("instance_info", self.instance, byref(info))
        return info

    def close(self):
        for kind, handle in reversed(self.handles):
            getattr(self.library.lib, f"nova_rt_{kind}_close")(handle)
        self.handles = []
