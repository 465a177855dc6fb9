//===- OpTable.h - All supported ATen overloads, by name ------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_SRC_IMPORT_OPTABLE_H
#define NOVA_SRC_IMPORT_OPTABLE_H

#include "Call.h"

namespace nova::importer {

struct TableRow {
  const OpEntry *entry = nullptr;
  Signature signature;
};

/// The row of an overload; null if it is not supported.
const TableRow *findOp(llvm::StringRef name);

} // namespace nova::importer

#endif // NOVA_SRC_IMPORT_OPTABLE_H
