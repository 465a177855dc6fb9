//===- Instance.cpp - A program with an arena, bound to buffers -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Instance.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace nova;
using namespace nova::rt;
using namespace nova::bundle;

namespace {

Error usage(std::string message, std::string hint = {}) {
  return {ErrorCode::Usage, std::move(message), std::move(hint)};
}

std::string addressText(const void *address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return text;
}

} // namespace

Instance::Instance(const Manifest &manifest) : manifest(manifest) {
  for (uint32_t i = 0; i < manifest.inputs.size(); ++i) {
    Binding &b = bindings.emplace_back();
    b.tensor = &manifest.inputs[i];
    b.isInput = true;
    b.index = i;
    if (b.tensor->advance) // checked when the manifest was read
      scalars.push_back({b.tensor, i, *parseHexFloat(*b.tensor->advance)});
  }
  for (uint32_t i = 0; i < manifest.outputs.size(); ++i) {
    Binding &b = bindings.emplace_back();
    b.tensor = &manifest.outputs[i];
    b.index = i;
    b.written = true;
    if (const auto &updates = manifest.outputs[i].updates) {
      b.owned = false;
      bindings[*updates].written = true;
    }
  }
  addresses.assign(bindings.size(), nullptr);
  inSlots = addresses;
  for (const Binding &b : bindings) {
    rules.push_back({b.tensor->alignment, 0, b.tensor->bytes != 0, false});
    unbound += b.owned && b.tensor->bytes;
  }
}

size_t Instance::addSlot(const LaunchArg &arg) {
  size_t slot = slots.size();
  slots.push_back(nullptr);
  auto use = [&](size_t binding, uint64_t offset) {
    bindings[binding].uses.push_back({slot, offset});
    ++rules[binding].uses;
  };
  if (const auto *i = std::get_if<InputRef>(&arg)) {
    use(i->input, i->offset);
  } else if (const auto *o = std::get_if<OutputRef>(&arg)) {
    const auto &updates = manifest.outputs[o->output].updates;
    use(updates ? *updates : manifest.inputs.size() + o->output, o->offset);
  }
  return slot;
}

std::string Instance::nameOf(const Binding &b) {
  return std::string(b.isInput ? "input " : "output ") +
         std::to_string(b.index) + " (\"" + b.tensor->name + "\")";
}

Status Instance::bind(size_t at, void *address) {
  Rule &rule = rules[at];
  if (rule.bound && addresses[at] == address)
    return Status::ok();
  if ((!address && rule.sized) ||
      reinterpret_cast<uintptr_t>(address) % rule.alignment)
    return refuse(at, address);
  if (!rule.bound && rule.sized)
    --unbound;
  addresses[at] = address;
  rule.bound = true;
  bindingsChanged = true;
  ++changes;
  return Status::ok();
}

Error Instance::refuse(size_t at, const void *address) const {
  const Binding &b = bindings[at];
  if (!address)
    return usage(nameOf(b) + ": a null address, expected " +
                     std::to_string(b.tensor->bytes) + " bytes",
                 "give it memory");
  return usage(nameOf(b) + ": address " + addressText(address) +
                   ", expected a multiple of " +
                   std::to_string(b.tensor->alignment) + " bytes",
               "allocate it with aligned_alloc, posix_memalign or, for a "
               "GPU, cuMemAlloc");
}

void Instance::fillSlots() {
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (inSlots[i] == addresses[i])
      continue;
    for (const Binding::Use &use : bindings[i].uses) {
      slots[use.slot] = static_cast<char *>(addresses[i]) + use.offset;
      slotChanged(use.slot);
    }
    inSlots[i] = addresses[i];
  }
}

Status Instance::bindInput(uint32_t index, void *address) {
  if (index >= manifest.inputs.size())
    return usage("input " + std::to_string(index) + ", the bundle has " +
                 std::to_string(manifest.inputs.size()));
  std::lock_guard<std::mutex> lock(mutex);
  return bind(index, address);
}

Status Instance::bindOutput(uint32_t index, void *address) {
  if (index >= manifest.outputs.size())
    return usage("output " + std::to_string(index) + ", the bundle has " +
                 std::to_string(manifest.outputs.size()));
  const OutputDesc &output = manifest.outputs[index];
  if (output.updates)
    return usage("output " + std::to_string(index) + " (\"" + output.name +
                     "\") has no buffer of its own, it is written into that "
                     "of input " +
                     std::to_string(*output.updates),
                 "bind that input");
  std::lock_guard<std::mutex> lock(mutex);
  return bind(manifest.inputs.size() + index, address);
}

