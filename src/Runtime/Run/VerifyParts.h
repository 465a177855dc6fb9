//===- VerifyParts.h - What the ways of `verify` share --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to src/Runtime/Run.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_RUNTIME_RUN_VERIFYPARTS_H
#define NOVA_RUNTIME_RUN_VERIFYPARTS_H

#include "Report.h"
#include "Session.h"
#include "nova/Runtime/Run.h"

namespace nova::run {

/// What the outputs should be, from a file or from another session: row-major
/// bytes.
using Reference = std::vector<std::string>;

/// The outputs of the session's last step.
Expected<Reference> outputsOf(Session &session);

/// `out/<i>` of the file for every output.
Expected<Reference> readReference(const SafetensorsFile &file,
                                  const Session &session);

/// One step of `session`, judged against `reference`; the inputs are there.
Expected<Report> judgeStep(Session &session, const Reference &reference,
                           const VerifyOptions &options);

/// The reference on the CPU.
SessionOptions hostOptions(const std::string &bundle, unsigned threads);

/// `verify --simulate`.
Status verifySimulated(const VerifyOptions &options, std::ostream &out,
                       std::ostream &log);

} // namespace nova::run

#endif // NOVA_RUNTIME_RUN_VERIFYPARTS_H
