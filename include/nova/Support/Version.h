//===- Version.h - The one version number ---------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SUPPORT_VERSION_H
#define NOVA_SUPPORT_VERSION_H

namespace nova {
/// "MAJOR.MINOR.PATCH", from project(VERSION) in the top CMakeLists.txt.
const char *versionString();
/// The LLVM this was built against, e.g. "22.1.8"; empty in a runtime-only build.
const char *llvmVersionString();
} // namespace nova

#endif // NOVA_SUPPORT_VERSION_H
