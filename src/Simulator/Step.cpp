//===- Step.cpp - The launch list of a bundle's target, simulated ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Simulator/Step.h"

#include "nova/Bundle/Bundle.h"
#include "nova/Bundle/TensorMapWords.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace nova;
using namespace nova::sim;
using namespace nova::bundle;

Expected<Step> Step::open(const std::string &dir, const Manifest &manifest,
                          uint32_t index) {
  std::vector<std::string> blobs(manifest.blobs.size());
  auto read = [&](uint32_t blob) -> Status {
    if (!blobs[blob].empty())
      return Status::ok();
    Expected<std::string> bytes = readBlob(dir, manifest.blobs[blob]);
    if (!bytes)
      return bytes.error();
    blobs[blob] = std::move(*bytes);
    return Status::ok();
  };
  const Target &target = manifest.targets[index];
  for (const bundle::Kernel &k : target.kernels)
    if (k.ptxBlob)
      if (Status s = read(*k.ptxBlob); !s)
        return s.error();
  for (const Constant &c : target.constants)
    if (Status s = read(c.blob); !s)
      return s.error();
  return make(manifest, index, blobs);
}

Expected<Step> Step::make(const Manifest &manifest, uint32_t index,
                          const std::vector<std::string> &blobs) {
  Step step;
  step.manifest = std::make_shared<const Manifest>(manifest);
  step.described = &step.manifest->targets[index];
  const Target &target = *step.described;
  for (const bundle::Kernel &k : target.kernels) {
    if (!k.ptxBlob)
      return Error{
          ErrorCode::Missing,
          "kernel '" + k.name + "' of target " + target.name +
              " has no PTX in the bundle: machine code is not simulated",
          "compile it again with novac, which puts PTX beside the "
          "machine code of every GPU target"};
    Expected<Kernel> kernel = Kernel::load(blobs[*k.ptxBlob], k.symbol, k.name);
    if (!kernel)
      return kernel.error();
    if (kernel->parameterCount() != k.params.size())
      return badInput("kernel '" + k.name + "': its PTX has " +
                      std::to_string(kernel->parameterCount()) +
                      " parameters, the manifest says " +
                      std::to_string(k.params.size()));
    step.kernels.push_back(std::move(*kernel));
  }
  for (const Constant &c : target.constants)
    step.constants.push_back(blobs[c.blob].substr(c.offset, c.size));
  return step;
}

Argument Step::argument(uint32_t launch, size_t position,
                        const std::vector<void *> &inputs,
                        const std::vector<void *> &outputs) {
  const LaunchArg &arg = described->launches[launch].args[position];
  if (const auto *map = std::get_if<bundle::TensorMap>(&arg)) {
    Argument of = std::visit(
        [&](const auto &memory) {
          return argument(launch, position, memory, inputs, outputs);
        },
        map->memory);
    TensorMap m;
    m.memory = std::move(*of.memory);
    m.offset = of.offset;
    // Through a map may be written what another argument says is a result.
    m.memory.writable = false;
    const std::vector<LaunchArg> &args = described->launches[launch].args;
    for (size_t k = 0; k < args.size(); ++k)
      if (!std::holds_alternative<bundle::TensorMap>(args[k]))
        if (Argument other = argument(launch, k, inputs, outputs);
            other.memory && other.memory->data == m.memory.data)
          m.memory.writable |= other.memory->writable;
    m.sizes = map->sizes;
    m.strides = map->strides;
    m.box = map->box;
    m.elementStrides = map->elementStrides;
    // Words that the manifest's reader has accepted.
    m.elementType = wordIndex(kMapElementTypes, map->elementType).value_or(0);
    m.interleave = wordIndex(kMapInterleaves, map->interleave).value_or(0);
    m.swizzle = wordIndex(kMapSwizzles, map->swizzle).value_or(0);
    m.fill = wordIndex(kMapFills, map->fill).value_or(0);
    Argument result;
    result.map = std::move(m);
    return result;
  }
  return argument(launch, position, arg, inputs, outputs);
}

Argument Step::argument(uint32_t launch, size_t position, const LaunchArg &arg,
                        const std::vector<void *> &inputs,
                        const std::vector<void *> &outputs) {
  Argument result;
  if (const auto *value = std::get_if<Immediate>(&arg)) {
    result.value.assign(reinterpret_cast<const char *>(&value->bits), 8);
    return result;
  }
  Memory memory;
  auto quoted = [](const TensorDesc &t) {
    return "'" + (t.path.empty() ? t.name : t.path) + "'";
  };
  if (const auto *b = std::get_if<BufferRef>(&arg)) {
    const ArenaBuffer &buffer = described->arena.buffers[b->buffer];
    memory.name = "arena buffer " + std::to_string(b->buffer);
    memory.data = arena.data() + buffer.offset;
    memory.written = arenaWritten.data() + buffer.offset;
    memory.size = buffer.size;
    result.offset = b->offset;
  } else if (const auto *i = std::get_if<InputRef>(&arg)) {
    memory.name = "input " + quoted(manifest->inputs[i->input]);
    memory.data = static_cast<uint8_t *>(inputs[i->input]);
    memory.size = manifest->inputs[i->input].bytes;
    result.offset = i->offset;
  } else if (const auto *o = std::get_if<OutputRef>(&arg)) {
    const OutputDesc &output = manifest->outputs[o->output];
    memory.name = "output " + quoted(output);
    memory.data = static_cast<uint8_t *>(
        output.updates ? inputs[*output.updates] : outputs[o->output]);
    memory.written = output.updates ? nullptr : outputWritten[o->output].data();
    memory.size = output.bytes;
    result.offset = o->offset;
  } else if (const auto *c = std::get_if<ConstantRef>(&arg)) {
    memory.name = "constant " + std::to_string(c->constant);
    memory.data = reinterpret_cast<uint8_t *>(constants[c->constant].data());
    memory.size = constants[c->constant].size();
    memory.writable = false;
    result.offset = c->offset;
  }
  if (described->launches[launch].kernel)
    memory.writable &= writesArgument(*manifest, *described, launch, position);
  result.memory = std::move(memory);
  return result;
}

