//===- CudaInstance.h - A step on a GPU -----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_CUDA_CUDAINSTANCE_H
#define NOVA_RUNTIME_CUDA_CUDAINSTANCE_H

#include "../Elements.h"
#include "../Instance.h"
#include "CudaProgram.h"
#include "CudaTensorMap.h"

#include <deque>
#include <memory>
#include <vector>

namespace nova::rt::cuda {

/// The graph of a step is built at the first launch, when every address is
/// known. From then on binding is graduated:
///   - unchanged addresses cost the caller's comparison and one cuGraphLaunch;
///   - changed ones update, at the next launch, only the nodes that use them,
///     each once however many of its addresses have changed, and the address
///     within its tensor maps;
///   - addresses that were bound before and come back, as those of a caller who
///     alternates between buffers do, get an executable graph of their own, and
///     from then on cost comparisons. A node costs 0.15 us to update and 0.4 us
///     more at the launch that follows, an executable graph a millisecond once.
class CudaInstance final : public Instance {
public:
  static Expected<std::unique_ptr<Instance>>
  create(std::shared_ptr<const CudaProgram> program, LaunchMode mode);
  ~CudaInstance() override;

  LaunchMode mode() const override { return launchMode; }

private:
  /// A launch, resolved: everything that a launch or an update of its node
  /// needs. Parameters point into `slots`.
  struct Step {
    bundle::LaunchKind kind = bundle::LaunchKind::Kernel;
    size_t first = 0; ///< Its first argument in `slots`.
    KernelNodeParams kernel{};
    LaunchAttributeValue cluster{};
    bool hasCluster = false;
    uint64_t count = 0;      ///< Memset, copy: bytes; 0 is an empty node.
    unsigned char value = 0; ///< Memset.
    GraphNode node = nullptr;
    bool stale = false; ///< Its node is to be updated.
  };
  /// An executable graph, and the addresses that are in it.
  struct Executable {
    GraphExec exec = nullptr;
    std::vector<void *> addresses;
    uint64_t used = 0; ///< The launch that used it last.
  };

  CudaInstance(std::shared_ptr<const CudaProgram> program, LaunchMode mode);
  Status initialise();
  Status resolve();
  Status resolveLaunch(const bundle::Launch &launch);
  void resolveArgument(const bundle::LaunchArg &arg);
  void resolveTensorMap(const bundle::TensorMap &map);
  Status createAdvance();

  void slotChanged(size_t slot) override;
  bool bindingsKnown() override;
  Status runStep(void *stream) override;
  Status runAdvance(void *stream) override;

  Status checkStream(Stream stream);
  Status fillArguments();
  Status buildGraph();
  Status addNode(size_t index, const std::vector<GraphNode> &after);
  Status chooseExecutable(Stream stream);
  bool comesBack();
  size_t nearest();
  void remember(const Executable &executable);
  bool addExecutable();
  Status update(Executable &executable);
  Status updateNode(GraphExec exec, size_t index);
  Status launchPlain(Stream stream);
  Status launchOne(const Step &step, size_t index, Stream stream);
  void dropGraph();

  MemsetNodeParams memsetOf(const Step &step) const;
  Memcpy3D copyOf(const Step &step) const;
  std::string nameOf(size_t index) const;
  const Driver &driver() const { return program->driver(); }

  std::shared_ptr<const CudaProgram> program;
  LaunchMode launchMode;
  DeviceMemory arena;
  std::vector<Step> steps;
  std::vector<void *> parameters;  ///< Addresses of slots and maps; kernelParams.
  std::vector<uint32_t> slotOwner; ///< The launch of a slot.
  /// An argument that is a tensormap: `slots` has the address of its memory,
  /// the launch's parameter is the map. A deque, for they must not
  /// move.
  struct MapArgument {
    size_t slot;
    size_t number; ///< Among the arguments of its launch.
    CudaTensorMap map;
    bool stale = true; ///< Encoded for an old address, or not yet.
    MapArgument(size_t slot, size_t number, const bundle::TensorMap &map)
        : slot(slot), number(number), map(map) {}
  };
  std::deque<MapArgument> maps;
  std::vector<MapArgument *> slotMaps; ///< Per slot; null for other arguments.
  std::vector<MapArgument *> staleMaps;
  Graph graph = nullptr;
  std::vector<void *> graphAddresses; ///< Those in the nodes of `graph`.
  std::vector<Executable> executables;
  size_t active = 0;         ///< The executable that was launched last.
  uint64_t activeNumber = 0; ///< Of the binding that is in it.
  size_t known = 0;          ///< An executable that bindingsKnown() has found.
  Stream launchedOn = nullptr;    ///< The stream of that.
  bool noMoreExecutables = false; ///< The driver has refused one.
  /// Addresses that were overwritten, the oldest first.
  std::deque<std::vector<void *>> overwritten;
  Stream lastStream = nullptr; ///< The one that was checked last.

  /// advance(): down, added to by the CPU, up again, all on the stream.
  struct Advance {
    struct Element {
      DType dtype;
      double by;
    };
    std::vector<Element> elements;
    uint64_t *values = nullptr; ///< Pinned, one per element.
    Event done = nullptr;
    static void onHost(void *self);
  };
  Advance advances;
};

} // namespace nova::rt::cuda

#endif // NOVA_RUNTIME_CUDA_CUDAINSTANCE_H
