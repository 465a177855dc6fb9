//===- ManifestFuzzer.cpp - libFuzzer: the manifest reader ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any bytes are accepted or refused with a message; what is accepted is written
// and read again to the same text.
//
// LINK: novaBundle
// SEEDS: tests/Bundle/attacks tests/Bundle/golden/v1
//
//===----------------------------------------------------------------------===//

#include "nova/Bundle/Manifest.h"

#include <cstdio>
#include <cstdlib>

using namespace nova;
using namespace nova::bundle;

static void require(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Expected<Manifest> first = readManifest(
      std::string_view(reinterpret_cast<const char *>(data), size), "fuzz");
  if (!first) {
    require(!first.error().message.empty(), "an error without a message");
    require(first.error().code == ErrorCode::BadInput, "not BadInput");
    return 0;
  }
  if (first->schemaVersion > kSchemaVersion)
    return 0; // keys of later schemas are not kept
  std::string text = writeManifest(*first);
  Expected<Manifest> second = readManifest(text, "fuzz");
  require(static_cast<bool>(second), "the canonical text is refused");
  require(writeManifest(*second) == text, "the canonical text is not stable");
  return 0;
}
