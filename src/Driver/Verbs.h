//===- Verbs.h - One function per verb ------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_VERBS_H
#define NOVA_LIB_DRIVER_VERBS_H

#include "nova/Driver/Options.h"

#include <cstdint>
#include <string>

namespace nova::driver {

/// Each does the work of a verb on resolved options. An error with an empty
/// message has been printed already.
Status compileVerb(const Options &options);
Status checkVerb(const Options &options);
/// What `check --nodes` prints, after the graph was found to be compilable.
Status printNodes(const Options &options);
Status inspectVerb(const Options &options);
Status runVerb(const Options &options);
Status verifyVerb(const Options &options);
Status explainVerb(const Options &options);
Status cacheVerb(const Options &options);
Status targetsVerb(const Options &options);
Status opsVerb(const Options &options);
Status versionVerb(const Options &options);

/// "1.25 MB", "312 B": decimal units, three digits.
std::string bytesText(uint64_t bytes);

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_VERBS_H
