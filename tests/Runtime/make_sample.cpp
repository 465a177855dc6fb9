//===- make_sample.cpp - Writes the sample bundle for programs in C -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bundle/SampleBundle.h"

#include <cstdio>

int main(int argc, char **argv) {
  auto r = nova::bundle::publishBundle(
      argc > 1 ? argv[1] : "sample.nova",
      nova::test::sampleBundle(nova::test::sampleHostObject()), "{}\n");
  if (!r)
    std::fprintf(stderr, "%s\n", r.error().message.c_str());
  return r ? 0 : 1;
}
