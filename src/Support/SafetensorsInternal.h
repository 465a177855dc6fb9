//===- SafetensorsInternal.h - What the two safetensors sources share -----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_SUPPORT_SAFETENSORSINTERNAL_H
#define NOVA_SRC_SUPPORT_SAFETENSORSINTERNAL_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nova::safetensors {

/// Bytes of a dense tensor; nothing on overflow or an unknown dtype.
std::optional<uint64_t> denseBytes(std::string_view dtype,
                                   const std::vector<int64_t> &shape);

/// "[2,3]".
std::string shapeText(const std::vector<int64_t> &shape);

} // namespace nova::safetensors

#endif // NOVA_SRC_SUPPORT_SAFETENSORSINTERNAL_H
