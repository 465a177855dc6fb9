//===- ImportMlir.cpp - Nova MLIR, text or bytecode, and the step contract ===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Build.h"
#include "nova/Import/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace nova;

OwningOpRef<ModuleOp> nova::importMlir(llvm::MemoryBufferRef buffer,
                                       MLIRContext &context) {
  loadGraphDialects(context);
  llvm::SourceMgr sources;
  // Not a copy: bytecode may be large. A terminating zero is what text needs,
  // and readers of files provide it.
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(buffer.getBuffer(),
                                           buffer.getBufferIdentifier()),
      llvm::SMLoc());
  auto module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module || failed(verifyStep(*module)))
    return nullptr;
  return module;
}

namespace {

class StepVerifier {
public:
  explicit StepVerifier(ModuleOp module) : module(module) {}

  LogicalResult run() {
    findStep();
    if (step) {
      checkArguments();
      checkResults();
      checkBody();
    }
    return success(good);
  }

private:
  InFlightDiagnostic bad(Location loc) {
    good = false;
    return emitError(loc);
  }
  void findStep();
  void checkArguments();
  void checkResults();
  void checkBody();
  void checkKernel(func::FuncOp kernel);
  /// What the caller of a step gives memory for must fit into some.
  void checkMemory(RankedTensorType type, ArrayRef<int64_t> strides, Location loc, const Twine &what);
  /// The value of a string attribute, one of `known` where that is not empty.
  StringRef word(DictionaryAttr attributes, StringRef name, Location loc,
                 const Twine &what, ArrayRef<StringRef> known = {});

  ModuleOp module;
  func::FuncOp step;
  bool good = true;
  bool kernels = false; ///< There are some: the stage is `fused` or later.
};

void StepVerifier::findStep() {
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (function && function.getName() == "step") {
      step = function;
    } else if (function && function->hasAttr(attr::kernel)) {
      checkKernel(function);
    } else if (isa<ModuleOp>(op)) {
      bad(op.getLoc()) << "got the code of single kernels, a stage behind 'plan', "
                          "expected a step: novac goes on from the stages "
                          "graph, simplified, fused, configured and plan; "
                          "nova-opt runs passes on what comes later";
      return;
    } else
      bad(op.getLoc()) << "got " << op.getName()
                       << (function ? " @" + function.getName().str() : "")
                       << " beside the step, expected func.func @step alone";
  }
  if (!step) {
    bad(module.getLoc()) << "no function named step";
    return;
  }
  if (step.isExternal()) {
    bad(step.getLoc()) << "the function step has no body";
    step = nullptr;
    return;
  }
  if (!step->getAttrOfType<StringAttr>(attr::graph))
    bad(step.getLoc()) << "step: missing " << attr::graph
                       << ", expected the graph's name";
  else
    word(step->getAttrDictionary(), attr::graph, step.getLoc(), "step");
  if (!step.getBody().hasOneBlock())
    bad(step.getLoc()) << "step has " << step.getBody().getBlocks().size()
                       << " blocks, expected one";
}

StringRef StepVerifier::word(DictionaryAttr attributes, StringRef name,
                             Location loc, const Twine &what,
                             ArrayRef<StringRef> known) {
  auto value = attributes ? attributes.getAs<StringAttr>(name) : StringAttr();
  if (!value) {
    bad(loc) << what << ": missing the string " << name;
    return {};
  }
  // Names go to manifests, files, lines of text and C strings.
  if (llvm::any_of(value.getValue().bytes(), [](uint8_t c) { return c < 0x20 || c == 0x7f; })) {
    bad(loc) << what << ": " << name << ": got " << value
             << ", expected a string without control characters";
    return {};
  }
  if (known.empty() || llvm::is_contained(known, value.getValue()))
    return value.getValue();
  bad(loc) << what << ": " << name << ": got " << value << ", expected one of "
           << llvm::join(known, ", ");
  return {};
}

void StepVerifier::checkMemory(RankedTensorType type, ArrayRef<int64_t> strides,
                               Location loc, const Twine &what) {
  // As the reader of graphs has it: several times what any device has.
  constexpr int64_t mostBytes = int64_t{1} << 40;
  int64_t elements = 1;
  bool fits = true;
  for (auto [d, extent] : llvm::enumerate(type.getShape())) {
    if (extent == 0)
      return;
    int64_t reach;
    fits &= strides.empty()
                ? !llvm::MulOverflow(elements, extent, elements)
                : !llvm::MulOverflow(extent - 1, strides[d], reach) &&
                      !llvm::AddOverflow(elements, reach, elements);
  }
  int64_t size = std::max(type.getElementTypeBitWidth() / 8, 1u);
  if (!fits || elements > mostBytes / size)
    bad(loc) << what << ": got " << type << (strides.empty() ? "" : " with those strides")
             << ", expected at most " << mostBytes
             << " bytes: no device holds more";
}

