//===- LinkSharedObject.cpp - Objects to a shared object, in process ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// lld's ELF driver as a library. It works on files and on state of its own
// that is global, so calls take turns. A system linker would make the bytes
// depend on the machine.
//
//===----------------------------------------------------------------------===//
#include "nova/HostCodegen/HostCodegen.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace llvm;

namespace nova {

static nova::Error missing(const Twine &message) {
  return {ErrorCode::Missing, message.str(),
          "the linker needs a directory for temporary files (TMPDIR)"};
}

static std::error_code writeFile(StringRef path, StringRef bytes) {
  std::error_code error;
  raw_fd_ostream file(path, error);
  if (error)
    return error;
  file << bytes;
  file.close();
  error = file.error();
  file.clear_error();
  return error;
}

nova::Expected<std::string> linkSharedObject(ArrayRef<std::string> objects) {
  static std::mutex turn;
  std::lock_guard<std::mutex> lock(turn);

  SmallString<128> folder;
  if (std::error_code error =
          sys::fs::createUniqueDirectory("nova-link", folder))
    return missing("cannot make a temporary directory '" + folder +
                   "': " + error.message());
  scope_exit cleanup([&] { sys::fs::remove_directories(folder); });
  auto inFolder = [&](const Twine &name) {
    SmallString<128> path(folder);
    sys::path::append(path, name);
    return std::string(path);
  };

  std::string output = inFolder("out.so");
  std::vector<std::string> words = {"ld.lld",
                                    "-shared",
                                    "-m",
                                    "elf_x86_64",
                                    "-o",
                                    output,
                                    "-z",
                                    "defs",
                                    "-z",
                                    "noexecstack",
                                    "-z",
                                    "relro",
                                    "-z",
                                    "now",
                                    "--strip-all",
                                    "--hash-style=gnu",
                                    "--build-id=none",
                                    "--no-undefined",
                                    "--threads=1",
                                    "-Bsymbolic"};
  for (auto [i, object] : enumerate(objects)) {
    std::string path = inFolder(Twine(i) + ".o");
    if (std::error_code error = writeFile(path, object))
      return missing("cannot write temporary file '" + path +
                     "': " + error.message());
    words.push_back(path);
  }
  std::vector<const char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(word.c_str());

  std::string said;
  raw_string_ostream stream(said);
  lld::Result result =
      lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0 || !result.canRunAgain)
    return nova::Error{ErrorCode::Internal,
                       "linking " + std::to_string(objects.size()) +
                           " host objects failed: " + said,
                       {}};
  auto buffer = MemoryBuffer::getFile(output, /*IsText=*/false,
                                      /*RequiresNullTerminator=*/false,
                                      /*IsVolatile=*/true);
  if (!buffer)
    return missing("cannot read the linked object: " +
                   buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

} // namespace nova
