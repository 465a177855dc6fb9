//===- CudaGraph.cpp - A step on a GPU: its graph and its updates ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaInstance.h"

using namespace nova;
using namespace nova::rt;
using namespace nova::rt::cuda;
using namespace nova::bundle;

namespace {
DevicePtr devicePtr(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}
} // namespace

void CudaInstance::slotChanged(size_t slot) {
  if (MapArgument *map = slotMaps[slot]; map && !map->stale) {
    map->stale = true;
    staleMaps.push_back(map);
  }
  uint32_t index = slotOwner[slot];
  if (!exec || steps[index].stale)
    return;
  steps[index].stale = true;
  stale.push_back(index);
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
  std::vector<GraphNode> after;
  for (size_t i = 0; i < steps.size(); ++i) {
    after.clear();
    if (launchMode == LaunchMode::Chain) {
      if (i)
        after.push_back(steps[i - 1].node);
    } else {
      // Each once: the driver refuses an edge that is there.
      for (uint32_t earlier : program->target->launches[i].after) {
        GraphNode node = steps[earlier].node;
        bool there = false;
        for (GraphNode other : after)
          there |= other == node;
        if (!there)
          after.push_back(node);
      }
    }
    if (Status s = addNode(i, after); !s)
      return s;
    steps[i].stale = false;
  }
  stale.clear();
  NOVA_CUDA_TRY(driver(), graphInstantiate, what, &exec, graph, 0);
  ++done.graphBuilds;
  done.graphNodes = steps.size();
  return Status::ok();
}

Status CudaInstance::updateStale() {
  for (uint32_t index : stale) {
    if (Status s = updateNode(steps[index], index); !s)
      return s;
    steps[index].stale = false;
    ++done.nodeUpdates;
  }
  stale.clear();
  return Status::ok();
}

Status CudaInstance::updateNode(const Step &step, size_t index) {
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
  if (exec)
    driver().api().graphExecDestroy(exec);
  if (graph)
    driver().api().graphDestroy(graph);
  exec = nullptr;
  graph = nullptr;
  stale.clear();
  for (Step &step : steps)
    step.stale = false;
}
