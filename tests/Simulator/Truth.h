//===- Truth.h - What a device computed, in a file ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// truth/*.bin, per case: its name and its digest (MicroKernels.h), a line each;
// a line "WIDTH COUNT"; COUNT little-endian words of WIDTH bytes; a newline.
// COUNT 0: the device's driver refused the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_TESTS_SIMULATOR_TRUTH_H
#define NOVA_TESTS_SIMULATOR_TRUTH_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace micro {

struct Truth {
  std::string digest;
  std::vector<uint64_t> words;
};

inline void writeTruth(std::ostream &out, const std::string &name,
                       const Truth &truth) {
  uint64_t all = 0;
  for (uint64_t w : truth.words)
    all |= w;
  int width = all >> 32 ? 8 : all >> 16 ? 4 : all >> 8 ? 2 : 1;
  out << name << '\n'
      << truth.digest << '\n'
      << width << ' ' << truth.words.size() << '\n';
  for (uint64_t w : truth.words)
    out.write(reinterpret_cast<const char *>(&w), width);
  out << '\n';
}

inline std::map<std::string, Truth> readTruth(const std::string &path) {
  std::map<std::string, Truth> result;
  std::ifstream in(path, std::ios::binary);
  std::string name, digest, line;
  while (std::getline(in, name) && std::getline(in, digest) &&
         std::getline(in, line)) {
    size_t width = std::strtoul(line.c_str(), nullptr, 10);
    size_t count = std::strtoul(line.c_str() + line.find(' '), nullptr, 10);
    Truth truth{digest, std::vector<uint64_t>(count)};
    for (uint64_t &w : truth.words)
      in.read(reinterpret_cast<char *>(&w),
              static_cast<std::streamsize>(width));
    in.get();
    result[name] = std::move(truth);
  }
  return result;
}

} // namespace micro

#endif // NOVA_TESTS_SIMULATOR_TRUTH_H
