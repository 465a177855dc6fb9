//===- Lists.cpp - novac targets, novac ops, novac version ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "BuildId.h"
#include "Verbs.h"
#include "nova-rt/nova_rt.h"
#include "nova/Bundle/Manifest.h"
#include "nova/Import/Import.h"
#include "nova/Support/Version.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace nova;
using namespace nova::driver;
using target::Device;
using target::DeviceKind;

//===----------------------------------------------------------------------===//
// targets
//===----------------------------------------------------------------------===//

static void printDevice(llvm::json::OStream &json, const Device &d) {
  json.object([&] {
    json.attribute("arch", llvm::StringRef(d.arch));
    json.attribute("canonical", d.canonical);
    json.attribute("dram_bytes_per_second", d.dramBytesPerSecond);
    json.attributeObject("flops", [&] {
      json.attribute("bf16", d.flops.bf16);
      json.attribute("f16", d.flops.f16);
      json.attribute("f32", d.flops.f32);
      json.attribute("f8", d.flops.f8);
      json.attribute("tf32", d.flops.tf32);
    });
    json.attribute("kind", d.kind == DeviceKind::Gpu ? "gpu" : "cpu");
    json.attribute("l2_bytes", d.l2Bytes);
    json.attribute("name", llvm::StringRef(d.name));
    json.attribute("product", llvm::StringRef(d.product));
    json.attribute("registers_per_sm", d.registersPerSm);
    json.attribute("shared_bytes_per_block", d.sharedBytesPerBlock);
    json.attribute("shared_bytes_per_sm", d.sharedBytesPerSm);
    json.attribute("sms", d.smCount);
  });
}

Status driver::targetsVerb(const Options &options) {
  llvm::raw_ostream &os = llvm::outs();
  if (options.json) {
    llvm::json::OStream json(os);
    json.array([&] {
      for (const Device &device : target::devices())
        printDevice(json, device);
    });
    os << "\n";
    return Status::ok();
  }
  os << "device       target    SMs  shared/block  L2       DRAM GB/s  f32    "
        "tf32   bf16 TFLOP/s\n";
  for (const Device &d : target::devices()) {
    bool cpu = d.kind == DeviceKind::Cpu;
    std::string arch(d.arch);
    if (!d.canonical)
      arch = "(" + arch + ")";
    os << llvm::left_justify(d.name, 13) << llvm::left_justify(arch, 10)
       << llvm::format("%-5d", int(d.smCount))
       << llvm::left_justify(
              cpu ? "-" : std::to_string(d.sharedBytesPerBlock / 1024) + " KiB",
              14)
       << llvm::left_justify(std::to_string(d.l2Bytes >> 20) + " MiB", 9)
       << llvm::format("%-11.0f%-7.1f", d.dramBytesPerSecond / 1e9,
                       d.flops.f32 / 1e12);
    if (cpu)
      os << "-      -\n";
    else
      os << llvm::format("%-7.1f%.1f\n", d.flops.tf32 / 1e12,
                         d.flops.bf16 / 1e12);
  }
  os << "\nAn architecture stands for the device beside it; one in brackets is "
        "that of a\ndevice it does not stand for. SMs of a CPU are cores, its "
        "L2 is that of one core.\n";
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// ops
//===----------------------------------------------------------------------===//

Status driver::opsVerb(const Options &options) {
  llvm::raw_ostream &os = llvm::outs();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  loadGraphDialects(context);
  std::vector<std::string> novaOps = supportedNovaOps(context);
  if (options.json) {
    llvm::json::OStream json(os);
    json.object([&] {
      json.attributeArray("aten", [&] {
        for (const OpInfo &op : supportedOps())
          json.object([&] {
            json.attribute("constraints", op.constraints);
            json.attribute("name", op.name);
            json.attribute("signature", op.signature);
          });
      });
      json.attributeArray("nova", [&] {
        for (const std::string &op : novaOps)
          json.value(op);
      });
    });
    os << "\n";
    return Status::ok();
  }
  for (const OpInfo &op : supportedOps()) {
    os << op.name << op.signature << "\n";
    if (!op.constraints.empty())
      os << "    " << op.constraints << "\n";
  }
  for (const std::string &op : novaOps)
    os << op << "\n";
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// version
//===----------------------------------------------------------------------===//

Status driver::versionVerb(const Options &options) {
  llvm::raw_ostream &os = llvm::outs();
  if (!options.json) {
    os << "novac " << versionString() << " (LLVM " << llvmVersionString()
       << ", manifest schema " << bundle::kSchemaVersion << ")\n";
    return Status::ok();
  }
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("llvm", llvmVersionString());
    json.attribute("loader_abi", NOVA_RT_ABI_VERSION);
    json.attribute("manifest_schema", bundle::kSchemaVersion);
    json.attribute("novac", versionString());
    json.attributeArray("targets", [&] {
      for (const Device &device : target::devices())
        if (device.canonical)
          json.value(llvm::StringRef(device.arch));
    });
    json.attribute("toolchain", toolchainId());
  });
  os << "\n";
  return Status::ok();
}
