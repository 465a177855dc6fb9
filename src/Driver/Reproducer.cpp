//===- Reproducer.cpp - What is left of an internal error -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Reproducer.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nova;

static std::error_code openReproducer(int &fd, std::string &path) {
  llvm::SmallString<128> created;
  std::error_code error = llvm::sys::fs::createTemporaryFile(
      "novac-reproducer", "mlir", fd, created);
  path = created.str();
  return error;
}

namespace {
class FileReproducer : public ReproducerStream {
public:
  FileReproducer(int fd, std::string path)
      : path(std::move(path)), stream(fd, /*shouldClose=*/true) {}
  llvm::StringRef description() override { return path; }
  llvm::raw_ostream &os() override { return stream; }

private:
  std::string path;
  llvm::raw_fd_ostream stream;
};
} // namespace

void driver::reproduceFailuresOf(PassManager &manager, std::string &path) {
  manager.enableCrashReproducerGeneration(
      [&path](std::string &error) -> std::unique_ptr<ReproducerStream> {
        int fd;
        if (std::error_code failure = openReproducer(fd, path)) {
          error = "cannot write a reproducer: " + failure.message();
          path = error;
          return nullptr;
        }
        return std::make_unique<FileReproducer>(fd, path);
      });
}

std::string driver::writeReproducer(std::string_view text) {
  int fd;
  std::string path;
  if (std::error_code failure = openReproducer(fd, path))
    return "cannot write a reproducer: " + failure.message();
  llvm::raw_fd_ostream(fd, /*shouldClose=*/true) << text;
  return path;
}
