#!/usr/bin/env bash
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Sets up, builds and runs every test there is. The last line is
# "N passed, N failed"; the exit status is 1 when any failed.
#
#   scripts/test.sh [--no-setup] [--fuzz-seconds N]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
build=${NOVA_BUILD:-build}
setup=yes
fuzz_seconds=60
while [ $# -gt 0 ]; do
  case $1 in
    --no-setup) setup=no ;;
    --fuzz-seconds) fuzz_seconds=$2; shift ;;
    *) echo "test: unknown flag '$1', expected --no-setup or --fuzz-seconds N" >&2; exit 2 ;;
  esac
  shift
done

passed=0
failed=0
failures=()
# count NAME PASSED FAILED
count() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  if [ "$3" -gt 0 ]; then failures+=("$1: $3 failed"); fi
  echo "-- $1: $2 passed, $3 failed"
}
# check NAME COMMAND...: one test, by its exit status.
check() {
  local name=$1
  shift
  say "$name"
  if "$@"; then count "$name" 1 0; else count "$name" 0 1; fi
}
# quietly LOG COMMAND...: its output goes to LOG, and the end of that is shown when it fails.
quietly() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 || { tail -n 50 "$log"; return 1; }
}
finish() {
  for failure in "${failures[@]}"; do echo "FAILED $failure"; done
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}
# ctest_in NAME FOLDER: every test of that build.
ctest_in() {
  say "$1"
  local log="$2/ctest.log"
  ctest --test-dir "$2" --output-on-failure -j"$jobs" --output-junit "$PWD/$2/ctest.xml" >"$log" 2>&1 || tail -n 200 "$log"
  count "$1" $(python3 scripts/count_tests.py ctest "$2/ctest.xml")
}

if [ "$setup" = yes ]; then check "set up" scripts/setup.sh --tests; fi

say "build"
if configure "$build" -DNOVA_TESTS=ON && ninja -C "$build" -j"$jobs" >"$build/build.log" 2>&1; then
  count build 1 0
else
  tail -n 50 "$build/build.log" 2>/dev/null || true
  count build 0 1
  finish
fi

check "tree" python3 scripts/check_tree.py
ctest_in "unit, command line and graph tests" "$build"

check "README is what the tests say" python3 scripts/update_readme.py --check --results "$build/results"

say "lit"
lit=/usr/lib/llvm-22/bin/lit
"$lit" -q -j"$jobs" --output "$build/lit.json" "$build/tests" >"$build/lit.log" 2>&1 || cat "$build/lit.log"
count lit $(python3 scripts/count_tests.py lit "$build/lit.json")

say "runtime-only build"
if configure "$build-runtime" -DNOVA_RUNTIME_ONLY=ON && ninja -C "$build-runtime" -j"$jobs" >"$build-runtime/build.log" 2>&1; then
  count "runtime-only build" 1 0
  ctest_in "runtime-only tests" "$build-runtime"
else
  tail -n 50 "$build-runtime/build.log" 2>/dev/null || true
  count "runtime-only build" 0 1
fi

# Neither reader that is fuzzed needs LLVM: neither does this build.
say "fuzzers"
if CC=clang-22 CXX=clang++-22 configure "$build-fuzz" -DNOVA_RUNTIME_ONLY=ON -DNOVA_FUZZERS=ON &&
  ninja -C "$build-fuzz" -j"$jobs" fuzzers >"$build-fuzz/build.log" 2>&1; then
  for program in "$build-fuzz"/tests/Fuzz/*Fuzzer; do
    fuzzer=$(basename "$program")
    corpus="$build-fuzz/corpus/$fuzzer"
    mkdir -p "$corpus"
    seeds=$(sed -n 's|^// SEEDS: ||p' "tests/Fuzz/$fuzzer.cpp")
    # shellcheck disable=SC2086
    check "fuzz $fuzzer, $fuzz_seconds s" quietly "$build-fuzz/$fuzzer.log" "$program" \
      -max_total_time="$fuzz_seconds" -artifact_prefix="$build-fuzz/" "$corpus" $seeds
  done
else
  tail -n 50 "$build-fuzz/build.log" 2>/dev/null || true
  count "fuzzers build" 0 1
fi

finish
