//===- Diagnostics.cpp - MLIR diagnostics, collected for people ------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Diagnostics.h"

#include "Log.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nova;

std::string driver::describeLocation(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return "node '" + name.getName().str() + "'";
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location inner : fused.getLocations())
      if (std::string text = describeLocation(inner); !text.empty())
        return text;
    return {};
  }
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return describeLocation(call.getCallee());
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return file.getFilename().str() + ":" + std::to_string(file.getLine()) +
           ":" + std::to_string(file.getColumn());
  return {};
}

std::string driver::Diagnostics::Entry::text() const {
  return where.empty() ? message : where + ": " + message;
}

driver::Diagnostics::Diagnostics(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        add(diagnostic);
        return success();
      }) {}

void driver::Diagnostics::add(Diagnostic &diagnostic) {
  Entry entry{describeLocation(diagnostic.getLocation()), diagnostic.str(), {}};
  for (Diagnostic &note : diagnostic.getNotes())
    entry.notes.push_back(note.str());
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Error:
    errorList.push_back(std::move(entry));
    break;
  case DiagnosticSeverity::Warning:
    warning(entry.text());
    break;
  case DiagnosticSeverity::Remark:
  case DiagnosticSeverity::Note:
    remarkList.push_back(std::move(entry));
    break;
  }
}

void driver::Diagnostics::printErrors() const {
  for (const Entry &entry : errorList) {
    errorLine("error: " + entry.text());
    for (const std::string &note : entry.notes)
      errorLine("  note: " + note);
  }
}
