# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The lit suite: `ninja check-nova-lit`, or lit on any file or folder below
# tests/ with --param build=BUILD_DIR. Features: `novac`, `nova-opt`, `nova-run`
# (that tool is built), `gpu` (an NVIDIA driver is here). Tests of GPU targets need
# ptxas and fail without it: scripts/setup.sh installs one.

import os

import lit.formats
from lit.llvm import llvm_config

config.name = "nova"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "golden", "attacks"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.nova_binary_dir, "tests")

# Tests see neither the caller's cache nor the caller's locale.
config.environment["NOVAC_CACHE_DIR"] = os.path.join(config.test_exec_root, "cache")
config.environment["LC_ALL"] = "C"
for name in ("PATH", "HOME", "TMPDIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

if config.cuda_home:
    config.environment["CUDA_HOME"] = config.cuda_home

tools = os.path.join(config.nova_binary_dir, "bin")
built = [t for t in ("nova-opt", "novac", "nova-run") if os.path.exists(os.path.join(tools, t))]
config.available_features.update(built)
llvm_config.with_environment("PATH", [tools, config.llvm_tools_dir], append_path=True)
llvm_config.add_tool_substitutions(built + ["FileCheck", "not", "split-file"], [tools, config.llvm_tools_dir])
config.substitutions.append(("%graphs", os.path.join(config.nova_source_dir, "graphs")))
config.substitutions.append(("%ptxas", os.path.join(config.cuda_home, "bin", "ptxas")))
config.substitutions.append(("%source", config.nova_source_dir))
config.substitutions.append(("%inputs", os.path.join(config.test_source_root, "Cli", "Inputs")))

if os.path.exists("/proc/driver/nvidia/version"):
    config.available_features.add("gpu")
