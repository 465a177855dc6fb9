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
# The assembler for GPU targets: the one that is here, else a pinned one in .tools.
ptxas_version=13.0.88
ptxas_wheel_sha256=56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
ptxas_folder=$root/.tools/cuda/bin

have_ptxas() {
  local folder
  for folder in "${CUDA_HOME:-}/bin" "${CUDA_PATH:-}/bin" /usr/local/cuda/bin "$ptxas_folder"; do
    if [ -x "$folder/ptxas" ]; then return 0; fi
  done
  command -v ptxas >/dev/null
}

# install_ptxas: from NVIDIA's package on PyPI, checked by its digest.
install_ptxas() {
  local aside
  echo "setup: installing ptxas $ptxas_version into $ptxas_folder"
  mkdir -p "$root/.tools"
  aside=$(mktemp -d "$root/.tools/aside-XXXXXX")
  echo "nvidia-cuda-nvcc==$ptxas_version --hash=sha256:$ptxas_wheel_sha256" >"$aside/requirements"
  if ! python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
      -r "$aside/requirements" -d "$aside"; then
    rm -rf "$aside"
    echo "setup: no assembler for GPU targets: install the CUDA toolkit, or set CUDA_HOME to one" >&2
    return 4
  fi
  python3 -m zipfile -e "$aside"/nvidia_cuda_nvcc-*.whl "$aside"
  chmod +x "$aside/nvidia/cu13/bin/ptxas"
  mkdir -p "$ptxas_folder"
  mv "$aside/nvidia/cu13/bin/ptxas" "$ptxas_folder/ptxas"
  rm -rf "$aside"
  echo "setup: the tests find it; for novac: export CUDA_HOME=$(dirname "$ptxas_folder")"
}

# PyTorch for the CPU, which the tests of the exporter trace and compare with.
torch_folder=$root/.tools/torch
install_torch() {
  python3 "$root/scripts/install_torch.py" "$torch_folder" || {
    echo "setup: no PyTorch for the tests of scripts/export_torch.py" >&2
    return 4
  }
}

want_ptxas=no
want_torch=no
if [ "${1:-}" = --tests ]; then
  want_torch=yes
  # The fuzzers.
  packages+=(clang-22 libclang-rt-22-dev)
  if ! have_ptxas; then
    want_ptxas=yes
    packages+=(python3-pip)
  fi
  python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
fi

missing=()
for package in "${packages[@]}"; do
  # "status" is not enough: a package that was removed still has one.
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if [ "$want_ptxas" = yes ] && python3 -m pip --version >/dev/null 2>&1; then
  # A pip that apt knows nothing of is as good.
  missing=("${missing[@]/python3-pip/}")
  missing=(${missing[@]})
fi
if [ ${#missing[@]} -eq 0 ]; then
  if [ "$want_ptxas" = yes ]; then install_ptxas; fi
  if [ "$want_torch" = yes ]; then install_torch; fi
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
if [ "$want_ptxas" = yes ]; then install_ptxas; fi
if [ "$want_torch" = yes ]; then install_torch; fi
