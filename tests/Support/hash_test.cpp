//===- hash_test.cpp - SHA-256 against FIPS 180-4, and keys ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Support/Hash.h"

#include <gtest/gtest.h>

using namespace nova;

TEST(Sha256, FipsVectors) {
  EXPECT_EQ(sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb924"
                           "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223"
                              "b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(
      sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "248d6a61d20638b8e5c026930c3e6039"
      "a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(
      sha256Hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
      "cf5b16a778af8380036ce59e7b049237"
      "0b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67"
            "f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, HowBytesAreCutDoesNotMatter) {
  // Every length around the block and the padding boundary, in every way of
  // cutting it in two.
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += static_cast<char>(i * 37 + 11);
  for (size_t size :
       {1u, 55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 128u, 200u}) {
    std::string_view whole = std::string_view(text).substr(0, size);
    std::string expected = sha256Hex(whole);
    for (size_t cut = 0; cut <= size; ++cut)
      EXPECT_EQ(Sha256()
                    .update(whole.substr(0, cut))
                    .update(whole.substr(cut))
                    .finishHex(),
                expected)
          << size << " cut at " << cut;
  }
}

TEST(KeyBuilder, SectionsDoNotRunIntoEachOther) {
  std::string a = KeyBuilder().section("ab", "c").key();
  EXPECT_NE(a, KeyBuilder().section("a", "bc").key());
  EXPECT_NE(a, KeyBuilder().section("ab", "c").section("", "").key());
  EXPECT_NE(KeyBuilder().section("x", "1").section("y", "2").key(),
            KeyBuilder().section("y", "2").section("x", "1").key());
  EXPECT_EQ(a, KeyBuilder().section("ab", "c").key());
}

TEST(KeyBuilder, TextShowsWhatWasHashed) {
  std::string text =
      KeyBuilder().section("precision", "f32").section("graph", "a\nb").text();
  EXPECT_EQ(text, "precision: f32\ngraph: sha256:" + sha256Hex("a\nb") +
                      " (3 bytes)\n");
}
