//===- Target.cpp - The devices novac knows -------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sources, by the letter that stands beside each number:
//
//  [P] NVIDIA, CUDA C++ Programming Guide 13.0, "Technical Specifications per
//      Compute Capability": shared memory per block (opt-in) and per SM,
//      registers, resident threads and blocks; "Throughput of Native Arithmetic
//      Instructions": float32 lanes per SM.
//  [A] NVIDIA A100 Tensor Core GPU Architecture (2020) and A100 80GB datasheet.
//  [G] NVIDIA Ampere GA102 GPU Architecture (2021): rates per SM and clock of
//      GA10x; GeForce RTX 3060 specification for SM count, clock and memory.
//  [L] NVIDIA Ada GPU Architecture (2022), and the RTX 6000 Ada datasheet.
//  [H] NVIDIA H100 Tensor Core GPU Architecture (2022) and H100 SXM datasheet.
//  [I] NVIDIA H200 datasheet (SXM).
//  [S] Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture
//      via Microbenchmarking (2024): dense mma.sync on H100, of the peak.
//  [M] Measured on a card: attribute CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE.
//  [B] NVIDIA Blackwell datasheet, HGX B200, per GPU; half of what it gives
//      "with sparsity".
//  [X] NVIDIA RTX Blackwell GPU Architecture (2025).
//  [C] A model, not a product: the instruction set x86-64-v3 (AVX2, FMA) on a
//      slice of a present server: 8 cores at 3 GHz, 2 FMA units of 8 float32
//      lanes each, 1.25 to 2 MB of second-level cache (Intel Xeon, third
//      generation and later; 1 MB on AMD EPYC 9004), of which 1 MB is counted.
//
// GeForce cards multiply 16-bit operands at half rate when they accumulate in
// float32 [G, L, X]: the rates below are those.
//
//===----------------------------------------------------------------------===//
#include "nova/Target/Target.h"

#include <array>

