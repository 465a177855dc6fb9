//===- ManifestText.h - Parts of a manifest for people --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_LIB_DRIVER_MANIFESTTEXT_H
#define NOVA_LIB_DRIVER_MANIFESTTEXT_H

#include "nova/Bundle/Manifest.h"

#include <string>

namespace nova::driver {

/// "a=1 b=[2,3]".
std::string text(const bundle::AttrValue &value);

/// The value of that name, or nothing.
template <typename Type>
const Type *find(const bundle::Attributes &attributes,
                 const std::string &name) {
  auto it = attributes.find(name);
  return it == attributes.end() ? nullptr
                                : std::get_if<Type>(&it->second.value);
}

/// "8.45 us": three digits.
std::string timeText(uint64_t ns);

/// "tile [128,128], inside [32], 8 warps, 3 stages".
std::string scheduleText(const bundle::Attributes &schedule);

/// One line for each candidate of a kernel (what it is, what became of it, why),
/// then for each that was dropped unseen. Empty where none are recorded.
std::string candidatesText(const bundle::Attributes &schedule,
                           const std::string &indent);

} // namespace nova::driver

#endif // NOVA_LIB_DRIVER_MANIFESTTEXT_H
