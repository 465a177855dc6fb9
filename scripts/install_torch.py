#!/usr/bin/env python3
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a virtual environment with a PyTorch that traces and runs on the CPU.

PyPI's PyTorch for Linux is the CUDA build, which asks for 3 GB of CUDA libraries.
Tracing a step calls none of them, but the loader wants to see them. So the wheel is
installed alone (with the CUDA runtime, 2 MB, which says that there is no GPU), and
one small library that stands for the others is built from the symbols that PyTorch
leaves undefined; each of its functions ends the process with a message. It takes
1.3 GB and about half a minute.

  scripts/install_torch.py [--torch VERSION] [--transformers VERSION] FOLDER
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

# What was tested together; other versions take what PyPI has now.
PINNED = {
    "torch": "2.11.0", "transformers": "5.17.0", "nvidia-cuda-runtime": "13.0.96",
    "numpy": "2.4.6", "safetensors": "0.8.0", "typing-extensions": "4.16.0",
    "filelock": "4.3.1", "fsspec": "2026.9.0", "jinja2": "3.1.6", "markupsafe": "3.0.4",
    "networkx": "3.6.1", "sympy": "1.14.0", "mpmath": "1.3.0",
}


def run(*command):
    subprocess.run([str(part) for part in command], check=True)


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True,
                          text=True).stdout


def symbols(files, kind):
    """Names of dynamic symbols, without their versions."""
    lines = output("nm", "-D", kind, *files).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if len(line.split()) >= 2
            and not line.endswith(":")}


def build_stand_in(packages):
    """The libraries that torch's need and nothing here provides, as one."""
    lib = packages / "torch" / "lib"
    libraries = sorted(lib.glob("*.so")) + sorted(lib.glob("*.so.*"))
    runtime = sorted(packages.glob("nvidia/*/lib/*.so.*"))
    present = {file.name for file in libraries + runtime}
    needed = {name for file in libraries
              for name in re.findall(r"NEEDED\)\s+Shared library: \[(.*?)\]", output("readelf", "-d", file))}
    nvidia = re.compile(r"lib(cu|nccl|nv)")
    missing = sorted(name for name in needed - present if nvidia.match(name))
    # libcuda.so.1 is the driver's, loaded by name when there is a GPU.
    missing = [name for name in missing if name != "libcuda.so.1"]
    own = re.compile(r"(cu|nccl|nvshmem|nvrtc|nvJitLink|nvml|nvtx)")
    undefined = symbols(libraries, "--undefined-only") - symbols(libraries + runtime, "--defined-only")
    names = sorted(name for name in undefined if own.match(name))
    source = lib / "nova_stand_in.c"
    lines = ["#include <stdio.h>", "#include <stdlib.h>",
             "static void refuse(const char *name) {",
             '  fprintf(stderr, "%s: this PyTorch was installed for the CPU by install_torch.py\\n", name);',
             "  abort();", "}"]
    lines += [f'void {name}(void) {{ refuse("{name}"); }}' for name in names]
    source.write_text("\n".join(lines) + "\n")
    run(os.environ.get("CC", "cc"), "-w", "-O1", "-fno-builtin", "-shared", "-fPIC", source, "-o",
        lib / "libnova_stand_in.so")
    for name in missing:
        (lib / name).unlink(missing_ok=True)
        (lib / name).symlink_to("libnova_stand_in.so")
    return missing, names


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torch", default=PINNED["torch"], help="version (default %(default)s)")
    parser.add_argument("--transformers", default=PINNED["transformers"], help="version (default %(default)s)")
    arguments = parser.parse_args()
    wanted = f"torch {arguments.torch}, transformers {arguments.transformers}\n"
    stamp = arguments.folder / "novac.stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    shutil.rmtree(arguments.folder, ignore_errors=True)
    venv.create(arguments.folder, with_pip=True)
    python = arguments.folder / "bin" / "python"
    pinned = arguments.torch == PINNED["torch"]
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile",
           "--only-binary", ":all:"]
    others = [name for name in PINNED if name not in ("torch", "transformers", "nvidia-cuda-runtime")]
    run(*pip, "--no-deps", f"torch=={arguments.torch}",
        f"nvidia-cuda-runtime=={PINNED['nvidia-cuda-runtime']}" if pinned else "nvidia-cuda-runtime")
    # transformers depends on everything but PyTorch.
    run(*pip, f"transformers=={arguments.transformers}",
        *[f"{name}=={PINNED[name]}" if pinned else name for name in others])
    packages = next(arguments.folder.glob("lib/python*/site-packages"))
    libraries, functions = build_stand_in(packages)
    run(python, "-c", "import torch, transformers; torch.ones(2, 2) @ torch.ones(2, 2)")
    stamp.write_text(wanted)
    print(f"install_torch: {wanted.strip()} in {arguments.folder}; {len(functions)} functions of "
          f"{len(libraries)} CUDA libraries are stood in for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
