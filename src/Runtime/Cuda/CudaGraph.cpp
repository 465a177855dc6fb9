//===- CudaGraph.cpp - A step on a GPU: its graph and its updates ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaInstance.h"

#include "CudaStrands.h"

#include <algorithm>

using namespace nova;
using namespace nova::rt;
using namespace nova::rt::cuda;
using namespace nova::bundle;

namespace {

/// Branches of a graph; see CudaStrands.h.
constexpr unsigned kStrands = 8;
/// Executable graphs of an instance, and how many sets of addresses are
/// remembered to tell that one comes back.
constexpr size_t kExecutables = 4;
constexpr size_t kRemembered = 4;
/// So few arguments are updated in place and not remembered: less than 10 us.
constexpr size_t kFewArguments = 16;
/// CU_STREAM_PER_THREAD: another stream in every thread.
constexpr uintptr_t kStreamPerThread = 2;

DevicePtr devicePtr(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

} // namespace

void CudaInstance::slotChanged(size_t slot) {
  if (MapArgument *map = slotMaps[slot]; map && !map->stale) {
    map->stale = true;
    staleMaps.push_back(map);
  }
}

MemsetNodeParams CudaInstance::memsetOf(const Step &step) const {
  MemsetNodeParams p{};
  p.dst = devicePtr(slots[step.first]);
  // Words where they fit: offsets are the plan's, so this never changes for a
  // node, as an update requires.
  bool words = p.dst % 4 == 0 && step.count % 4 == 0;
  p.elementSize = words ? 4 : 1;
  p.value = step.value * (words ? 0x01010101u : 1u);
  p.width = step.count / p.elementSize;
  p.height = 1;
  return p;
}

Memcpy3D CudaInstance::copyOf(const Step &step) const {
  Memcpy3D p{};
  p.dstMemoryType = p.srcMemoryType = kMemoryTypeDevice;
  p.dstDevice = devicePtr(slots[step.first]);
  p.srcDevice = devicePtr(slots[step.first + 1]);
  p.widthInBytes = p.srcPitch = p.dstPitch = step.count;
  p.height = p.depth = p.srcHeight = p.dstHeight = 1;
  return p;
}

Status CudaInstance::addNode(size_t index,
                             const std::vector<GraphNode> &after) {
  Step &step = steps[index];
  Context context = program->context->handle;
  switch (step.kind) {
  case LaunchKind::Kernel:
    NOVA_CUDA_TRY(driver(), graphAddKernelNode, nameOf(index), &step.node,
                  graph, after.data(), after.size(), &step.kernel);
    if (step.hasCluster)
      NOVA_CUDA_TRY(driver(), graphKernelNodeSetAttribute, nameOf(index),
                    step.node, kAttributeClusterDimension, &step.cluster);
    return Status::ok();
  case LaunchKind::Memset:
    if (step.count) {
      MemsetNodeParams p = memsetOf(step);
      NOVA_CUDA_TRY(driver(), graphAddMemsetNode, nameOf(index), &step.node,
                    graph, after.data(), after.size(), &p, context);
      return Status::ok();
    }
    break;
  case LaunchKind::Copy:
    if (step.count) {
      Memcpy3D p = copyOf(step);
      NOVA_CUDA_TRY(driver(), graphAddMemcpyNode, nameOf(index), &step.node,
                    graph, after.data(), after.size(), &p, context);
      return Status::ok();
    }
    break;
  }
  // Nothing to do, but others may wait for it.
  NOVA_CUDA_TRY(driver(), graphAddEmptyNode, nameOf(index), &step.node, graph,
                after.data(), after.size());
  return Status::ok();
}

/// Not uploaded by hand: a stream that is being captured forbids it, and the
/// first launch does it.
Status CudaInstance::buildGraph() {
  std::string what = "graph of " +
                     std::to_string(program->target->launches.size()) +
                     " launches";
  NOVA_CUDA_TRY(driver(), graphCreate, what, &graph, 0);
  std::vector<std::vector<uint32_t>> order(steps.size());
  for (size_t i = 0; i < steps.size(); ++i)
    order[i] = program->target->launches[i].after;
  order = edgesInStrands(order, launchMode == LaunchMode::Chain ? 1 : kStrands);
  std::vector<GraphNode> after;
  for (size_t i = 0; i < steps.size(); ++i) {
    after.clear();
    for (uint32_t earlier : order[i])
      after.push_back(steps[earlier].node);
    if (Status s = addNode(i, after); !s)
      return s;
  }
  graphAddresses = boundAddresses();
  Executable &first = executables.emplace_back();
  first.addresses = graphAddresses;
  NOVA_CUDA_TRY(driver(), graphInstantiate, what, &first.exec, graph, 0);
  ++done.graphBuilds;
  done.graphNodes = steps.size();
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Other addresses
//===----------------------------------------------------------------------===//

bool CudaInstance::bindingsKnown() {
  known = 0;
  while (known < executables.size() &&
         executables[known].addresses != boundAddresses())
    ++known;
  return known < executables.size();
}

/// Leaves in `active` an executable graph with the addresses that are bound.
Status CudaInstance::chooseExecutable(Stream stream) {
  if (executables.empty()) {
    if (Status s = fillArguments(); !s)
      return s;
    if (Status s = buildGraph(); !s)
      return s;
    active = 0;
  } else if (activeNumber != bindingNumber()) {
    // The driver runs the launches of one executable graph one after the other,
    // on whichever streams; those of two only where the stream says so.
    if (stream == launchedOn && devicePtr(stream) != kStreamPerThread)
      active = nearest();
    else if (differences(executables[active].addresses) > kFewArguments)
      remember(executables[active]);
    if (Status s = update(executables[active]); !s)
      return s;
  }
  activeNumber = bindingNumber();
  executables[active].used = done.launches;
  return Status::ok();
}

/// The executable graph that becomes that of the addresses that are bound: one
/// that has them, or nearly; one of their own when they have been there before;
/// else the one that has not been used for longest.
size_t CudaInstance::nearest() {
  if (known < executables.size() &&
      executables[known].addresses == boundAddresses())
    return known;
  size_t best = 0, oldest = 0, least = SIZE_MAX;
  for (size_t i = 0; i < executables.size(); ++i) {
    size_t count = differences(executables[i].addresses);
    if (count < least)
      least = count, best = i;
    if (executables[i].used < executables[oldest].used)
      oldest = i;
  }
  if (least <= kFewArguments)
    return best;
  if (comesBack() && addExecutable())
    return executables.size() - 1;
  remember(executables[oldest]);
  return oldest;
}

/// Were these addresses, or nearly, in an executable that has others now?
bool CudaInstance::comesBack() {
  auto it = std::find_if(overwritten.begin(), overwritten.end(),
                         [&](const std::vector<void *> &old) {
                           return differences(old) <= kFewArguments;
                         });
  if (it == overwritten.end())
    return false;
  overwritten.erase(it);
  return true;
}

void CudaInstance::remember(const Executable &executable) {
  overwritten.push_back(executable.addresses);
  if (overwritten.size() > kRemembered)
    overwritten.pop_front();
}

/// False where there are enough, or no room for another: then one that is there
/// is updated, as if none had come back.
bool CudaInstance::addExecutable() {
  if (noMoreExecutables || executables.size() == kExecutables)
    return false;
  GraphExec exec = nullptr;
  noMoreExecutables = driver().api().graphInstantiate(&exec, graph, 0);
  if (noMoreExecutables)
    return false;
  executables.push_back({exec, graphAddresses, done.launches});
  ++done.graphBuilds;
  return true;
}

Status CudaInstance::update(Executable &executable) {
  if (executable.addresses == boundAddresses())
    return Status::ok();
  if (Status s = fillArguments(); !s)
    return s;
  std::vector<uint32_t> stale;
  forEachDifference(executable.addresses, [&](size_t slot) {
    Step &step = steps[slotOwner[slot]];
    if (!step.stale)
      stale.push_back(slotOwner[slot]);
    step.stale = true;
  });
  for (uint32_t index : stale)
    steps[index].stale = false;
  for (uint32_t index : stale) {
    if (Status s = updateNode(executable.exec, index); !s)
      return s;
    ++done.nodeUpdates;
  }
  executable.addresses = boundAddresses();
  return Status::ok();
}

Status CudaInstance::updateNode(GraphExec exec, size_t index) {
  const Step &step = steps[index];
  Context context = program->context->handle;
  if (step.kind == LaunchKind::Kernel) {
    NOVA_CUDA_TRY(driver(), graphExecKernelNodeSetParams, nameOf(index), exec,
                  step.node, &step.kernel);
  } else if (step.count && step.kind == LaunchKind::Memset) {
    MemsetNodeParams p = memsetOf(step);
    NOVA_CUDA_TRY(driver(), graphExecMemsetNodeSetParams, nameOf(index), exec,
                  step.node, &p, context);
  } else if (step.count) {
    Memcpy3D p = copyOf(step);
    NOVA_CUDA_TRY(driver(), graphExecMemcpyNodeSetParams, nameOf(index), exec,
                  step.node, &p, context);
  }
  return Status::ok();
}

void CudaInstance::dropGraph() {
  for (Executable &executable : executables)
    if (executable.exec)
      driver().api().graphExecDestroy(executable.exec);
  if (graph)
    driver().api().graphDestroy(graph);
  executables.clear();
  graph = nullptr;
}
