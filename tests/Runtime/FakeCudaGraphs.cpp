//===- FakeCudaGraphs.cpp - The fake driver: graphs and tensor maps -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCudaState.h"

namespace {

Result addNode(Graph graph, GraphNode *node, const GraphNode *after,
               size_t count, Work work) {
  for (size_t i = 0; i < count; ++i)
    work.node.after.push_back(after[i]->index);
  std::vector<size_t> sorted = work.node.after;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return kInvalidValue; // an edge twice
  graph->nodes.push_back(std::unique_ptr<GraphNodeHandle>(
      new GraphNodeHandle{graph, graph->works.size()}));
  graph->works.push_back(std::move(work));
  *node = graph->nodes.back().get();
  return kSuccess;
}

Result update(GraphExec exec, GraphNode node, Work work) {
  Work &old = exec->works[node->index];
  if (old.node.kind != work.node.kind)
    return kInvalidValue;
  work.node.after = old.node.after;
  work.node.cluster = old.node.cluster;
  old = std::move(work);
  return kSuccess;
}

} // namespace

extern "C" {

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

Result cuGraphCreate(Graph *graph, unsigned) {
  ENTER(cuGraphCreate);
  *graph = make(new GraphHandle(), state.live.graphs);
  return kSuccess;
}
Result cuGraphDestroy(Graph graph) {
  ENTER_ANYWAY(cuGraphDestroy);
  if (!drop(graph, state.live.graphs))
    return kInvalidHandle;
  delete graph;
  return failure;
}
Result cuGraphAddKernelNode_v2(GraphNode *node, Graph graph,
                               const GraphNode *after, size_t count,
                               const KernelNodeParams *p) {
  ENTER(cuGraphAddKernelNode_v2);
  return addNode(graph, node, after, count, kernelWork(*p));
}
Result cuGraphAddMemsetNode(GraphNode *node, Graph graph,
                            const GraphNode *after, size_t count,
                            const MemsetNodeParams *p, Context context) {
  ENTER(cuGraphAddMemsetNode);
  return addNode(graph, node, after, count, memsetWork(*p, context));
}
Result cuGraphAddMemcpyNode(GraphNode *node, Graph graph,
                            const GraphNode *after, size_t count,
                            const Memcpy3D *p, Context context) {
  ENTER(cuGraphAddMemcpyNode);
  return addNode(graph, node, after, count, copyWork(*p, context));
}
Result cuGraphAddEmptyNode(GraphNode *node, Graph graph, const GraphNode *after,
                           size_t count) {
  ENTER(cuGraphAddEmptyNode);
  Work work;
  work.node.kind = "empty";
  return addNode(graph, node, after, count, work);
}
Result cuGraphKernelNodeSetAttribute(GraphNode node, int attribute,
                                     const LaunchAttributeValue *value) {
  ENTER(cuGraphKernelNodeSetAttribute);
  if (attribute != kAttributeClusterDimension)
    return kInvalidValue;
  node->graph->works[node->index].node.cluster = {
      value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
  return kSuccess;
}
Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph,
                                   unsigned long long) {
  ENTER(cuGraphInstantiateWithFlags);
  *exec = make(new GraphExecHandle{graph->works}, state.live.execs);
  state.graph.clear();
  for (const Work &work : graph->works)
    state.graph.push_back(work.node);
  return kSuccess;
}
Result cuGraphExecDestroy(GraphExec exec) {
  ENTER_ANYWAY(cuGraphExecDestroy);
  if (!drop(exec, state.live.execs))
    return kInvalidHandle;
  delete exec;
  return failure;
}
Result cuGraphExecKernelNodeSetParams_v2(GraphExec exec, GraphNode node,
                                         const KernelNodeParams *p) {
  ENTER(cuGraphExecKernelNodeSetParams_v2);
  return update(exec, node, kernelWork(*p));
}
Result cuGraphExecMemsetNodeSetParams(GraphExec exec, GraphNode node,
                                      const MemsetNodeParams *p,
                                      Context context) {
  ENTER(cuGraphExecMemsetNodeSetParams);
  return update(exec, node, memsetWork(*p, context));
}
Result cuGraphExecMemcpyNodeSetParams(GraphExec exec, GraphNode node,
                                      const Memcpy3D *p, Context context) {
  ENTER(cuGraphExecMemcpyNodeSetParams);
  return update(exec, node, copyWork(*p, context));
}
/// Of the nodes that may run, the last one first: what dependencies do not
/// order comes in another order than the launch list's.
Result cuGraphLaunch(GraphExec exec, Stream stream) {
  ENTER(cuGraphLaunch);
  std::vector<bool> done(exec->works.size());
  for (size_t n = 0; n < exec->works.size(); ++n) {
    size_t next = exec->works.size();
    for (size_t i = 0; i < exec->works.size(); ++i) {
      const auto &after = exec->works[i].node.after;
      if (!done[i] && std::all_of(after.begin(), after.end(),
                                  [&](size_t j) { return done[j]; }))
        next = i;
    }
    done[next] = true;
    if (Result result = execute(exec->works[next], contextOf(stream)))
      return result;
  }
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

Result cuTensorMapEncodeTiled(TensorMapBits *bits, int elementType,
                              unsigned rank, void *address,
                              const uint64_t *sizes, const uint64_t *strides,
                              const unsigned *box,
                              const unsigned *elementStrides, int interleave,
                              int swizzle, int l2Promotion, int fill) {
  ENTER(cuTensorMapEncodeTiled);
  if (reinterpret_cast<uintptr_t>(bits) % 64 ||
      reinterpret_cast<uintptr_t>(address) % 16)
    return kInvalidValue;
  FakeTensorMap map{};
  map.address = reinterpret_cast<uint64_t>(address);
  map.elementType = static_cast<uint8_t>(elementType);
  map.rank = static_cast<uint8_t>(rank);
  map.interleave = static_cast<uint8_t>(interleave);
  map.swizzle = static_cast<uint8_t>(swizzle);
  map.l2Promotion = static_cast<uint8_t>(l2Promotion);
  map.fill = static_cast<uint8_t>(fill);
  for (unsigned i = 0; i < rank; ++i) {
    map.sizes[i] = sizes[i];
    if (i)
      map.strides[i - 1] = strides[i - 1];
    map.box[i] = static_cast<uint16_t>(box[i]);
    map.elementStrides[i] = static_cast<uint8_t>(elementStrides[i]);
  }
  std::memcpy(bits, &map, sizeof map);
  return kSuccess;
}
Result cuTensorMapReplaceAddress(TensorMapBits *bits, void *address) {
  ENTER(cuTensorMapReplaceAddress);
  FakeTensorMap map;
  std::memcpy(&map, bits, sizeof map);
  if (!map.rank || reinterpret_cast<uintptr_t>(address) % 16)
    return kInvalidValue; // was never encoded
  map.address = reinterpret_cast<uint64_t>(address);
  std::memcpy(bits, &map, sizeof map);
  return kSuccess;
}

} // extern "C"
