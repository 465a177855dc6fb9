//===- AbiSupport.h - Handles, statuses, the wall for exceptions ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime: what Abi.cpp and AbiDevice.cpp share.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_ABISUPPORT_H
#define NOVA_RUNTIME_ABISUPPORT_H

#include "Program.h"
#include "nova-rt/nova_rt.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

struct nova_rt_bundle_t {
  std::shared_ptr<const nova::rt::OpenedBundle> bundle;
};
struct nova_rt_program_t {
  std::shared_ptr<const nova::rt::Program> program;
};
struct nova_rt_instance_t {
  std::unique_ptr<nova::rt::Instance> instance;
};
struct nova_rt_timer_t {
  std::unique_ptr<nova::rt::Timer> timer;
};

namespace nova::rt {

struct LastError {
  std::string message, hint;
};
inline LastError &lastError() {
  static thread_local LastError error;
  return error;
}

inline nova_rt_status_t fail(const Error &error) {
  lastError().message = error.message;
  lastError().hint = error.hint;
  return static_cast<nova_rt_status_t>(error.code);
}

inline nova_rt_status_t failUsage(const char *message) {
  return fail({ErrorCode::Usage, message, {}});
}

/// Runs `body` (returning a status) and turns what it throws into one.
template <typename F> nova_rt_status_t guarded(F body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    try {
      return fail({ErrorCode::Missing, "out of memory", {}});
    } catch (...) {
      return NOVA_RT_MISSING; // not even memory for the text
    }
  } catch (const std::exception &e) {
    try {
      return fail({ErrorCode::Internal,
                   std::string("unexpected exception: ") + e.what(),
                   {}});
    } catch (...) {
      return NOVA_RT_INTERNAL;
    }
  } catch (...) {
    return NOVA_RT_INTERNAL;
  }
}

inline nova_rt_status_t statusOf(const Status &status) {
  return status ? NOVA_RT_OK : fail(status.error());
}

/// Writes as much of `value` as the caller's struct has room for. A smaller
/// struct is that of an older header.
template <typename T> nova_rt_status_t fill(T *out, T value, size_t leastSize) {
  if (!out)
    return failUsage("a null pointer where a struct is filled");
  size_t size = out->struct_size;
  if (size < leastSize)
    return fail({ErrorCode::Usage,
                 "struct_size is " + std::to_string(size) +
                     ", expected at least " + std::to_string(leastSize),
                 "set struct_size to sizeof the struct before the call"});
  value.struct_size = size;
  std::memcpy(out, &value, std::min(size, sizeof(T)));
  return NOVA_RT_OK;
}

/// Options from a caller whose header may be older (smaller) or newer: what it
/// does not have is zero.
template <typename T> Expected<T> optionsOf(const T *given) {
  T options;
  std::memset(&options, 0, sizeof options);
  if (!given)
    return options;
  if (given->struct_size < sizeof(size_t))
    return Error{ErrorCode::Usage, "struct_size of the options is not set",
                 "set it to sizeof the struct before the call"};
  std::memcpy(&options, given, std::min(given->struct_size, sizeof options));
  return options;
}

} // namespace nova::rt

#endif // NOVA_RUNTIME_ABISUPPORT_H
