//===- ConfigureTiles.cpp - Candidates, ranked -----------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enumerate, drop what cannot run, predict, rank. What is as fast as another by
// less than the model can tell keeps the order of enumeration.
//
//===----------------------------------------------------------------------===//
#include "TileCandidates.h"
#include "TileModel.h"

#include <algorithm>

using namespace nova;
using namespace nova::config;

/// Registers a thread can address (every compute capability so far).
static constexpr int64_t kMaxRegisters = 255;
/// Straight-line multiply-adds of one thread, beyond which ptxas takes minutes and
/// its allocation of registers gets worse with every one.
static constexpr int64_t kMaxUnrolledFmas = 2048;
/// Instructions of a thread behind a product: above, ptxas takes minutes (AdamW behind a
/// gradient, 128x192 for four warps) or spills, and the code does not stay in the cache
/// for instructions (GELU's gradient, 128x192 for four warps: 12 clocks an instruction).
static constexpr int64_t kMaxUnrolledOperations = 6400;
/// The best by time, and as many again that need fewer registers.
static constexpr size_t kBest = 4, kFrugal = 4;
/// Of what cannot run, so many are named.
static constexpr size_t kDropped = 5;

std::string_view config::familyName(Family family) {
  return family == Family::Hopper ? "hopper" : "portable";
}

bool config::sameShape(const TileSchedule &a, const TileSchedule &b) {
  return a.tile == b.tile && a.warps == b.warps && a.family == b.family && a.teams == b.teams;
}

std::string config::describe(const TileSchedule &schedule) {
  std::string text = "tile";
  for (int64_t tile : schedule.tile)
    text += " " + std::to_string(tile);
  text += ", ";
  if (schedule.teams > 1)
    text += std::to_string(schedule.teams) + " teams of ";
  text += std::to_string(schedule.warps) + " warps";
  if (schedule.stages > 1)
    text += ", " + std::to_string(schedule.stages) + " stages";
  if (schedule.family != Family::Portable)
    text += ", " + std::string(familyName(schedule.family));
  return text;
}

/// "8.4 us", two digits at least.
static std::string timeText(int64_t ns) {
  auto decimal = [](int64_t tenths) { return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10); };
  if (ns < 1'000'000)
    return decimal(ns / 100) + " us";
  return decimal(ns / 100'000) + " ms";
}

/// Times that the model cannot tell apart are equal: five bits of them count.
static int64_t coarse(int64_t ns) {
  int64_t unit = 1;
  while (ns / unit >= 32)
    unit *= 2;
  return ns / unit * unit;
}

/// Why it cannot run; empty if it can.
static std::string illegal(const TileProblem &problem, const TileSchedule &schedule, const Prediction &p, const target::Device &device) {
  auto over = [](int64_t value, const char *what, int64_t limit) {
    return std::to_string(value) + " " + what + ", at most " + std::to_string(limit);
  };
  int64_t threads = schedule.warps * 32;
  int64_t registers = schedule.family == Family::Hopper
                          ? warpgroupRegisters(problem, schedule, device)
                          : std::min(kMaxRegisters, device.registersPerSm / threads);
  if (p.registers > registers)
    return over(p.registers, "registers a thread", registers);
  int64_t shared = std::min(device.sharedBytesPerBlock,
                            device.sharedBytesPerSm / schedule.residentBlocks - kReservedSharedBytes);
  if (p.sharedBytes > shared)
    return over(p.sharedBytes, "bytes of shared memory", shared);
  if (p.unrolledFmas > kMaxUnrolledFmas)
    return over(p.unrolledFmas, "multiply-adds in a row", kMaxUnrolledFmas);
  if (p.unrolledOperations > kMaxUnrolledOperations)
    return over(p.unrolledOperations, "instructions in a row behind the products", kMaxUnrolledOperations);
  return {};
}

