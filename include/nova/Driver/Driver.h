//===- Driver.h - The command line tool, as a function --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_DRIVER_DRIVER_H
#define NOVA_DRIVER_DRIVER_H

namespace nova::driver {

/// What main() of novac does; returns its exit status.
int run(int argc, char **argv);

} // namespace nova::driver

#endif // NOVA_DRIVER_DRIVER_H
