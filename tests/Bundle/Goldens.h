//===- Goldens.h - What BundleTests --regenerate writes -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_BUNDLE_GOLDENS_H
#define NOVA_TESTS_BUNDLE_GOLDENS_H

namespace nova::test {
/// golden/v1 from the sample bundle: golden_test.cpp.
bool regenerateGolden();
/// The right-hand column of attacks/table.txt: attacks_test.cpp.
bool regenerateAttacks();
} // namespace nova::test

#endif // NOVA_TESTS_BUNDLE_GOLDENS_H
