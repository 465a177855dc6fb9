//===- Inspect.cpp - novac inspect ----------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ManifestText.h"
#include "Verbs.h"
#include "nova/Bundle/Bundle.h"
#include "nova/Support/File.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace nova;
using namespace nova::driver;
using namespace nova::bundle;

/// How many kernels the summary lists.
static constexpr size_t kShownKernels = 12;

static std::string text(const std::array<uint64_t, 3> &sizes) {
  return llvm::formatv("{0} x {1} x {2}", sizes[0], sizes[1], sizes[2]).str();
}

/// "4 parameters, 2 states": how many tensors of each role, in order of
/// appearance.
template <typename Tensors>
static std::string countRoles(const Tensors &tensors, uint64_t &bytes) {
  std::vector<std::pair<std::string, size_t>> counts;
  bytes = 0;
  for (const auto &tensor : tensors) {
    bytes += tensor.bytes;
    auto it = std::find_if(counts.begin(), counts.end(), [&](const auto &c) {
      return c.first == tensor.role;
    });
    if (it == counts.end())
      counts.emplace_back(tensor.role, 1);
    else
      ++it->second;
  }
  std::string out;
  for (const auto &[role, count] : counts)
    out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + role;
  return out.empty() ? "none" : out;
}

static void printSummary(const Manifest &manifest) {
  llvm::raw_ostream &os = llvm::outs();
  uint64_t bytes = 0;
  os << "name      " << manifest.name << "\n"
     << "graph     " << manifest.graphDigest << "\n"
     << "made by   novac " << manifest.producer.novac << ", LLVM "
     << manifest.producer.llvm
     << (manifest.producer.ptxas.empty() ? ""
                                         : ", ptxas " + manifest.producer.ptxas)
     << ": " << text(manifest.producer.options) << "\n"
     << "numerics  " << manifest.numerics.matmul << " contractions"
     << (manifest.numerics.deterministic ? ", deterministic" : "") << "\n";
  std::string roles = countRoles(manifest.inputs, bytes);
  os << "inputs    " << manifest.inputs.size() << " (" << roles << "), "
     << bytesText(bytes) << "\n";
  roles = countRoles(manifest.outputs, bytes);
  os << "outputs   " << manifest.outputs.size() << " (" << roles << ")\n";
  bytes = 0;
  for (const Blob &blob : manifest.blobs)
    bytes += blob.size;
  os << "blobs     " << manifest.blobs.size() << ", " << bytesText(bytes)
     << "\n";
  os << "buckets   " << manifest.buckets.size() << " of gradients\n";
}

static void printTarget(const Target &target) {
  llvm::raw_ostream &os = llvm::outs();
  std::vector<size_t> launches(target.kernels.size(), 0);
  for (const Launch &launch : target.launches)
    if (launch.kernel)
      ++launches[*launch.kernel];
  uint64_t flops = 0, moved = 0;
  for (size_t k = 0; k < target.kernels.size(); ++k) {
    flops += target.kernels[k].flops * launches[k];
    moved += target.kernels[k].bytes * launches[k];
  }
  const Arena &arena = target.arena;
  double over = arena.lowerBound
                    ? (double(arena.size) / double(arena.lowerBound) - 1) * 100
                    : 0;
  os << "\ntarget " << target.name << " (scheduled for " << target.device
     << ")\n"
     << "  launches  " << target.launches.size() << ", of "
     << target.kernels.size() << " kernels\n"
     << "  work      " << llvm::format("%.3g", double(flops)) << " FLOP, "
     << bytesText(moved) << " moved at least\n"
     << "  arena     " << bytesText(arena.size) << " in "
     << arena.buffers.size() << " buffers, lower bound "
     << bytesText(arena.lowerBound) << llvm::format(" (+%.1f%%)\n", over);

  std::vector<size_t> order(target.kernels.size());
  std::iota(order.begin(), order.end(), 0);
  auto work = [&](size_t k) {
    const Kernel &kernel = target.kernels[k];
    return std::pair(kernel.flops * launches[k], kernel.bytes * launches[k]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return work(a) > work(b); });
  if (order.empty())
    return;
  os << "\n  kernel                            launches  MFLOP/launch  "
        "MB/launch  grid points  tile\n";
  for (size_t i = 0; i < std::min(order.size(), kShownKernels); ++i) {
    const Kernel &kernel = target.kernels[order[i]];
    auto tile = kernel.schedule.find("tile");
    os << "  " << llvm::left_justify(kernel.name, 34)
       << llvm::format("%8d  %12.3f  %9.3f  %11d  ", int(launches[order[i]]),
                       double(kernel.flops) / 1e6, double(kernel.bytes) / 1e6,
                       int(kernel.grid[0] * kernel.grid[1] * kernel.grid[2]))
       << (tile == kernel.schedule.end() ? "-" : text(tile->second)) << "\n";
  }
  if (order.size() > kShownKernels)
    os << "  and " << order.size() - kShownKernels
       << " more (by FLOPs, then bytes; --kernel NAME shows one)\n";
}

