#!/usr/bin/env bash
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# From nothing to a training step: installs what is needed, builds novac, compiles
# a GPT-2 training step, trains 50 steps on the CPU, and compares one step with
# PyTorch's.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
build=${NOVA_BUILD:-build}

say "set up"
scripts/setup.sh
say "build novac"
configure "$build" -DNOVA_TESTS=OFF
ninja -C "$build" -j"$jobs" novac
say "compile graphs/gpt2_tiny.json for this machine's CPU"
"$build/bin/novac" compile graphs/gpt2_tiny.json -o "$build/gpt2_tiny.nova" --target host --cache-dir cache
say "train 50 steps"
"$build/bin/novac" run "$build/gpt2_tiny.nova" --data graphs/gpt2_tiny.data.safetensors --steps 50
say "compare one step with PyTorch's"
"$build/bin/novac" verify "$build/gpt2_tiny.nova" --data graphs/gpt2_tiny.data.safetensors
