//===- Session.h - A bundle with buffers, ready to step -------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime/Run. A user of the C ABI, as any other.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_RUN_SESSION_H
#define NOVA_RUNTIME_RUN_SESSION_H

#include "../Elements.h"
#include "../Memory.h"
#include "nova-rt/nova_rt.h"
#include "nova/Support/Error.h"
#include "nova/Support/Safetensors.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nova::run {

/// A tensor of the signature and, unless it updates an input, its buffer.
struct Tensor {
  std::string name, role, path;
  rt::DType dtype = rt::DType::F32;
  std::string dtypeName;
  std::vector<int64_t> shape, strides; ///< strides in elements
  uint64_t bytes = 0;                  ///< of the buffer
  uint64_t elements = 0;               ///< of the shape
  std::optional<uint32_t> updates;
  std::optional<double> advance;
  rt::Memory memory;

  void *data() const { return memory.get(); }
};

/// The last error of the C ABI on this thread, with `status` as its code.
Error abiError(nova_rt_status_t status);

/// "float32 [2,3]".
std::string describe(const Tensor &tensor);

/// Calls f(element offset into the buffer) for the elements in row-major order
/// of the logical shape.
template <typename F> void forEachElement(const Tensor &t, F f) {
  if (t.elements == 0)
    return;
  size_t rank = t.shape.size();
  std::vector<int64_t> index(rank, 0);
  int64_t offset = 0;
  for (uint64_t n = 0; n < t.elements; ++n) {
    f(offset);
    for (size_t d = rank; d-- > 0;) {
      offset += t.strides[d];
      if (++index[d] < t.shape[d])
        break;
      offset -= t.strides[d] * t.shape[d];
      index[d] = 0;
    }
  }
}

/// Row-major bytes of a tensor whose buffer starts at `buffer`, and back.
/// scatter() fails when elements that share memory (stride 0) differ.
std::string gather(const Tensor &tensor, const void *buffer);
bool scatter(const Tensor &tensor, std::string_view dense, void *buffer);

class Session {
public:
  /// Opens, chooses by `device` ("host", a number, or "" for host), loads,
  /// allocates and binds.
  static Expected<std::unique_ptr<Session>> open(const std::string &bundle,
                                                 const std::string &device,
                                                 unsigned threads,
                                                 bool allowJit);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  std::vector<Tensor> inputs, outputs;
  std::string name, matmul, targetName;
  bool graph16bit = false;

  /// Every input from `in/<name>`.
  Status loadInputs(const SafetensorsFile &file);
  /// The generator of Run.h.
  void randomInputs(uint64_t seed);
  /// "NAME=VALUE" into a scalar input.
  Status set(const std::string &assignment);

  Status step();
  Status advance();
  /// Row-major bytes of output i after a step.
  std::string output(uint32_t index) const;
  std::string input(uint32_t index) const;
  unsigned threads() const;

private:
  Session() = default;
  Status start(const std::string &bundle, const std::string &device,
               unsigned threads, bool allowJit);

  nova_rt_bundle_t *bundle = nullptr;
  nova_rt_program_t *program = nullptr;
  nova_rt_instance_t *instance = nullptr;
};

/// The bytes of tensor `key` of the file; it must have the dtype and shape of
/// `tensor`. `what` is "input 3" or "output 0".
Expected<std::string> readTensor(const SafetensorsFile &file,
                                 const std::string &key, const Tensor &tensor,
                                 const std::string &what);

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_SESSION_H
