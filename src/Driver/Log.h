//===- Log.h - Standard error: progress, warnings, errors -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three channels, never mixed: what a command was asked for goes to standard
// output; errors, warnings and notes to standard error; progress there too, and
// only on a terminal or with --verbose.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_LOG_H
#define NOVA_LIB_DRIVER_LOG_H

#include "nova/Support/Error.h"

#include <string>
#include <string_view>

namespace nova::driver {

/// Lets info() through.
void setVerbose(bool verbose);

void info(std::string_view message);
/// A line that people should see whatever the verbosity.
void note(std::string_view message);
void warning(std::string_view message);
/// Prints "error: ..." and the hint, and returns the exit status.
int report(const Error &error);
void errorLine(std::string_view message);

/// A line that each update overwrites, on a terminal only, and only once a
/// second of work has passed. The destructor wipes it.
class ProgressLine {
public:
  ProgressLine();
  ~ProgressLine();
  void update(std::string_view text);

private:
  bool terminal, shown = false;
  double start;
};

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_LOG_H
