# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# What the other scripts share; to be sourced.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Two compilers of MLIR code at once need about 3 GB.
jobs=$(nproc)
if [ "$jobs" -gt 2 ]; then jobs=2; fi

say() { printf '\n== %s\n' "$*"; }

# configure FOLDER [CMAKE ARGUMENTS...]: a Release build there.
configure() {
  local folder=$1
  shift
  cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release "$@" >"$folder.log" 2>&1 || {
    cat "$folder.log" >&2
    return 1
  }
}
