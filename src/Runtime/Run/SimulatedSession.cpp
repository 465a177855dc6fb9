//===- SimulatedSession.cpp - A session whose target is simulated ---------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"
#include "nova/Bundle/Bundle.h"

using namespace nova;
using namespace nova::run;

Status Session::openSimulated(const SessionOptions &options) {
  if (Status s = readSignature(); !s)
    return s;
  Expected<bundle::Manifest> manifest = bundle::openManifest(options.bundle);
  if (!manifest)
    return manifest.error();
  const bundle::Target &target = manifest->targets[*options.target];
  Expected<sim::Step> step =
      sim::Step::open(options.bundle, *manifest, *options.target);
  if (!step)
    return step.error();
  simulated = std::move(*step);
  simulation.threads = options.threads;
  simulation.device = target::findTarget(target.device);
  targetName = target.name;
  targetDevice = target.device;
  deviceName = "the simulator";
  return giveBuffers();
}

Status Session::simulateStep() {
  std::vector<void *> addresses[2];
  for (bool isInput : {true, false})
    for (const Tensor &t : isInput ? inputs : outputs)
      addresses[isInput].push_back(t.device);
  Expected<sim::StepOutcome> outcome =
      simulated->run(addresses[1], addresses[0], simulation);
  if (!outcome)
    return outcome.error();
  simulatedStep = std::move(*outcome);
  if (simulatedStep.fault)
    return Error{ErrorCode::Verification,
                 targetName + " (" + targetDevice +
                     "), simulated: " + simulatedStep.fault->text(),
                 {}};
  return Status::ok();
}