static void explain(TileSchedule &schedule, const Prediction &p, const target::Device &device) {
  std::string kind = schedule.reason;
  schedule.registers = p.registers;
  schedule.sharedBytes = p.sharedBytes;
  schedule.predictedNs = int64_t(p.seconds * 1e9 + 0.5);
  schedule.reason = kind + ": " + describe(schedule) + ": " + std::to_string(p.blocks) +
                    (schedule.persistentBlocks ? " tiles, " : " blocks, ") +
                    std::to_string(p.blocksPerSm) + " at once on each of " + std::to_string(device.smCount) +
                    " SMs; " + timeText(schedule.predictedNs) + ", bound by " + std::string(boundName(p.bound));
}

/// The best shapes (tile and warps), each with its best depth of rings and the least
/// one, if the lowering finds less shared memory than thought; then those that need at most three quarters of the registers of
/// all before them: if ptxas spills, one of them will not.
static std::vector<TileSchedule> shortList(std::vector<TileSchedule> ranked) {
  std::vector<TileSchedule> list;
  size_t shapes = 0;
  int64_t least = INT64_MAX;
  for (TileSchedule &schedule : ranked) {
    auto same = std::find_if(list.begin(), list.end(), [&](const TileSchedule &other) {
      return sameShape(schedule, other);
    });
    if (same != list.end()) {
      auto second = std::find_if(same + 1, list.end(), [&](const TileSchedule &other) {
        return sameShape(schedule, other);
      });
      if (schedule.stages >= (second == list.end() ? same : second)->stages)
        continue;
      if (second != list.end())
        list.erase(second);
      list.push_back(std::move(schedule));
      continue;
    }
    bool frugal = shapes < kBest + kFrugal && schedule.registers <= least / 4 * 3;
    if (shapes >= kBest && !frugal)
      continue;
    ++shapes;
    least = std::min(least, schedule.registers);
    list.push_back(std::move(schedule));
  }
  return list;
}

TileChoice config::configureTiles(const TileProblem &problem, const target::Device &device) {
  TileChoice choice;
  std::vector<TileSchedule> legal, others;
  std::vector<std::pair<int64_t, std::string>> reasons;
  for (TileSchedule &schedule : enumerate(problem, device)) {
    Prediction p = predict(problem, schedule, device);
    explain(schedule, p, device);
    std::string why = illegal(problem, schedule, p, device);
    if (why.empty()) {
      legal.push_back(std::move(schedule));
      continue;
    }
    reasons.push_back({schedule.predictedNs, describe(schedule) + ": " + why});
    others.push_back(std::move(schedule));
  }
  auto sooner = [](const TileSchedule &a, const TileSchedule &b) {
    return coarse(a.predictedNs) < coarse(b.predictedNs);
  };
  if (legal.empty()) {
    // The model only estimates: what needs least may fit.
    std::stable_sort(others.begin(), others.end(), [](const TileSchedule &a, const TileSchedule &b) {
      return a.registers < b.registers;
    });
    others.resize(std::min(others.size(), kBest));
    legal = std::move(others);
  }
  std::stable_sort(legal.begin(), legal.end(), sooner);
  choice.candidates = shortList(std::move(legal));
  // What would have been faster is worth a word.
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto &a, const auto &b) { return a.first < b.first; });
  size_t faster = std::count_if(reasons.begin(), reasons.end(), [&](const auto &reason) {
    return reason.first < choice.candidates.front().predictedNs;
  });
  for (size_t i = 0; i < std::min(faster, kDropped); ++i)
    choice.dropped.push_back(std::move(reasons[i].second));
  if (reasons.size() > choice.dropped.size())
    choice.dropped.push_back((choice.dropped.empty() ? "" : "and ") +
                             std::to_string(reasons.size() - choice.dropped.size()) +
                             (choice.dropped.empty() ? "" : " more") +
                             (faster > kDropped ? "" : ", none of them faster"));
  return choice;
}
