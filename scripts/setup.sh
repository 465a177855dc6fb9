#!/usr/bin/env bash
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Installs what building and testing novac needs on Debian 12. Does nothing when
# all of it is there. LLVM 22 comes from Debian itself (bookworm-security).
#
#   scripts/setup.sh          to build
#   scripts/setup.sh --tests  to run the tests too
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  build-essential cmake ninja-build ccache python3
  # The compiler's own libraries.
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools liblld-22-dev lld-22
  libcli11-dev nlohmann-json3-dev libspdlog-dev
  # LLVM's CMake configuration looks for these.
  libzstd-dev zlib1g-dev libxml2-dev libffi-dev libedit-dev libcurl4-openssl-dev
  # find_package(GTest) is part of every build with tests.
  libgtest-dev python3-mpmath
)
if [ "${1:-}" = --tests ]; then
  # The fuzzers.
  packages+=(clang-22 libclang-rt-22-dev)
fi

missing=()
for package in "${packages[@]}"; do
  # "status" is not enough: a package that was removed still has one.
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: everything is installed"
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get here; install the equivalents of: ${missing[*]}" >&2
  exit 4
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: run as root, or install sudo: ${missing[*]}" >&2; exit 4; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
if ! apt-cache show libmlir-22-dev >/dev/null 2>&1; then
  echo "setup: apt knows no libmlir-22-dev. On Debian 12 it is in bookworm-security; add to the sources:" >&2
  echo "  deb http://deb.debian.org/debian-security bookworm-security main" >&2
  exit 4
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
