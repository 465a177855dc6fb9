//===- CudaInstance.cpp - A step on a GPU: set-up, launch, advance --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaInstance.h"

#include <algorithm>

using namespace nova;
using namespace nova::rt;
using namespace nova::rt::cuda;
using namespace nova::bundle;

namespace {

constexpr unsigned kEventDisableTiming = 2;

DevicePtr devicePtr(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

/// Where an argument points to, to tell that two overlap: arena addresses, or
/// offsets within one tensor of the caller.
struct Place {
  size_t space; ///< The kind of memory.
  uint64_t tensor;
  uint64_t offset;
};

} // namespace

CudaInstance::CudaInstance(std::shared_ptr<const CudaProgram> given,
                           LaunchMode mode)
    : Instance(given->bundle->manifest), program(std::move(given)),
      launchMode(mode) {}

Expected<std::unique_ptr<Instance>>
CudaInstance::create(std::shared_ptr<const CudaProgram> program,
                     LaunchMode mode) {
  std::unique_ptr<CudaInstance> instance(
      new CudaInstance(std::move(program), mode));
  if (Status s = instance->initialise(); !s)
    return s.error();
  return std::unique_ptr<Instance>(std::move(instance));
}

Status CudaInstance::initialise() {
  Current current(*program->context);
  if (!current)
    return current.error();
  if (program->target->arena.size) {
    Expected<DeviceMemory> memory = DeviceMemory::allocate(
        program->context, program->target->arena.size, "the arena");
    if (!memory)
      return memory.error();
    arena = std::move(*memory);
  }
  if (Status s = resolve(); !s)
    return s;
  return createAdvance();
}

CudaInstance::~CudaInstance() {
  Current current(*program->context);
  if (!current)
    return;
  // The graph may be destroyed while it runs; the CPU's part of advance() reads
  // this instance.
  if (advances.done) {
    driver().api().eventSynchronize(advances.done);
    driver().api().eventDestroy(advances.done);
  }
  if (advances.values)
    driver().api().memFreeHost(advances.values);
  dropGraph();
}

std::string CudaInstance::nameOf(size_t index) const {
  const Launch &launch = program->target->launches[index];
  std::string kind =
      launch.kind == LaunchKind::Memset ? "memset"
      : launch.kind == LaunchKind::Copy
          ? "copy"
          : "kernel \"" + program->target->kernels[*launch.kernel].name + "\"";
  return "launch " + std::to_string(index) + " (" + kind + ")";
}

//===----------------------------------------------------------------------===//
// Set-up
//===----------------------------------------------------------------------===//

Status CudaInstance::resolve() {
  size_t total = 0;
  for (const Launch &launch : program->target->launches)
    total += launch.args.size();
  // Kernel parameters are addresses of slots: neither may move.
  slots.reserve(total);
  slotOwner.reserve(total);
  for (const Launch &launch : program->target->launches)
    if (Status s = resolveLaunch(launch); !s)
      return s;
  slotMaps.resize(slots.size());
  for (MapArgument &map : maps) {
    slotMaps[map.slot] = &map;
    staleMaps.push_back(&map);
  }
  // No more of them than slots: a table is the slots in a row that it holds.
  parameters.reserve(slots.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Launch &launch = program->target->launches[i];
    if (launch.kind != LaunchKind::Kernel)
      continue;
    steps[i].kernel.kernelParams = parameters.data() + parameters.size();
    size_t slot = steps[i].first;
    for (const Param &param : program->target->kernels[*launch.kernel].params) {
      MapArgument *map = slotMaps[slot];
      parameters.push_back(map ? map->map.value() : &slots[slot]);
      slot += param.arguments();
    }
  }
  return Status::ok();
}

Status CudaInstance::resolveLaunch(const Launch &launch) {
  Step step;
  step.kind = launch.kind;
  step.first = slots.size();
  for (const LaunchArg &arg : launch.args)
    resolveArgument(arg);
  slotOwner.resize(slots.size(), static_cast<uint32_t>(steps.size()));
  if (launch.kind == LaunchKind::Kernel) {
    const Kernel &k = program->target->kernels[*launch.kernel];
    auto narrow = [](uint64_t v) { return static_cast<unsigned>(v); };
    step.kernel.func = program->functions[*launch.kernel];
    // All were compared with the limits of the device, which are ints.
    step.kernel.gridDimX = narrow(k.grid[0]);
    step.kernel.gridDimY = narrow(k.grid[1]);
    step.kernel.gridDimZ = narrow(k.grid[2]);
    step.kernel.blockDimX = narrow(k.block[0]);
    step.kernel.blockDimY = narrow(k.block[1]);
    step.kernel.blockDimZ = narrow(k.block[2]);
    step.kernel.sharedMemBytes = narrow(k.dynamicSharedBytes);
    step.hasCluster = k.cluster[0] * k.cluster[1] * k.cluster[2] > 1;
    step.cluster.clusterDim = {narrow(k.cluster[0]), narrow(k.cluster[1]),
                               narrow(k.cluster[2])};
  } else {
    step.count = std::get<Immediate>(launch.args[2]).bits;
    if (launch.kind == LaunchKind::Memset)
      step.value =
          static_cast<unsigned char>(std::get<Immediate>(launch.args[1]).bits);
  }
  if (launch.kind == LaunchKind::Copy) {
    auto place = [&](const LaunchArg &arg) -> Place {
      if (const auto *i = std::get_if<InputRef>(&arg))
        return {1, i->input, i->offset};
      if (const auto *o = std::get_if<OutputRef>(&arg)) {
        const OutputDesc &out = program->bundle->manifest.outputs[o->output];
        return out.updates ? Place{1, *out.updates, o->offset}
                           : Place{2, o->output, o->offset};
      }
      size_t slot = step.first + (&arg == &launch.args[1]);
      return {0, 0, devicePtr(slots[slot])};
    };
    Place to = place(launch.args[0]), from = place(launch.args[1]);
    uint64_t apart = to.offset > from.offset ? to.offset - from.offset
                                             : from.offset - to.offset;
    if (to.space == from.space && to.tensor == from.tensor &&
        apart < step.count)
      return badInput("launch " + std::to_string(steps.size()) + " of target " +
                          describe(*program->target) + " copies " +
                          std::to_string(step.count) +
                          " bytes within memory that overlaps, expected " +
                          std::to_string(step.count) +
                          " bytes between source "
                          "and destination, got " +
                          std::to_string(apart),
                      "a GPU copies in no order: compile the graph again");
  }
  steps.push_back(step);
  return Status::ok();
}

void CudaInstance::resolveArgument(const LaunchArg &arg) {
  if (const auto *map = std::get_if<TensorMap>(&arg))
    return resolveTensorMap(*map);
  size_t slot = addSlot(arg);
  if (const auto *b = std::get_if<BufferRef>(&arg)) {
    slots[slot] = arena.get() +
                  program->target->arena.buffers[b->buffer].offset + b->offset;
  } else if (const auto *c = std::get_if<ConstantRef>(&arg)) {
    slots[slot] =
        reinterpret_cast<void *>(program->constants[c->constant] + c->offset);
  } else if (const auto *value = std::get_if<Immediate>(&arg)) {
    // By value: a parameter of n bytes is the first n of the slot.
    slots[slot] = reinterpret_cast<void *>(value->bits);
  }
}

void CudaInstance::resolveTensorMap(const TensorMap &map) {
  // Slots of this launch have no owner yet.
  size_t slot = slots.size();
  maps.emplace_back(slot, slot - slotOwner.size(), map);
  resolveArgument(std::visit(
      [](const auto &memory) { return LaunchArg(memory); }, map.memory));
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

/// Late, like the updates of the graph: an address that changes twice between
/// two launches costs once. One that fails stays stale.
Status CudaInstance::fillArguments() {
  fillSlots();
  for (; !staleMaps.empty(); staleMaps.pop_back()) {
    MapArgument &map = *staleMaps.back();
    void *address = slots[map.slot];
    if (Result result = map.map.point(driver(), address))
      return map.map.error(driver(), result, address,
                           "argument " + std::to_string(map.number) + " of " +
                               nameOf(slotOwner[map.slot]));
    map.stale = false;
  }
  return Status::ok();
}

/// A stream of another context would fail with no word of why.
Status CudaInstance::checkStream(Stream stream) {
  constexpr uintptr_t lastSpecial = 2; // the default and per-thread streams
  if (stream == lastStream || devicePtr(stream) <= lastSpecial)
    return Status::ok();
  Context of = nullptr;
  NOVA_CUDA_TRY(driver(), streamGetCtx, "the stream of the caller", stream,
                &of);
  if (of != program->context->handle)
    return Error{ErrorCode::Usage,
                 "the stream is of another CUDA context than the program, "
                 "which was loaded on " +
                     program->where(),
                 "launch on a stream of that context, or load a program for "
                 "the context of the stream"};
  lastStream = stream;
  return Status::ok();
}

Status CudaInstance::runStep(void *given) {
  auto *stream = static_cast<Stream>(given);
  Current current(*program->context);
  if (!current)
    return current.error();
  if (Status s = checkStream(stream); !s)
    return s;
  if (launchMode == LaunchMode::Plain) {
    Status s = fillArguments();
    return s ? launchPlain(stream) : s;
  }
  // After a failed update a graph is half old: the next launch builds anew.
  if (Status s = chooseExecutable(stream); !s) {
    dropGraph();
    return s;
  }
  NOVA_CUDA_TRY(driver(), graphLaunch,
                "step \"" + program->bundle->manifest.name + "\" on " +
                    program->where(),
                executables[active].exec, stream);
  launchedOn = stream;
  return Status::ok();
}

Status CudaInstance::launchPlain(Stream stream) {
  for (size_t i = 0; i < steps.size(); ++i)
    if (Status s = launchOne(steps[i], i, stream); !s)
      return s;
  return Status::ok();
}

Status CudaInstance::launchOne(const Step &step, size_t index, Stream stream) {
  const KernelNodeParams &k = step.kernel;
  void *const *args = slots.data() + step.first;
  if (step.kind == LaunchKind::Kernel && step.hasCluster) {
    LaunchAttribute attribute{};
    attribute.id = kAttributeClusterDimension;
    attribute.value = step.cluster;
    LaunchConfig config{
        k.gridDimX,  k.gridDimY,       k.gridDimZ, k.blockDimX, k.blockDimY,
        k.blockDimZ, k.sharedMemBytes, stream,     &attribute,  1};
    NOVA_CUDA_TRY(driver(), launchKernelEx, nameOf(index), &config, k.func,
                  k.kernelParams, nullptr);
  } else if (step.kind == LaunchKind::Kernel) {
    NOVA_CUDA_TRY(driver(), launchKernel, nameOf(index), k.func, k.gridDimX,
                  k.gridDimY, k.gridDimZ, k.blockDimX, k.blockDimY, k.blockDimZ,
                  k.sharedMemBytes, stream, k.kernelParams, nullptr);
  } else if (step.count && step.kind == LaunchKind::Memset) {
    NOVA_CUDA_TRY(driver(), memsetD8Async, nameOf(index), devicePtr(args[0]),
                  step.value, step.count, stream);
  } else if (step.count) {
    NOVA_CUDA_TRY(driver(), memcpyDtoDAsync, nameOf(index), devicePtr(args[0]),
                  devicePtr(args[1]), step.count, stream);
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Advance
//===----------------------------------------------------------------------===//

Status CudaInstance::createAdvance() {
  if (advancing().empty())
    return Status::ok();
  for (const Scalar &scalar : advancing())
    advances.elements.push_back({*dtypeOf(scalar.tensor->dtype), scalar.by});
  void *pinned = nullptr;
  NOVA_CUDA_TRY(driver(), memHostAlloc, "scalars that advance", &pinned,
                advances.elements.size() * sizeof(uint64_t), 0);
  advances.values = static_cast<uint64_t *>(pinned);
  NOVA_CUDA_TRY(driver(), eventCreate, "scalars that advance", &advances.done,
                kEventDisableTiming);
  return Status::ok();
}

void CudaInstance::Advance::onHost(void *self) {
  auto *advance = static_cast<Advance *>(self);
  for (size_t i = 0; i < advance->elements.size(); ++i)
    advanceElement(advance->elements[i].dtype, &advance->values[i],
                   advance->elements[i].by);
}

Status CudaInstance::runAdvance(void *given) {
  auto *stream = static_cast<Stream>(given);
  Current current(*program->context);
  if (!current)
    return current.error();
  if (Status s = checkStream(stream); !s)
    return s;
  const std::vector<Scalar> &scalars = advancing();
  auto what = [&](const Scalar &s) {
    return "input " + std::to_string(s.input) + " (\"" + s.tensor->name +
           "\") advances";
  };
  for (size_t i = 0; i < scalars.size(); ++i)
    NOVA_CUDA_TRY(driver(), memcpyDtoHAsync, what(scalars[i]),
                  &advances.values[i],
                  devicePtr(inputAddress(scalars[i].input)),
                  scalars[i].tensor->bytes, stream);
  NOVA_CUDA_TRY(driver(), launchHostFunc, "scalars advance", stream,
                Advance::onHost, &advances);
  for (size_t i = 0; i < scalars.size(); ++i)
    NOVA_CUDA_TRY(driver(), memcpyHtoDAsync, what(scalars[i]),
                  devicePtr(inputAddress(scalars[i].input)),
                  &advances.values[i], scalars[i].tensor->bytes, stream);
  NOVA_CUDA_TRY(driver(), eventRecord, "scalars advance", advances.done,
                stream);
  return Status::ok();
}
