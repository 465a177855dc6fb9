//===- Error.h - Errors that name the thing, the value and the limit ------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The error value used by every library below MLIR (Support, Bundle, Graph,
// Runtime). No LLVM here: libnova_rt links this.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SUPPORT_ERROR_H
#define NOVA_SUPPORT_ERROR_H

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace nova {

/// Why something failed, in the terms of the command line's exit status.
enum class ErrorCode : int {
  /// The input is missing, unreadable or rejected.
  BadInput = 1,
  /// Unknown flag, target, stage or value.
  Usage = 2,
  /// A defect of novac itself.
  Internal = 3,
  /// Something this needs is missing here: assembler, driver, GPU, disk space.
  Missing = 4,
  /// Verification failed: numbers, or a wrong digest met by any command.
  Verification = 5,
};

/// One failure. `message` names the thing, the value and what was expected;
/// `hint` (may be empty) says what to do about it.
struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;
  std::string hint;
};

/// A value or an Error. Test with `if (!x)`, then read `x.error()`.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : storage(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return storage.index() == 0; }
  T &operator*() { return std::get<0>(storage); }
  const T &operator*() const { return std::get<0>(storage); }
  T *operator->() { return &std::get<0>(storage); }
  const T *operator->() const { return &std::get<0>(storage); }
  const Error &error() const { return std::get<1>(storage); }
  Error &error() { return std::get<1>(storage); }

private:
  std::variant<T, Error> storage;
};

/// Success or an Error, for functions with nothing to return.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failed(true), err(std::move(error)) {}
  static Status ok() { return {}; }
  explicit operator bool() const { return !failed; }
  const Error &error() const {
    assert(failed && "error() of a success");
    return err;
  }

private:
  bool failed = false;
  Error err;
};

/// `Error{BadInput, ...}`: the commonest kind.
inline Error badInput(std::string message, std::string hint = {}) {
  return {ErrorCode::BadInput, std::move(message), std::move(hint)};
}

} // namespace nova

#endif // NOVA_SUPPORT_ERROR_H
