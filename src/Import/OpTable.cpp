//===- OpTable.cpp - All supported ATen overloads, by name ----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

#include "nova/Import/Import.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace nova;
using namespace nova::importer;

namespace {
struct Table {
  llvm::StringMap<TableRow> rows;
  std::vector<OpInfo> infos;

  Table() {
    for (llvm::ArrayRef<OpEntry> family :
         {unaryTable(), binaryTable(), activationTable(), viewTable(),
          partTable(), shapeTable(), factoryTable(), reductionTable(),
          indexingTable(), contractionTable(), convolutionTable(), poolingTable(),
          lossTable(), normTable(), attentionTable(), randomTable()})
      for (const OpEntry &entry : family) {
        bool fresh =
            rows.try_emplace(entry.name,
                             TableRow{&entry, parseSignature(entry.signature)})
                .second;
        if (!fresh)
          llvm::report_fatal_error("operation table: " + entry.name + " twice");
        infos.push_back({entry.name, entry.signature, entry.constraints});
      }
    llvm::sort(infos, [](const OpInfo &a, const OpInfo &b) {
      return a.name < b.name;
    });
  }
};

const Table &table() {
  static const Table instance;
  return instance;
}
} // namespace

const TableRow *importer::findOp(llvm::StringRef name) {
  auto found = table().rows.find(name);
  return found == table().rows.end() ? nullptr : &found->second;
}

llvm::ArrayRef<OpInfo> nova::supportedOps() { return table().infos; }