/// A memset or a copy; an error where it leaves its memory.
Expected<bool> Step::transfer(uint32_t launch,
                              const std::vector<void *> &inputs,
                              const std::vector<void *> &outputs,
                              StepOutcome &outcome) {
  const Launch &l = described->launches[launch];
  Argument to = argument(launch, 0, inputs, outputs);
  uint64_t count = std::get<Immediate>(l.args[2]).bits;
  auto fault = [&](FaultKind kind, const Memory &m, const std::string &what) {
    Fault f;
    f.kind = kind;
    f.kernel = l.kind == LaunchKind::Memset ? "memset" : "copy";
    f.what = "launch " + std::to_string(launch) + " " + what + " of " + m.name;
    f.buffer = m.name;
    outcome.fault = f;
    return false;
  };
  if (!to.memory->writable || to.offset + count > to.memory->size)
    return fault(FaultKind::OutOfBounds, *to.memory,
                 "writes " + std::to_string(count) + " bytes at offset " +
                     std::to_string(to.offset));
  uint8_t *place = to.memory->data + to.offset;
  if (l.kind == LaunchKind::Memset) {
    std::memset(place,
                static_cast<int>(std::get<Immediate>(l.args[1]).bits & 255),
                count);
  } else {
    Argument from = argument(launch, 1, inputs, outputs);
    if (from.offset + count > from.memory->size)
      return fault(FaultKind::OutOfBounds, *from.memory,
                   "reads " + std::to_string(count) + " bytes at offset " +
                       std::to_string(from.offset));
    if (const uint8_t *written = from.memory->written)
      for (uint64_t k = 0; k < count; ++k)
        if (!written[from.offset + k])
          return fault(FaultKind::Uninitialised, *from.memory,
                       "reads offset " + std::to_string(from.offset + k));
    std::memmove(place, from.memory->data + from.offset, count);
  }
  if (to.memory->written)
    std::memset(to.memory->written + to.offset, 1, count);
  return true;
}

/// Registers are given to warps in pieces of 8 a lane; a block whose warps want
/// more than a multiprocessor has does not start.
static std::optional<Fault> checkRegisters(const bundle::Kernel &k,
                                           const target::Device *device) {
  uint64_t warps = (k.block[0] * k.block[1] * k.block[2] + 31) / 32;
  uint64_t wanted = warps * 32 * ((k.registers + 7) / 8 * 8);
  if (!device || !device->registersPerSm ||
      wanted <= static_cast<uint64_t>(device->registersPerSm))
    return std::nullopt;
  Fault fault;
  fault.kind = FaultKind::Limit;
  fault.kernel = k.name;
  fault.what = std::to_string(wanted) +
               " registers for a block, a multiprocessor of " +
               std::string(device->name) + " has " +
               std::to_string(device->registersPerSm);
  return fault;
}

Expected<StepOutcome> Step::run(const std::vector<void *> &inputs,
                                const std::vector<void *> &outputs,
                                const Options &options) {
  using Clock = std::chrono::steady_clock;
  auto seconds = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  auto start = Clock::now();
  // What nobody wrote should not look like a result.
  arena.assign(described->arena.size, 0xFF);
  arenaWritten.assign(described->arena.size, 0);
  outputWritten.resize(manifest->outputs.size());
  for (size_t k = 0; k < outputWritten.size(); ++k)
    outputWritten[k].assign(
        manifest->outputs[k].updates ? 0 : manifest->outputs[k].bytes, 0);

  StepOutcome outcome;
  for (uint32_t index = 0; index < described->launches.size(); ++index) {
    const Launch &l = described->launches[index];
    for (const ArenaBuffer &b : described->arena.buffers)
      if (b.first == index && !b.alias)
        std::memset(arenaWritten.data() + b.offset, 0, b.size);
    if (l.kind != LaunchKind::Kernel) {
      if (Expected<bool> done = transfer(index, inputs, outputs, outcome);
          !done)
        return done.error();
      if (outcome.fault)
        break;
      continue;
    }
    const bundle::Kernel &k = described->kernels[*l.kernel];
    Shape shape;
    for (unsigned d = 0; d < 3; ++d) {
      shape.grid[d] = static_cast<uint32_t>(k.grid[d]);
      shape.block[d] = static_cast<uint32_t>(k.block[d]);
      shape.cluster[d] = static_cast<uint32_t>(k.cluster[d]);
    }
    shape.dynamicShared = k.dynamicSharedBytes;
    shape.registers = static_cast<uint32_t>(k.registers);
    if (outcome.fault = checkRegisters(k, options.device); outcome.fault)
      break;
    std::vector<Argument> arguments;
    for (size_t a = 0; a < l.args.size(); ++a)
      arguments.push_back(argument(index, a, inputs, outputs));
    auto began = Clock::now();
    Expected<Outcome> one =
        kernels[*l.kernel].launch(shape, arguments, options);
    if (!one)
      return one.error();
    outcome.launches.push_back({index, k.name, one->counts, seconds(began)});
    outcome.counts += one->counts;
    if (one->fault) {
      outcome.fault = std::move(one->fault);
      outcome.fault->what += " (launch " + std::to_string(index) + ")";
      break;
    }
  }
  outcome.seconds = seconds(start);
  return outcome;
}
