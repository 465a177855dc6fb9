//===- Explain.cpp - novac explain ----------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a bundle's manifest says of its schedules, kernel by kernel; a graph is
// compiled first, and then the passes' remarks come too.
//
//===----------------------------------------------------------------------===//
#include "Compiler.h"
#include "ManifestText.h"
#include "Verbs.h"
#include "nova/Bundle/Bundle.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <map>

using namespace nova;
using namespace nova::driver;
using namespace nova::bundle;

namespace {
/// A kernel that is to be shown.
struct Shown {
  const Target *target;
  const Kernel *kernel;
  std::vector<const Launch *> launches;

  uint64_t allNs() const { return kernel->predictedNs * launches.size(); }
  size_t nodes() const {
    size_t count = 0;
    for (const Launch *launch : launches)
      count += launch->nodes.size();
    return count;
  }
};
} // namespace

/// Those whose name begins so, the one that takes longest in a step first.
static std::vector<Shown> shownKernels(const Target &target,
                                       const std::string &name) {
  std::vector<Shown> list;
  for (const Kernel &kernel : target.kernels)
    list.push_back({&target, &kernel, {}});
  for (const Launch &launch : target.launches)
    if (launch.kernel)
      list[*launch.kernel].launches.push_back(&launch);
  std::erase_if(list, [&](const Shown &shown) {
    return !llvm::StringRef(shown.kernel->name).starts_with(name);
  });
  std::stable_sort(list.begin(), list.end(), [](const Shown &a, const Shown &b) {
    return a.allNs() > b.allNs();
  });
  return list;
}

static std::string bestTime(const Kernel &kernel) {
  double tflops = kernel.predictedNs
                      ? double(kernel.flops) / double(kernel.predictedNs) / 1e3
                      : 0;
  double gbs = kernel.predictedNs
                   ? double(kernel.bytes) / double(kernel.predictedNs)
                   : 0;
  char out[64];
  std::snprintf(out, sizeof out, "%.3g TFLOP/s, %.3g GB/s", tflops, gbs);
  return out;
}

static void printKernel(const Shown &shown) {
  llvm::raw_ostream &os = llvm::outs();
  const Kernel &kernel = *shown.kernel;
  const auto *reason = find<std::string>(kernel.schedule, "reason");
  auto space = kernel.schedule.find("space");
  os << "\n" << kernel.name << "\n"
     << "  covers    " << shown.nodes() << " nodes in "
     << shown.launches.size() << " launches\n"
     << "  work      " << kernel.flops << " FLOP, " << bytesText(kernel.bytes)
     << " per launch; space "
     << (space == kernel.schedule.end() ? "[]" : text(space->second)) << "\n"
     << "  predicted " << timeText(kernel.predictedNs) << " a launch ("
     << bestTime(kernel) << "), " << timeText(shown.allNs()) << " a step\n"
     << "  because   " << (reason ? *reason : "") << "\n";
  if (shown.target->name != "host")
    os << "  code      " << kernel.registers << " registers, "
       << (kernel.spillBytes
               ? std::to_string(kernel.spillBytes) + " bytes spilled"
               : "none spilled")
       << "; " << kernel.staticSharedBytes + kernel.dynamicSharedBytes
       << " bytes of shared memory\n";
  os << candidatesText(kernel.schedule, "  ");
}

/// Remarks that are equal but for the node are one, with the first node and how
/// many there are: a model repeats its layers.
static std::vector<std::pair<std::string, size_t>>
counted(const std::vector<std::string> &remarks) {
  auto withoutNode = [](const std::string &remark) {
    size_t first = remark.find("node '");
    size_t last = first == remark.npos ? first : remark.find("': ", first);
    return last == remark.npos ? remark
                               : remark.substr(0, first) + remark.substr(last);
  };
  std::vector<std::pair<std::string, size_t>> list;
  std::map<std::string, size_t> known;
  for (const std::string &remark : remarks) {
    auto [it, fresh] = known.try_emplace(withoutNode(remark), list.size());
    if (fresh)
      list.emplace_back(remark, 1);
    else
      ++list[it->second].second;
  }
  return list;
}

