//===- Diagnostics.cpp - MLIR diagnostics, collected for people -----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Diagnostics.h"

#include "Log.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace mlir;
using namespace nova;

std::string driver::describeLocation(Location location) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    // Import puts the JSON path below the name: nodes[12], constants[0].
    StringRef kind = "graph";
    if (auto path = dyn_cast<NameLoc>(name.getChildLoc()))
      kind = path.getName().getValue().split("s[").first;
    return kind.str() + " '" + name.getName().str() + "'";
  }
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
    remarkList.push_back({"", entry.text()});
    break;
  }
}

class driver::Diagnostics::RemarkCollector
    : public mlir::remark::detail::MLIRRemarkStreamerBase {
public:
  explicit RemarkCollector(Diagnostics &owner) : owner(owner) {}
  void streamOptimizationRemark(
      const mlir::remark::detail::Remark &remark) override {
    Entry entry{describeLocation(remark.getLocation()), {}, {}};
    for (const mlir::remark::detail::Remark::Arg &argument : remark.getArgs())
      entry.message += argument.key == "Remark"
                           ? argument.val
                           : " " + argument.key + "=" + argument.val;
    std::lock_guard lock(owner.remarkMutex);
    owner.remarkList.push_back({remark.getCategoryName().str(), entry.text()});
  }

private:
  Diagnostics &owner;
};

void driver::Diagnostics::keepRemarks(MLIRContext &context) {
  // `all` alone lets nothing through: it only widens the others.
  mlir::remark::RemarkCategories all;
  all.passed = all.missed = all.analysis = all.failed = ".*";
  // It fails only for a category that is no regular expression.
  (void)mlir::remark::enableOptimizationRemarks(
      context, std::make_unique<RemarkCollector>(*this),
      std::make_unique<mlir::remark::RemarkEmittingPolicyAll>(), all);
}

std::vector<std::string> driver::Diagnostics::remarks() const {
  std::lock_guard lock(remarkMutex);
  std::vector<std::string> passes;
  for (const Remark &remark : remarkList)
    if (!llvm::is_contained(passes, remark.pass))
      passes.push_back(remark.pass);
  std::vector<std::string> lines;
  for (const std::string &pass : passes) {
    size_t first = lines.size();
    for (const Remark &remark : remarkList)
      if (remark.pass == pass)
        lines.push_back(pass.empty() ? remark.text : pass + ": " + remark.text);
    std::sort(lines.begin() + first, lines.end());
  }
  return lines;
}

void driver::Diagnostics::printErrors() const {
  for (const Entry &entry : errorList) {
    errorLine("error: " + entry.text());
    for (const std::string &note : entry.notes)
      errorLine("  note: " + note);
  }
}