namespace nova::target {

namespace {

constexpr int64_t KiB = 1024;
constexpr int64_t MiB = 1024 * KiB;

/// What a compute capability fixes [P].
constexpr Device withArch(Device device, std::string_view arch,
                          int64_t sharedPerBlock, int64_t sharedPerSm,
                          int64_t threads, int64_t blocks, int64_t lanes) {
  device.arch = arch;
  device.lanesPerSm = lanes;
  device.sharedBytesPerBlock = sharedPerBlock;
  device.sharedBytesPerSm = sharedPerSm;
  device.registersPerSm = 65536;
  device.threadsPerSm = threads;
  device.blocksPerSm = blocks;
  return device;
}
constexpr Device sm80(Device d) {
  return withArch(d, "sm_80", 163 * KiB, 164 * KiB, 2048, 32, 64);
}
constexpr Device sm86(Device d) {
  return withArch(d, "sm_86", 99 * KiB, 100 * KiB, 1536, 16, 128);
}
constexpr Device sm89(Device d) {
  return withArch(d, "sm_89", 99 * KiB, 100 * KiB, 1536, 24, 128);
}
constexpr Device sm90a(Device d) {
  d.warpgroups = true;
  d.mmaSyncShare = 0.62; // [S]
  return withArch(d, "sm_90a", 227 * KiB, 228 * KiB, 2048, 32, 128);
}
constexpr Device sm100a(Device d) {
  return withArch(d, "sm_100a", 227 * KiB, 228 * KiB, 2048, 32, 128);
}
constexpr Device sm120a(Device d) {
  return withArch(d, "sm_120a", 99 * KiB, 100 * KiB, 1536, 24, 128);
}

constexpr std::array kDevices = {
    sm90a({.name = "h200",
           .product = "NVIDIA H200 SXM",
           .canonical = true,
           .smCount = 132,               // [I]
           .l2Bytes = 60 * MiB,          // [M]
           .dramBytesPerSecond = 4800e9, // [I]
           .flops = {.f32 = 66.9e12,     // [I], as all of this row
                     .tf32 = 494.7e12,
                     .bf16 = 989.4e12,
                     .f16 = 989.4e12,
                     .f8 = 1978.9e12}}),
    sm90a({.name = "h100",
           .product = "NVIDIA H100 SXM",
           .smCount = 132,               // [H]
           .l2Bytes = 50 * MiB,          // [H]
           .dramBytesPerSecond = 3350e9, // [H]
           .flops = {.f32 = 66.9e12,     // [H], as all of this row
                     .tf32 = 494.7e12,
                     .bf16 = 989.4e12,
                     .f16 = 989.4e12,
                     .f8 = 1978.9e12}}),
    sm80({.name = "a100",
          .product = "NVIDIA A100 SXM 80GB",
          .canonical = true,
          .smCount = 108,               // [A]
          .l2Bytes = 40 * MiB,          // [A]
          .dramBytesPerSecond = 2039e9, // [A]
          .flops = {.f32 = 19.5e12,     // [A], as all of this row
                    .tf32 = 156e12,
                    .bf16 = 312e12,
                    .f16 = 312e12}}),
    sm86({.name = "rtx3060",
          .product = "NVIDIA GeForce RTX 3060 12GB",
          .canonical = true,
          .smCount = 28,               // [G]
          .l2Bytes = 3 * MiB,          // [G]
          .dramBytesPerSecond = 360e9, // [G] 192 bits at 15 Gb/s
          .flops = {.f32 = 12.74e12,   // [G] 28 SMs, 128 lanes, 1.777 GHz
                    .tf32 = 12.74e12,  // [G] as float32 on GA10x
                    .bf16 = 25.5e12,   // [G] twice that
                    .f16 = 25.5e12}}),
    sm89({.name = "rtx6000-ada",
          .product = "NVIDIA RTX 6000 Ada Generation",
          .canonical = true,
          .smCount = 142,              // [L]
          .l2Bytes = 96 * MiB,         // [L]
          .dramBytesPerSecond = 960e9, // [L]
          .flops = {.f32 = 91.1e12,    // [L], as all of this row
                    .tf32 = 182.1e12,
                    .bf16 = 364.2e12,
                    .f16 = 364.2e12,
                    .f8 = 728.5e12}}),
    sm89({.name = "rtx4090",
          .product = "NVIDIA GeForce RTX 4090",
          .smCount = 128,               // [L]
          .l2Bytes = 72 * MiB,          // [L]
          .dramBytesPerSecond = 1008e9, // [L]
          .flops = {.f32 = 82.6e12,     // [L], as all of this row
                    .tf32 = 82.6e12,
                    .bf16 = 165.2e12,
                    .f16 = 165.2e12,
                    .f8 = 330.3e12}}),
    sm100a({.name = "b200",
            .product = "NVIDIA B200 (HGX)",
            .canonical = true,
            .smCount = 148,               // [B]
            .l2Bytes = 126 * MiB,         // [B]
            .dramBytesPerSecond = 8000e9, // [B]
            .flops = {.f32 = 75e12,       // [B], as all of this row
                      .tf32 = 1125e12,
                      .bf16 = 2250e12,
                      .f16 = 2250e12,
                      .f8 = 4500e12}}),
    sm120a({.name = "rtx5090",
            .product = "NVIDIA GeForce RTX 5090",
            .canonical = true,
            .smCount = 170,               // [X]
            .l2Bytes = 96 * MiB,          // [X]
            .dramBytesPerSecond = 1792e9, // [X]
            .flops = {.f32 = 104.8e12,    // [X], as all of this row
                      .tf32 = 104.8e12,
                      .bf16 = 209.5e12,
                      .f16 = 209.5e12,
                      .f8 = 419e12}}),
    Device{.name = "x86-64-v3",
           .product = "CPU with AVX2 and FMA",
           .kind = DeviceKind::Cpu,
           .arch = "host",
           .canonical = true,
           .smCount = 8,                          // [C]
           .l2Bytes = 1 * MiB,                    // [C]
           .dramBytesPerSecond = 100e9,           // [C]
           .flops = {.f32 = 8 * 3e9 * 2 * 8 * 2}} // [C] 96e9 a core
};

} // namespace

std::span<const Device> devices() { return kDevices; }

const Device *findTarget(std::string_view name) {
  for (const Device &device : kDevices)
    if (device.canonical && device.arch == name)
      return &device;
  for (const Device &device : kDevices)
    if (device.kind == DeviceKind::Gpu && device.name == name)
      return &device;
  return nullptr;
}

const Device *findGpu(std::string_view name) {
  for (const Device &device : kDevices)
    if (device.kind == DeviceKind::Gpu && device.name == name)
      return &device;
  return nullptr;
}

std::string gpuNames() {
  std::string names;
  for (const Device &device : kDevices)
    if (device.kind == DeviceKind::Gpu)
      names.append(names.empty() ? "" : " ").append(device.name);
  return names;
}

std::vector<std::string_view> targetNames() {
  std::vector<std::string_view> names;
  for (const Device &device : kDevices)
    if (device.canonical)
      names.push_back(device.arch);
  for (const Device &device : kDevices)
    if (device.kind == DeviceKind::Gpu)
      names.push_back(device.name);
  return names;
}

} // namespace nova::target
