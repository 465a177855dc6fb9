//===- Candidates.cpp - The schedules that a kernel may take ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Transforms/Candidates.h"

#include "nova/IR/Nova.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace nova;

SmallVector<DictionaryAttr> nova::candidatesOf(func::FuncOp kernel) {
  SmallVector<DictionaryAttr> list;
  if (auto array = kernel->getAttrOfType<ArrayAttr>(attr::candidates))
    for (Attribute candidate : array)
      list.push_back(cast<DictionaryAttr>(candidate));
  return list;
}

void nova::takeCandidate(func::FuncOp kernel, DictionaryAttr candidate) {
  for (NamedAttribute attribute : candidate)
    kernel->setAttr(attribute.getName(), attribute.getValue());
}

bool nova::sameShape(DictionaryAttr a, DictionaryAttr b) {
  return llvm::all_of(ArrayRef<StringRef>{attr::tile, attr::localTile, attr::warps, attr::teams, attr::family},
                      [&](StringRef name) { return a.get(name) == b.get(name); });
}

std::string nova::describeCandidate(DictionaryAttr candidate) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto list = [&](StringRef name) {
    os << "[";
    if (auto values = candidate.getAs<DenseI64ArrayAttr>(name))
      llvm::interleaveComma(values.asArrayRef(), os);
    os << "]";
  };
  os << "tile ";
  list(attr::tile);
  if (auto local = candidate.getAs<DenseI64ArrayAttr>(attr::localTile); local && !local.empty()) {
    os << ", inside ";
    list(attr::localTile);
  }
  os << ", ";
  if (auto teams = candidate.getAs<IntegerAttr>(attr::teams); teams && teams.getInt() > 1)
    os << teams.getInt() << " teams of ";
  if (auto warps = candidate.getAs<IntegerAttr>(attr::warps))
    os << warps.getInt() << " warps";
  if (auto stages = candidate.getAs<IntegerAttr>(attr::stages); stages && stages.getInt() > 1)
    os << ", " << stages.getInt() << " stages";
  if (auto family = candidate.getAs<StringAttr>(attr::family); family && family.getValue() != "portable")
    os << ", " << family.getValue();
  return text;
}
