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
#include "nova/Simulator/Step.h"
#include "nova/Support/Error.h"
#include "nova/Support/Safetensors.h"

#include <iosfwd>
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
  uint64_t alignment = 1;              ///< of the buffer, in bytes
  std::optional<uint32_t> updates;
  std::optional<double> advance;
  rt::ZeroedMemory memory; ///< In the process.
  void *device = nullptr;  ///< Where the target has it: `memory`, or on a GPU.

  void *data() const { return memory.get(); }
};

/// The last error of the C ABI on this thread, with `status` as its code.
Error abiError(nova_rt_status_t status);

/// "host" or a number, as nova_rt_bundle_choose takes it.
Expected<int32_t> deviceOf(const std::string &text);

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

struct SessionOptions {
  std::string bundle;
  /// "host", a number, or "" for host where the bundle has that target, else
  /// GPU 0.
  std::string device;
  /// This target of the bundle, not the one that is chosen for the device.
  std::optional<uint32_t> target;
  unsigned threads = 0;
  bool allowJit = false;
  /// "graph", "chain", "plain", or "" for graph.
  std::string launch;
  /// `target` is simulated on the CPU (nova/Simulator).
  bool simulate = false;
};

/// Milliseconds that opening took, by part.
struct OpenTimes {
  double open = 0;   ///< The manifest, while the driver starts.
  double choose = 0; ///< With the rest of the driver's start.
  double load = 0;   ///< With the context of the device.
  double create = 0; ///< The arena.
  double bind = 0;   ///< The buffers of the signature.
  double total() const { return open + choose + load + create + bind; }
};

class Session {
public:
  /// Opens, chooses, loads, allocates and binds. What a user should know but
  /// did not ask for goes to `log`.
  static Expected<std::unique_ptr<Session>> open(const SessionOptions &options,
                                                 std::ostream &log);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  std::vector<Tensor> inputs, outputs;
  std::string name, matmul, targetName, targetDevice;
  /// "NVIDIA H200"; for host the instruction set.
  std::string deviceName;
  bool graph16bit = false;
  bool onGpu = false;
  OpenTimes times;
  /// Present when the target is simulated: which warp runs when several could,
  /// and what the last step did.
  std::optional<sim::Step> simulated;
  sim::Options simulation;
  sim::StepOutcome simulatedStep;

  /// Every input from `in/<name>`.
  Status loadInputs(const SafetensorsFile &file);
  /// The generator of Run.h.
  void randomInputs(uint64_t seed);
  /// "NAME=VALUE" into a scalar input.
  Status set(const std::string &assignment);

  /// Inputs that were set since the last step go to the device.
  Status upload();
  /// Enqueues a step and, in advance(), what comes between two.
  Status step();
  Status advance();
  Status synchronize();
  /// Row-major bytes of output i after a step, of an input before or after.
  Expected<std::string> output(uint32_t index);
  Expected<std::string> input(uint32_t index);
  unsigned threads() const;

  // For those who measure.
  const nova_rt_program_t *loaded() const { return program; }
  nova_rt_instance_t *handle() const { return instance; }
  void *stream() const { return queue; }
  /// The bytes of a tensor of the device, into its `memory`.
  Status fetch(const Tensor &tensor);

private:
  Session() = default;
  Status start(const SessionOptions &options, std::ostream &log);
  Status choose(const SessionOptions &options, int32_t &device,
                uint32_t &target);
  Status readSignature();
  Status giveBuffers();
  Status openSimulated(const SessionOptions &options);
  Status simulateStep();

  nova_rt_bundle_t *bundle = nullptr;
  nova_rt_program_t *program = nullptr;
  nova_rt_instance_t *instance = nullptr;
  void *queue = nullptr;
  bool uploaded = false; ///< The device has what `memory` has, or newer.
};

/// The bytes of tensor `key` of the file; it must have the dtype and shape of
/// `tensor`. `what` is "input 3" or "output 0".
Expected<std::string> readTensor(const SafetensorsFile &file,
                                 const std::string &key, const Tensor &tensor,
                                 const std::string &what);

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_SESSION_H
