//===- Output.h - Where a bundle goes, and what a build system is told ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_OUTPUT_H
#define NOVA_LIB_DRIVER_OUTPUT_H

#include "nova/Support/Error.h"

#include <string>
#include <vector>

namespace nova::driver {

/// The folder of a bundle while it is being made. Unless keep() is called, the
/// destructor, or a signal that ends the process, removes the manifest of a
/// bundle that was there before, and all of one that was not. The destructor says
/// which bundle is gone.
class OutputFolder {
public:
  OutputFolder() = default;
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &operator=(const OutputFolder &) = delete;
  ~OutputFolder();

  /// `name` is a path, or the name of a graph: then NAME.nova in the working
  /// folder. ErrorCode::Missing when something that is not a bundle is there.
  Status choose(const std::string &name, bool isPath = false);
  const std::string &path() const { return folder; }
  void keep();
  /// The destructor then says nothing.
  void sayNothing() { silent = true; }

private:
  std::string folder;
  bool existed = false, kept = false, silent = false;
};

/// Publishes "TARGET: FILE ..." as make and ninja read it.
Status writeDepfile(const std::string &path, const std::string &target,
                    const std::vector<std::string> &files);

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_OUTPUT_H
