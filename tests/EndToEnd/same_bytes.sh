#!/usr/bin/env bash
# Part of novac, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# same_bytes.sh NOVAC [GRAPH...]: the same graph gives the same bundle, whatever
# the number of threads, the folder, the umask, and whether it came out of the
# cache; a cache entry that is damaged is noticed and not used.
set -euo pipefail
novac=$(realpath "$1")
shift
graphs=$(cd "$(dirname "$0")/../../graphs" && pwd)
if [ $# -eq 0 ]; then set -- format_corners mlp_mnist gpt2_tiny; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# compile FLAGS...: its JSON on standard output.
compile() { "$novac" compile --target host --json "$@"; }
# same A B: nothing differs but provenance.
same() { diff -r -x provenance.json "$1" "$2" || { echo "FAIL: $1 and $2 differ"; exit 1; }; }
# expect TEXT FOUND
expect() {
  case $2 in *"$1"*) ;; *) echo "FAIL: expected $1 in: $2"; exit 1 ;; esac
}

# The first graph tries the cache in more ways.
extras=yes
for name in "$@"; do
  graph="$graphs/$name.json"
  a="$work/one/$name.nova"
  b="$work/another folder/$name.nova"
  mkdir -p "$work/one" "$work/another folder"
  (umask 022 && cd "$work/one" && compile "$graph" -o "$name.nova" --no-cache -j1 >/dev/null)
  (umask 077 && cd / && compile "$graph" -o "$b" --no-cache -j2 >/dev/null)
  same "$a" "$b"
  (compile "$graph" -o "$b" --no-cache -j2 >/dev/null)
  same "$a" "$b"

  cache="$work/cache"
  expect '"cache":"miss"' "$(compile "$graph" -o "$work/miss.nova" --cache-dir "$cache")"
  before=$(stat -c %y "$work/miss.nova/manifest.json")
  # Other notations of the same options are the same options.
  expect '"cache":"hit"' "$(compile "$graph" -o "$work/hit.nova" --cache-dir "$cache" --precision tf32 -j1)"
  same "$a" "$work/miss.nova"
  same "$a" "$work/hit.nova"
  expect '"changed":false' "$(compile "$graph" -o "$work/miss.nova" --cache-dir "$cache")"
  [ "$before" = "$(stat -c %y "$work/miss.nova/manifest.json")" ] || { echo "FAIL: the time stamp changed"; exit 1; }

  # Another option is another entry, and the miss can be explained.
  expect '"cache":"miss"' "$(compile "$graph" -o "$work/other.nova" --cache-dir "$cache" --no-fusion --explain-miss \
    2>"$work/stderr")"
  expect 'had   option no-fusion: 0' "$(cat "$work/stderr")"
  expect 'wants option no-fusion: 1' "$(cat "$work/stderr")"

  if [ "$extras" = yes ]; then
    extras=no
    # A second cache is looked in, and never written.
    chmod -R a-w "$cache"
    expect '"cache":"hit"' "$(compile "$graph" -o "$work/hit.nova" --cache-dir "$work/empty" --cache-read-only "$cache")"
    same "$a" "$work/hit.nova"
    chmod -R u+w "$cache"

    # A cache that cannot be written costs a warning, nothing else.
    touch "$work/file"
    expect '"cache":"miss"' "$(compile "$graph" -o "$work/other.nova" --cache-dir "$work/file" 2>"$work/stderr")"
    expect 'warning: the cache is not written' "$(cat "$work/stderr")"
    same "$a" "$work/other.nova"

    # Several at once into one cache: whoever loses the race has lost nothing.
    for i in 1 2 3; do compile "$graph" -o "$work/race$i.nova" --cache-dir "$work/race" -j1 >/dev/null & done
    wait
    for i in 1 2 3; do same "$a" "$work/race$i.nova"; done
    expect '"cache":"hit"' "$(compile "$graph" -o "$work/race1.nova" --cache-dir "$work/race")"
    [ -z "$(find "$work/race" -name '*.tmp-*')" ] || { echo "FAIL: something is left in $work/race"; exit 1; }
  fi

  "$novac" cache verify --cache-dir "$cache" >/dev/null
  for blob in "$cache"/blob/*/*; do
    printf 'damaged' | dd of="$blob" bs=1 seek=100 conv=notrunc status=none
  done
  output=$(compile "$graph" -o "$work/again.nova" --cache-dir "$cache" 2>"$work/stderr")
  expect '"cache":"miss"' "$output"
  expect 'is damaged and not used' "$(cat "$work/stderr")"
  [ -n "$(ls "$cache/quarantine")" ] || { echo "FAIL: nothing in quarantine"; exit 1; }
  same "$a" "$work/again.nova"
  expect '"cache":"hit"' "$(compile "$graph" -o "$work/again.nova" --cache-dir "$cache")"
  [ -z "$(find "$cache" -name '*.tmp-*')" ] || { echo "FAIL: something is left in $cache"; exit 1; }
  rm -rf "${work:?}"/*
  echo "pass $name"
done
