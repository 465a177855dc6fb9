//===- BuildId.h - Which toolchain this is, by content --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_BUILDID_H
#define NOVA_LIB_DRIVER_BUILDID_H

#include <string>

namespace nova::driver {

/// The linker's build IDs (a digest of the content) of this executable and of
/// the LLVM library in this process, as "novac HEX llvm HEX". A novac or an
/// LLVM that is other code has another one, whatever its version says.
std::string toolchainId();

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_BUILDID_H