static void printText(const Manifest &manifest, const std::string &kernel,
                      const std::vector<std::string> &remarks) {
  llvm::raw_ostream &os = llvm::outs();
  for (const Target &target : manifest.targets) {
    std::vector<Shown> shown = shownKernels(target, kernel);
    if (shown.empty())
      continue;
    uint64_t total = 0;
    for (const Shown &entry : shown)
      total += entry.allNs();
    os << (&target == manifest.targets.data() ? "" : "\n") << manifest.name
       << " for " << target.name;
    if (target.name != "host")
      os << " (" << target.device << ")";
    os << ": " << shown.size() << " kernels, " << timeText(total)
       << " a step predicted\n";
    for (const Shown &entry : shown)
      printKernel(entry);
  }
  if (remarks.empty() || !kernel.empty())
    return;
  os << "\nremarks of the passes\n";
  for (const auto &[remark, count] : counted(remarks))
    os << "  " << remark
       << (count > 1 ? " (and " + std::to_string(count - 1) + " more like it)"
                     : "")
       << "\n";
}

static void printJson(llvm::json::OStream &json, const AttrValue &value) {
  if (const auto *number = std::get_if<int64_t>(&value.value))
    json.value(*number);
  else if (const auto *flag = std::get_if<bool>(&value.value))
    json.value(*flag);
  else if (const auto *words = std::get_if<std::string>(&value.value))
    json.value(llvm::json::fixUTF8(*words));
  else if (const auto *list = std::get_if<std::vector<AttrValue>>(&value.value))
    json.array([&] {
      for (const AttrValue &element : *list)
        printJson(json, element);
    });
  else
    json.object([&] {
      for (const auto &[name, element] : std::get<Attributes>(value.value)) {
        json.attributeBegin(name);
        printJson(json, element);
        json.attributeEnd();
      }
    });
}

static void printJson(const Manifest &manifest, const std::string &kernel,
                      const std::vector<std::string> &remarks) {
  llvm::json::OStream json(llvm::outs());
  json.object([&] {
    json.attribute("name", llvm::json::fixUTF8(manifest.name));
    json.attributeArray("remarks", [&] {
      for (const std::string &remark : remarks)
        json.value(llvm::json::fixUTF8(remark));
    });
    json.attributeArray("targets", [&] {
      for (const Target &target : manifest.targets)
        json.object([&] {
          json.attribute("device", target.device);
          json.attributeArray("kernels", [&] {
            for (const Shown &shown : shownKernels(target, kernel))
              json.object([&] {
                json.attribute("bytes", int64_t(shown.kernel->bytes));
                json.attribute("flops", int64_t(shown.kernel->flops));
                json.attribute("launches", int64_t(shown.launches.size()));
                json.attribute("name", shown.kernel->name);
                json.attribute("predicted_ns",
                               int64_t(shown.kernel->predictedNs));
                json.attribute("registers", int64_t(shown.kernel->registers));
                json.attributeBegin("schedule");
                printJson(json, AttrValue(shown.kernel->schedule));
                json.attributeEnd();
                json.attribute("spill_bytes", int64_t(shown.kernel->spillBytes));
              });
          });
          json.attribute("name", target.name);
        });
    });
  });
  llvm::outs() << "\n";
}

Status driver::explainVerb(const Options &given) {
  Options options = given;
  options.explain = true;
  options.noCache = true;
  std::optional<Manifest> manifest;
  std::vector<std::string> remarks;
  const std::string &operand = options.operands[0];
  if (llvm::sys::fs::is_directory(operand)) {
    Expected<Manifest> opened = openManifest(operand);
    if (!opened)
      return opened.error();
    manifest = std::move(*opened);
  } else {
    Compiler compiler(options);
    if (Status status = compiler.read(operand); !status)
      return status;
    Expected<Bundle> bundle = compiler.compile();
    if (!bundle)
      return bundle.error();
    manifest = std::move(bundle->manifest);
    remarks = compiler.remarks();
  }
  bool found = options.kernel.empty();
  for (const Target &target : manifest->targets)
    found |= !shownKernels(target, options.kernel).empty();
  if (!found)
    return Error{ErrorCode::Usage,
                 "no kernel of '" + manifest->name +
                     "' has a name that begins with '" + options.kernel + "'",
                 "without --kernel all are shown"};
  if (options.json)
    printJson(*manifest, options.kernel, remarks);
  else
    printText(*manifest, options.kernel, remarks);
  return Status::ok();
}
