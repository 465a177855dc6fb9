//===- BuildId.cpp - Which toolchain this is, by content ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "BuildId.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>
#include <string_view>

#include <elf.h>
#include <link.h>

using namespace nova;

/// The build ID among the notes in [begin, end), as hexadecimal digits.
static std::string findBuildId(const char *begin, const char *end) {
  auto align = [](size_t size) { return (size + 3) & ~size_t(3); };
  while (begin + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) header;
    std::memcpy(&header, begin, sizeof header);
    const char *name = begin + sizeof header;
    const char *content = name + align(header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        std::memcmp(name, "GNU", 4) == 0)
      return llvm::toHex(llvm::StringRef(content, header.n_descsz), true);
    begin = content + align(header.n_descsz);
  }
  return {};
}

static int addObject(dl_phdr_info *object, size_t, void *data) {
  auto &id = *static_cast<std::string *>(data);
  std::string_view name = object->dlpi_name;
  std::string_view label;
  if (id.empty()) // The executable comes first.
    label = "novac ";
  else if (name.find("libLLVM") != name.npos)
    label = " llvm ";
  else
    return 0;
  std::string found;
  for (int i = 0; i < object->dlpi_phnum && found.empty(); ++i) {
    const ElfW(Phdr) &segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE)
      continue;
    const char *begin =
        reinterpret_cast<const char *>(object->dlpi_addr + segment.p_vaddr);
    found = findBuildId(begin, begin + segment.p_memsz);
  }
  id.append(label).append(found.empty() ? "none" : found);
  return 0;
}

std::string driver::toolchainId() {
  std::string id;
  dl_iterate_phdr(addObject, &id);
  return id;
}