void StepVerifier::checkArguments() {
  llvm::StringSet<> names;
  for (BlockArgument argument : step.getArguments()) {
    unsigned i = argument.getArgNumber();
    Location loc = argument.getLoc();
    std::string what = "step: argument " + std::to_string(i);
    DictionaryAttr attributes = step.getArgAttrDict(i);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !type.hasStaticShape()) {
      bad(loc) << what << ": got " << argument.getType()
               << ", expected a tensor of static shape";
      continue;
    }
    StringRef name = word(attributes, attr::name, loc, what);
    if (!name.empty() && !names.insert(name).second)
      bad(loc) << what << ": " << attr::name << ": \"" << name
               << "\" is taken, expected unique names";
    StringRef role = word(attributes, attr::role, loc, what,
                          {"parameter", "state", "buffer", "scalar", "input"});
    word(attributes, attr::path, loc, what);
    checkMemory(type, {}, loc, what);
    if (!attributes)
      continue;
    if (role == "scalar" && type.getRank() != 0)
      bad(loc) << what << ": got " << type << ", expected rank 0 for a scalar";
    if (Attribute strides = attributes.get(attr::strides)) {
      auto list = dyn_cast<DenseI64ArrayAttr>(strides);
      if (!list || list.size() != type.getRank() ||
          llvm::any_of(list.asArrayRef(), [](int64_t s) { return s < 0; }))
        bad(loc) << what << ": " << attr::strides << ": got " << strides
                 << ", expected array<i64> of " << type.getRank()
                 << " strides >= 0";
      else
        checkMemory(type, list.asArrayRef(), loc, what);
    }
    if (Attribute advance = attributes.get(attr::advance))
      if (role != "scalar" || !isa<FloatAttr>(advance) ||
          !cast<FloatAttr>(advance).getType().isF64())
        bad(loc) << what << ": " << attr::advance << ": got " << advance
                 << ", expected an f64, on a scalar only";
  }
}

void StepVerifier::checkResults() {
  if (step.getNumResults() == 0)
    bad(step.getLoc()) << "step has no result, expected at least one";
  llvm::SmallDenseMap<int64_t, unsigned> updated;
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    Location loc = step.getLoc();
    std::string what = "step: result " + std::to_string(i);
    DictionaryAttr attributes = step.getResultAttrDict(i);
    if (auto type = dyn_cast<RankedTensorType>(step.getResultTypes()[i]); type && type.hasStaticShape())
      checkMemory(type, {}, loc, what);
    StringRef role = word(attributes, attr::role, loc, what,
                          {"loss", "output", "gradient", "update"});
    Attribute updates = attributes ? attributes.get(attr::updates) : nullptr;
    if (role != "update") {
      if (updates)
        bad(loc) << what << ": " << attr::updates << ": got " << updates
                 << ", expected none for the role " << role;
      continue;
    }
    auto index = dyn_cast_or_null<IntegerAttr>(updates);
    if (!index || !index.getType().isInteger(64) || index.getInt() < 0 ||
        index.getInt() >= step.getNumArguments()) {
      auto diagnostic = bad(loc) << what << ": " << attr::updates << ": got ";
      (updates ? diagnostic << updates : diagnostic << "nothing")
          << ", expected an i64 in [0, " << step.getNumArguments() << ")";
      continue;
    }
    Type argument = step.getArgumentTypes()[index.getInt()];
    if (argument != step.getResultTypes()[i])
      bad(loc) << what << ": " << step.getResultTypes()[i]
               << " replaces argument " << index.getInt() << " of " << argument
               << ", expected the same type";
    auto [other, fresh] = updated.try_emplace(index.getInt(), i);
    if (!fresh)
      bad(loc) << what << ": argument " << index.getInt()
               << " is updated by result " << other->second
               << " already, expected one update";
  }
}

/// From the stage `fused` on (nova/Transforms/KernelContract.h).
void StepVerifier::checkKernel(func::FuncOp kernel) {
  kernels = true;
  std::string what = "kernel @" + kernel.getName().str();
  auto isStatic = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.hasStaticShape();
  };
  auto space = kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space);
  if (kernel.isExternal() || !kernel.isPrivate() || !kernel.getBody().hasOneBlock() || !space ||
      llvm::any_of(space.asArrayRef(), [](int64_t extent) { return extent < 0; }) ||
      !llvm::all_of(kernel.getArgumentTypes(), isStatic) ||
      !llvm::all_of(kernel.getResultTypes(), isStatic)) {
    bad(kernel.getLoc()) << what << ": expected a private function of one block on tensors of "
                            "static shape, with extents in "
                         << attr::space;
    return;
  }
  for (unsigned i = 0; i < kernel.getNumResults(); ++i) {
    auto map = kernel.getResultAttrOfType<DenseI64ArrayAttr>(i, attr::map);
    auto type = cast<RankedTensorType>(kernel.getResultTypes()[i]);
    bool fits = map && map.size() == type.getRank();
    // From `configured` on, dimensions of a result may be one of the space together.
    SmallVector<int64_t> extents(space.size(), 1);
    for (int64_t d = 0; fits && d < map.size(); ++d) {
      fits = map[d] >= -1 && map[d] < space.size();
      if (fits && map[d] >= 0)
        extents[map[d]] *= type.getDimSize(d);
    }
    for (int64_t d = 0; fits && d < map.size(); ++d)
      fits = map[d] < 0 || extents[map[d]] == space[map[d]];
    if (!fits)
      bad(kernel.getLoc()) << what << ": result " << i << ": expected " << attr::map
                           << " with a dimension of the space of the same extent, or -1, for each of "
                           << type.getRank();
  }
}

void StepVerifier::checkBody() {
  for (Operation &op : step.getBody().front())
    if (!isa_and_nonnull<NovaDialect>(op.getDialect()) ||
        (isa<LaunchOp>(op) && !kernels))
      if (!isa<func::ReturnOp>(op))
        bad(op.getLoc()) << "step: got " << op.getName()
                         << ", expected operations of the nova dialect";
}

} // namespace

LogicalResult nova::verifyStep(ModuleOp module) {
  return StepVerifier(module).run();
}
