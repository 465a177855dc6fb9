#!/usr/bin/env bash
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# install.sh BUILD: what `cmake --install` puts somewhere works from there, with
# nothing of the build on any search path.
set -euo pipefail
build=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >"$work/log" || { cat "$work/log"; exit 1; }
cd "$work"
unset LD_LIBRARY_PATH

for file in bin/novac bin/nova-run include/nova-rt/nova_rt.h; do
  [ -e "usr/$file" ] || { echo "FAIL: $file is not installed"; find usr; exit 1; }
done
version=$(usr/bin/novac version | sed 's/^novac \([^ ]*\) .*/\1/')
case $(usr/bin/nova-run version) in *"$version"*) ;; *) echo "FAIL: nova-run is not $version"; exit 1 ;; esac
usr/bin/novac compile "$source/graphs/mlp_mnist.json" -o mlp.nova --target host --no-cache
usr/bin/nova-run verify mlp.nova --data "$source/graphs/mlp_mnist.data.safetensors"

# As another project finds it.
mkdir app
cp "$source/tests/Runtime/example_step.c" app/
cat >app/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(app C)
find_package(nova_rt $version REQUIRED)
add_executable(app example_step.c)
target_link_libraries(app PRIVATE nova_rt::nova_rt)
CMAKE
cmake -S app -B app/build -DCMAKE_PREFIX_PATH="$work/usr" >"$work/log" && cmake --build app/build >>"$work/log" ||
  { cat "$work/log"; exit 1; }
app/build/app mlp.nova
# The loader needs nothing but the C and C++ libraries.
if ldd usr/bin/nova-run | grep -iE 'llvm|mlir|cuda'; then echo "FAIL: nova-run needs more than it should"; exit 1; fi
echo "pass install"