static std::string text(const MemoryRef &memory, const Manifest &manifest) {
  struct Print {
    const Manifest &manifest;
    std::string at(std::string what, uint64_t offset) {
      return offset ? what + "+" + std::to_string(offset) : what;
    }
    std::string operator()(const BufferRef &m) {
      return at("buffer " + std::to_string(m.buffer), m.offset);
    }
    std::string operator()(const InputRef &m) {
      return at("input " + manifest.inputs[m.input].name, m.offset);
    }
    std::string operator()(const OutputRef &m) {
      return at("output " + std::to_string(m.output), m.offset);
    }
    std::string operator()(const ConstantRef &m) {
      return at("constant " + std::to_string(m.constant), m.offset);
    }
  };
  return std::visit(Print{manifest}, memory);
}

static std::string text(const LaunchArg &arg, const Manifest &manifest) {
  if (const auto *immediate = std::get_if<Immediate>(&arg))
    return immediate->type + " " + std::to_string(immediate->bits);
  if (const auto *map = std::get_if<TensorMap>(&arg))
    return "map of " + text(map->memory, manifest);
  MemoryRef memory;
  std::visit(
      [&](const auto &value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_constructible_v<MemoryRef, Value>)
          memory = value;
      },
      arg);
  return text(memory, manifest);
}

static void printKernel(const Manifest &manifest, const Target &target,
                        size_t index) {
  llvm::raw_ostream &os = llvm::outs();
  const Kernel &kernel = target.kernels[index];
  os << "kernel    " << kernel.name << " (target " << target.name << ")\n"
     << "symbol    " << kernel.symbol << " in "
     << manifest.blobs[kernel.blob].digest << "\n"
     << "grid      " << text(kernel.grid) << ", block " << text(kernel.block)
     << ", cluster " << text(kernel.cluster) << "\n"
     << "schedule  ";
  Attributes schedule = kernel.schedule;
  schedule.erase("candidates"), schedule.erase("dropped");
  os << text(schedule) << "\n" << candidatesText(kernel.schedule, "          ");
  if (target.name != "host")
    os << "uses      " << kernel.registers << " registers, "
       << (kernel.spillBytes
               ? std::to_string(kernel.spillBytes) + " bytes spilled"
               : "none spilled")
       << "; shared memory: " << kernel.staticSharedBytes << " bytes static, "
       << kernel.dynamicSharedBytes << " dynamic\n";
  os << "work      " << kernel.flops << " FLOP, " << kernel.bytes
     << " bytes per launch\n"
     << "predicted " << kernel.predictedNs << " ns\n"
     << "params    " << kernel.params.size() << "\n";
  for (size_t l = 0; l < target.launches.size(); ++l) {
    const Launch &launch = target.launches[l];
    if (launch.kernel != index)
      continue;
    os << "launch " << l << ": " << llvm::join(launch.nodes, " ") << "\n";
    for (const LaunchArg &arg : launch.args)
      os << "    " << text(arg, manifest) << "\n";
  }
}

static Status printKernels(const Manifest &manifest, const std::string &name) {
  bool found = false;
  for (const Target &target : manifest.targets)
    for (size_t k = 0; k < target.kernels.size(); ++k) {
      if (!llvm::StringRef(target.kernels[k].name).starts_with(name))
        continue;
      if (found)
        llvm::outs() << "\n";
      found = true;
      printKernel(manifest, target, k);
    }
  if (found)
    return Status::ok();
  return Error{ErrorCode::Usage,
               "no kernel of '" + manifest.name +
                   "' has a name that begins "
                   "with '" +
                   name + "'",
               "`novac inspect BUNDLE` lists them"};
}

Status driver::inspectVerb(const Options &options) {
  const std::string &dir = options.operands[0];
  Expected<Manifest> manifest = openManifest(dir);
  if (!manifest)
    return manifest.error();
  if (options.json) {
    if (!options.kernel.empty())
      return Error{ErrorCode::Usage,
                   "--json prints the whole manifest, --kernel a part of it",
                   "give one of them"};
    Expected<std::string> bytes = readFile(manifestPath(dir), "manifest");
    if (!bytes)
      return bytes.error();
    llvm::outs() << *bytes;
    return Status::ok();
  }
  if (!options.kernel.empty())
    return printKernels(*manifest, options.kernel);
  printSummary(*manifest);
  for (const Target &target : manifest->targets)
    printTarget(target);
  return Status::ok();
}