Status Instance::bindAll(void *const *inputs, size_t inputCount,
                         void *const *outputs, size_t outputCount) {
  size_t hasInputs = manifest.inputs.size();
  size_t hasOutputs = manifest.outputs.size();
  if (inputCount != hasInputs || outputCount != hasOutputs)
    return usage(std::to_string(inputCount) + " inputs and " +
                 std::to_string(outputCount) + " outputs, the bundle has " +
                 std::to_string(hasInputs) + " and " +
                 std::to_string(hasOutputs));
  if ((!inputs && inputCount) || (!outputs && outputCount))
    return usage("a null array of addresses");
  std::lock_guard<std::mutex> lock(mutex);
  auto same = [&](void *const *given, size_t first, size_t count) {
    return count == 0 || std::memcmp(given, addresses.data() + first,
                                     count * sizeof(void *)) == 0;
  };
  // The addresses as they were given: those of updates too, which go nowhere.
  if (unbound == 0 && same(inputs, 0, hasInputs) &&
      same(outputs, hasInputs, hasOutputs))
    return Status::ok();
  for (size_t i = 0; i < hasInputs; ++i)
    if (Status s = bind(i, inputs[i]); !s)
      return s;
  for (size_t i = 0; i < hasOutputs; ++i) {
    if (!bindings[hasInputs + i].owned)
      addresses[hasInputs + i] = outputs[i]; // which goes nowhere
    else if (Status s = bind(hasInputs + i, outputs[i]); !s)
      return s;
  }
  return Status::ok();
}

/// Everything is bound, and what is written overlaps nothing else: kernels are
/// compiled for that.
Status Instance::checkBindings() {
  if (ranges.empty())
    for (uint32_t i = 0; i < bindings.size(); ++i)
      if (const Binding &b = bindings[i]; b.owned && b.tensor->bytes)
        ranges.push_back({0, 0, b.tensor->bytes, i, b.written});
  for (Range &range : ranges) {
    if (!rules[range.binding].bound) {
      const Binding &b = bindings[range.binding];
      return usage(nameOf(b) + " is not bound",
                   b.isInput ? "call nova_rt_instance_bind_input"
                             : "call nova_rt_instance_bind_output");
    }
    range.begin = reinterpret_cast<uintptr_t>(addresses[range.binding]);
    range.end = range.begin + range.bytes;
  }
  // Equal addresses in the order of the signature, for a stable message. Other
  // buffers often lie in the order of those before.
  auto before = [](const Range &a, const Range &b) {
    return a.begin != b.begin ? a.begin < b.begin : a.binding < b.binding;
  };
  if (!std::is_sorted(ranges.begin(), ranges.end(), before))
    std::sort(ranges.begin(), ranges.end(), before);
  // Of the ranges so far: the one that reaches farthest, and the written one
  // that does.
  const Range *farthest = nullptr, *farthestWritten = nullptr;
  for (const Range &range : ranges) {
    const Range *other = range.written ? farthest : farthestWritten;
    if (other && range.begin < other->end)
      return usage("the buffers of " + nameOf(bindings[other->binding]) +
                       " and " + nameOf(bindings[range.binding]) +
                       " overlap, and one of them is written",
                   "give each its own memory");
    if (!farthest || range.end > farthest->end)
      farthest = &range;
    if (range.written && (!farthestWritten || range.end > farthestWritten->end))
      farthestWritten = &range;
  }
  return Status::ok();
}

Status Instance::launch(void *stream) {
  std::lock_guard<std::mutex> lock(mutex);
  if (bindingsChanged) {
    if (!bindingsKnown())
      if (Status s = checkBindings(); !s)
        return s;
    bindingsChanged = false;
  }
  Status s = runStep(stream);
  done.launches += bool(s);
  return s;
}

Status Instance::advance(void *stream) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Scalar &scalar : scalars)
    if (!rules[scalar.input].bound)
      return usage(nameOf(bindings[scalar.input]) + " is not bound");
  return scalars.empty() ? Status::ok() : runAdvance(stream);
}

InstanceCounts Instance::counts() const {
  std::lock_guard<std::mutex> lock(mutex);
  return done;
}
