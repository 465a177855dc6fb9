//===- Faults.cpp - A fault in words
//---------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Simulator/Simulator.h"

#include <cstdio>

using namespace nova::sim;

std::string_view nova::sim::nameOf(FaultKind kind) {
  switch (kind) {
  case FaultKind::OutOfBounds:
    return "out of bounds";
  case FaultKind::Misaligned:
    return "misaligned";
  case FaultKind::Uninitialised:
    return "uninitialised read";
  case FaultKind::NotWritable:
    return "write outside the outputs";
  case FaultKind::Race:
    return "race";
  case FaultKind::AsyncPending:
    return "unfinished copy";
  case FaultKind::ProductPending:
    return "unfinished product";
  case FaultKind::ProxyFence:
    return "missing proxy fence";
  case FaultKind::Phase:
    return "phase error";
  case FaultKind::Transaction:
    return "transaction count";
  case FaultKind::PartialBarrier:
    return "partial barrier";
  case FaultKind::Divergence:
    return "divergence";
  case FaultKind::Deadlock:
    return "deadlock";
  case FaultKind::Endless:
    return "endless";
  case FaultKind::Limit:
    return "device limit";
  case FaultKind::Undefined:
    return "undefined behaviour";
  case FaultKind::Trap:
    return "trap";
  }
  return "";
}

std::string Fault::text() const {
  std::string text(nameOf(kind));
  text += " in kernel '" + kernel + "'";
  if (line)
    text += ", PTX line " + std::to_string(line);
  if (!opcode.empty())
    text += " (" + opcode + ")";
  if (!source.empty())
    text += ", from " + source;
  if (warp)
    text += ", block (" + std::to_string(block[0]) + "," +
            std::to_string(block[1]) + "," + std::to_string(block[2]) +
            "), warp " + std::to_string(*warp);
  if (lane)
    text += ", lane " + std::to_string(*lane);
  if (address) {
    char hex[32];
    std::snprintf(hex, sizeof hex, "0x%llx",
                  static_cast<unsigned long long>(*address));
    text += ", address " + std::string(hex);
  }
  return text + ": " + what;
}

Counts &Counts::operator+=(const Counts &other) {
  warpInstructions += other.warpInstructions;
  laneInstructions += other.laneInstructions;
  coreSeconds += other.coreSeconds;
  return *this;
}
