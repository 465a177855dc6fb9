//===- PlanToManifest.cpp - A planned step as a bundle ---------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Pipelines/PlanToManifest.h"

#include "nova/IR/StridedView.h"
#include "nova/TileLowering/Passes.h"
#include "nova/Transforms/Candidates.h"
#include "nova/Transforms/KernelContract.h"
#include "nova/Transforms/KernelCosts.h"
#include "nova/Transforms/KernelGroups.h"
#include "nova/Transforms/Plan.h"
#include "nova/Transforms/RetypeUnsigned.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace nova;

/// Bytes a gradient bucket holds at most (the paper's section 3.2), unless one
/// gradient alone is larger.
static constexpr uint64_t kBucketBytes = 25u << 20;

static std::string dtypeName(Type type) {
  if (type.isF64()) return "float64";
  if (type.isF32()) return "float32";
  if (type.isBF16()) return "bfloat16";
  if (type.isF16()) return "float16";
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 1) return "bool";
  return (type.isUnsignedInteger() ? "uint" : "int") + std::to_string(width);
}

static std::string stringAttr(DictionaryAttr attrs, StringRef name) {
  auto attribute = attrs ? attrs.getAs<StringAttr>(name) : StringAttr();
  return attribute ? attribute.str() : "";
}

static void describeTensor(bundle::TensorDesc &desc, RankedTensorType type, DictionaryAttr attrs) {
  desc.role = stringAttr(attrs, attr::role);
  desc.path = stringAttr(attrs, attr::path);
  desc.dtype = dtypeName(type.getElementType());
  if (attrs && attrs.contains(attr::isUnsigned))
    desc.dtype = "u" + desc.dtype;
  desc.shape.assign(type.getShape().begin(), type.getShape().end());
  auto strides = attrs ? attrs.getAs<DenseI64ArrayAttr>(attr::strides) : DenseI64ArrayAttr();
  if (strides)
    desc.strides.assign(strides.asArrayRef().begin(), strides.asArrayRef().end());
  else
    desc.strides = bundle::contiguousStrides(desc.shape);
  desc.bytes = bundle::tensorBytes(desc.dtype, desc.shape, desc.strides).value_or(0);
}

static void describeSignature(func::FuncOp step, bundle::Manifest &manifest) {
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    bundle::TensorDesc desc;
    DictionaryAttr attrs = step.getArgAttrDict(i);
    describeTensor(desc, cast<RankedTensorType>(step.getArgumentTypes()[i]), attrs);
    desc.name = stringAttr(attrs, attr::name);
    if (auto advance = attrs ? attrs.getAs<FloatAttr>(attr::advance) : FloatAttr())
      desc.advance = bundle::hexFloat(advance.getValueAsDouble());
    manifest.inputs.push_back(std::move(desc));
  }
  for (unsigned i = 0; i < step.getNumResults(); ++i) {
    bundle::OutputDesc desc;
    DictionaryAttr attrs = step.getResultAttrDict(i);
    describeTensor(desc, cast<RankedTensorType>(step.getResultTypes()[i]), attrs);
    desc.name = stringAttr(attrs, attr::name);
    if (desc.name.empty()) // MLIR need not name results
      desc.name = "output" + std::to_string(i);
    if (auto updates = attrs ? attrs.getAs<IntegerAttr>(attr::updates) : IntegerAttr()) {
      const bundle::TensorDesc &input = manifest.inputs[updates.getInt()];
      desc.updates = updates.getInt();
      desc.strides = input.strides;
      desc.bytes = input.bytes;
      if (desc.path.empty())
        desc.path = input.path;
    }
    manifest.outputs.push_back(std::move(desc));
  }
}

std::vector<func::FuncOp> nova::launchedKernels(ModuleOp module) {
  llvm::SetVector<Operation *> kernels;
  SymbolTable symbols(module);
  findStep(module).walk([&](LaunchOp launch) { kernels.insert(symbols.lookup(launch.getKernel())); });
  std::vector<func::FuncOp> result;
  for (Operation *kernel : kernels)
    result.push_back(cast<func::FuncOp>(kernel));
  return result;
}

/// A schedule as attributes of the manifest; `attrs` are a kernel's own, or a
/// candidate's.
static bundle::Attributes describeSchedule(DictionaryAttr attrs) {
  bundle::Attributes schedule;
  for (auto [key, name] : {std::pair("tile", attr::tile), std::pair("local_tile", attr::localTile)}) {
    std::vector<bundle::AttrValue> values;
    if (auto array = attrs.getAs<DenseI64ArrayAttr>(name))
      for (int64_t value : array.asArrayRef())
        values.push_back(value);
    else if (StringRef(name) != attr::tile)
      continue;
    schedule[key] = values;
  }
  for (auto [key, name] : {std::pair("warps", attr::warps), std::pair("stages", attr::stages)})
    if (auto number = attrs.getAs<IntegerAttr>(name))
      schedule[key] = number.getInt();
  // What most kernels do not have.
  for (auto [key, name, without] :
       {std::tuple("teams", attr::teams, 1), std::tuple("persistent_blocks", attr::persistentBlocks, 0),
        std::tuple("raster_rows", attr::rasterRows, 1)})
    if (auto number = attrs.getAs<IntegerAttr>(name); number && number.getInt() > without)
      schedule[key] = number.getInt();
  for (auto [key, name] : {std::pair("family", attr::family), std::pair("reason", attr::reason)})
    if (auto text = attrs.getAs<StringAttr>(name); text || StringRef(name) == attr::reason)
      schedule[key] = text ? text.str() : "";
  return schedule;
}

/// The schedules that were at hand, best first: which one the code has, which were
/// tried before it and why not taken; or why it was, with faults of its own.
static std::vector<bundle::AttrValue> describeCandidates(func::FuncOp kernel, const GpuKernelCode &code) {
  std::vector<bundle::AttrValue> list;
  for (auto [i, candidate] : llvm::enumerate(candidatesOf(kernel))) {
    bundle::Attributes entry = describeSchedule(candidate);
    entry["predicted_ns"] = candidate.getAs<IntegerAttr>(attr::predictedNs).getInt();
    entry["state"] = i == code.candidate ? "taken" : "not tried";
    for (const Rejection &rejection : code.rejections)
      if (rejection.candidate == i) {
        entry["state"] = "rejected";
        entry["why"] = rejection.why;
      }
    if (i == code.candidate && !code.trouble.empty())
      entry["why"] = code.trouble + ": no candidate is without fault, and this one spills least";
    list.push_back(entry);
  }
  return list;
}

static bundle::Kernel describeKernelEntry(func::FuncOp kernel) {
  bundle::Kernel entry;
  entry.name = entry.symbol = kernel.getName().str();
  entry.grid = {(uint64_t)gridSize(kernel), 1, 1};
  entry.flops = kernelFlops(kernel);
  entry.bytes = kernelBytes(kernel);
  auto predicted = kernel->getAttrOfType<IntegerAttr>(attr::predictedNs);
  entry.predictedNs = predicted ? predicted.getInt() : 0;
  entry.schedule = describeSchedule(kernel->getDiscardableAttrDictionary());
  entry.schedule["results"] = static_cast<int64_t>(kernel.getNumResults());
  entry.schedule["role"] = stringAttr(kernel->getDiscardableAttrDictionary(), attr::role);
  std::vector<bundle::AttrValue> space;
  for (int64_t extent : kernel->getAttrOfType<DenseI64ArrayAttr>(attr::space).asArrayRef())
    space.push_back(extent);
  entry.schedule["space"] = space;
  uint64_t pointers = kernel.getNumArguments() + kernel.getNumResults();
  if (auto group = groupOf(kernel)) {
    entry.schedule["members"] = static_cast<int64_t>(group->members);
    entry.params = {{bundle::ParamKind::Pointers, pointers * bundle::kPointerBytes, bundle::kPointerBytes}};
  } else {
    entry.params.assign(pointers, bundle::Param{});
  }
  return entry;
}

static bundle::LaunchArg launchArg(PlaceAttr place) {
  uint32_t index = place.getIndex();
  uint64_t offset = place.getOffset();
  switch (place.getKind()) {
  case PlaceKind::arena: return bundle::BufferRef{index, offset};
  case PlaceKind::input: return bundle::InputRef{index, offset};
  case PlaceKind::output: return bundle::OutputRef{index, offset};
  case PlaceKind::constant: return bundle::ConstantRef{index, offset};
  }
  llvm_unreachable("a place is one of four");
}

static void describeLaunches(func::FuncOp step, ArrayRef<func::FuncOp> kernels, bundle::Target &target) {
  llvm::StringMap<uint32_t> indices;
  for (auto [i, kernel] : llvm::enumerate(kernels))
    indices[func::FuncOp(kernel).getName()] = i;
  for (Operation &op : step.getBody().front()) {
    bundle::Launch launch;
    if (auto kernelLaunch = dyn_cast<LaunchOp>(op)) {
      launch.kernel = indices[kernelLaunch.getKernel()];
      for (Attribute place : op.getAttrOfType<ArrayAttr>(attr::places))
        launch.args.push_back(launchArg(cast<PlaceAttr>(place)));
      for (Attribute node : kernelLaunch.getNodes())
        launch.nodes.push_back(cast<StringAttr>(node).str());
    } else if (auto transfer = dyn_cast<TransferOp>(op)) {
      launch.kind = bundle::LaunchKind::Copy;
      launch.args = {launchArg(transfer.getTo()), launchArg(transfer.getFrom()),
                     bundle::Immediate{(uint64_t)transfer.getBytes(), "int64"}};
    } else {
      continue;
    }
    for (int64_t before : op.getAttrOfType<DenseI64ArrayAttr>(attr::after).asArrayRef())
      launch.after.push_back(before);
    target.launches.push_back(std::move(launch));
  }
}

static void describeArena(func::FuncOp step, bundle::Target &target) {
  auto arena = step->getAttrOfType<DictionaryAttr>(attr::arena);
  target.arena.size = arena.getAs<IntegerAttr>("size").getInt();
  target.arena.lowerBound = arena.getAs<IntegerAttr>("lower_bound").getInt();
  for (Attribute attribute : arena.getAs<ArrayAttr>("buffers")) {
    auto buffer = cast<BufferAttr>(attribute);
    bundle::ArenaBuffer entry{(uint64_t)buffer.getOffset(), (uint64_t)buffer.getSize(),
                              (uint32_t)buffer.getFirst(), (uint32_t)buffer.getLast(), std::nullopt};
    if (buffer.getAlias() >= 0)
      entry.alias = buffer.getAlias();
    target.arena.buffers.push_back(entry);
  }
}

/// All constants of the step in one blob, each at a multiple of the arena's
/// alignment; bool as one byte each.
static void describeConstants(func::FuncOp step, bundle::Bundle &result, bundle::Target &target) {
  std::string bytes;
  for (auto constant : step.getOps<ConstantOp>()) {
    auto value = cast<DenseElementsAttr>(constant.getValue());
    bytes.resize((bytes.size() + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment);
    uint64_t offset = bytes.size();
    if (value.getElementType().isInteger(1)) {
      for (bool bit : value.getValues<bool>())
        bytes.push_back(bit);
    } else if (value.isSplat()) {
      for (int64_t i = 0; i < value.getNumElements(); ++i)
        bytes.append(value.getRawData().data(), value.getRawData().size());
    } else {
      bytes.append(value.getRawData().data(), value.getRawData().size());
    }
    target.constants.push_back({0, offset, bytes.size() - offset});
  }
  if (target.constants.empty())
    return;
  uint32_t blob = result.addBlob(bundle::kMediaData, std::move(bytes));
  for (bundle::Constant &constant : target.constants)
    constant.blob = blob;
}

/// Per output that is a gradient, the launch after which it is final; in that
/// order.
static std::vector<std::pair<uint32_t, uint32_t>> finalGradients(const bundle::Manifest &manifest,
                                                                 const bundle::Target &target) {
  std::vector<std::pair<uint32_t, uint32_t>> ready; // launch, output
  for (uint32_t output = 0; output < manifest.outputs.size(); ++output) {
    if (manifest.outputs[output].role != "gradient")
      continue;
    // A reader of the gradient touches it too; the first toucher wrote it.
    uint32_t first = 0;
    for (uint32_t launch = target.launches.size(); launch-- > 0;)
      for (const bundle::LaunchArg &arg : target.launches[launch].args)
        if (auto *ref = std::get_if<bundle::OutputRef>(&arg); ref && ref->output == output)
          first = launch;
    ready.push_back({first, output});
  }
  llvm::sort(ready);
  return ready;
}

/// Gradients in the order in which they are final, cut into buckets.
static void cutBuckets(bundle::Manifest &manifest, const bundle::Target &target) {
  for (auto [launch, output] : finalGradients(manifest, target)) {
    uint64_t bytes = manifest.outputs[output].bytes;
    if (manifest.buckets.empty() || manifest.buckets.back().bytes + bytes > kBucketBytes)
      manifest.buckets.emplace_back();
    manifest.buckets.back().bytes += bytes;
    manifest.buckets.back().gradients.push_back(output);
  }
}

static void describeBucketReady(const bundle::Manifest &manifest, bundle::Target &target) {
  llvm::DenseMap<uint32_t, uint32_t> ready; // output to launch
  for (auto [launch, output] : finalGradients(manifest, target))
    ready[output] = launch;
  for (const bundle::Bucket &bucket : manifest.buckets) {
    uint32_t last = 0;
    for (uint32_t output : bucket.gradients)
      last = std::max(last, ready.lookup(output));
    target.bucketReady.push_back(last);
  }
}

/// Whether a contraction reads 16-bit tensors: then the bf16 column judges.
static bool multiplies16Bit(func::FuncOp kernel) {
  bool found = false;
  kernel.walk([&](linalg::GenericOp op) {
    if (op.getNumReductionLoops() == 0 || op.getNumDpsInputs() < 2)
      return;
    for (Value input : op.getDpsInputs()) {
      Type element = getElementTypeOrSelf(input.getType());
      found |= isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 16;
    }
  });
  return found;
}

bundle::Bundle nova::startBundle(ModuleOp planned, const ManifestFacts &facts) {
  bundle::Bundle result;
  bundle::Manifest &manifest = result.manifest;
  manifest.name = facts.name;
  manifest.graphDigest = facts.graphDigest;
  manifest.producer = facts.producer;
  manifest.numerics = facts.numerics;
  describeSignature(findStep(planned), manifest);
  manifest.numerics.graph16bit = llvm::any_of(launchedKernels(planned), multiplies16Bit);
  return result;
}

/// The tensor maps of a kernel become its last parameters, and arguments of all its
/// launches.
static void describeTensorMaps(bundle::Target &target, uint32_t kernel, ArrayRef<TensorMapParam> maps) {
  for (size_t i = 0; i < maps.size(); ++i)
    target.kernels[kernel].params.push_back(
        {bundle::ParamKind::TensorMap, kTensorMapBytes, kTensorMapAlignment});
  for (bundle::Launch &launch : target.launches) {
    if (launch.kernel != kernel)
      continue;
    for (const TensorMapParam &param : maps) {
      bundle::TensorMap map;
      std::visit(
          [&](const auto &memory) {
            if constexpr (std::is_constructible_v<bundle::MemoryRef, decltype(memory)>)
              map.memory = memory;
          },
          launch.args[param.argument]);
      map.elementType = param.element;
      map.rank = param.sizes.size();
      map.sizes = param.sizes;
      map.strides = param.strides;
      map.box = param.box;
      map.elementStrides.assign(map.rank, 1);
      map.swizzle = "128b";
      map.l2Promotion = "256b";
      launch.args.push_back(std::move(map));
    }
  }
}

static void describeGpuCode(bundle::Bundle &result, bundle::Kernel &entry, GpuKernelCode &code) {
  entry.blob = result.addBlob(bundle::kMediaCubin, std::move(code.cubin));
  entry.ptxBlob = result.addBlob(bundle::kMediaPtx, std::move(code.ptx));
  // Of an empty space, too: its kernel returns.
  entry.grid[0] = std::max<uint64_t>(code.blocks, 1);
  entry.block[0] = code.threads;
  for (int i = 0; i < 3; ++i)
    entry.cluster[i] = code.cluster[i];
  entry.dynamicSharedBytes = code.dynamicSharedBytes;
  entry.staticSharedBytes = code.staticSharedBytes;
  entry.registers = code.registers;
  entry.spillBytes = code.spillBytes;
}

static void needFeature(bundle::Manifest &manifest, StringRef name) {
  if (!llvm::is_contained(manifest.features, name))
    manifest.features.push_back(name.str());
}

void nova::addTarget(bundle::Bundle &result, ModuleOp planned, TargetCode code) {
  func::FuncOp step = findStep(planned);
  bundle::Manifest &manifest = result.manifest;
  bundle::Target target;
  target.name = code.name;
  target.device = code.device;
  target.minDriver = code.minDriver;
  target.ptxVersion = code.ptxVersion;
  std::vector<func::FuncOp> kernels = launchedKernels(planned);
  if (code.name == "host") {
    uint32_t blob = result.addBlob(bundle::kMediaHost, std::move(code.object));
    for (func::FuncOp kernel : kernels) {
      target.kernels.push_back(describeKernelEntry(kernel));
      target.kernels.back().blob = blob;
    }
  } else {
    for (auto [kernel, compiled] : llvm::zip_equal(kernels, code.kernels)) {
      target.kernels.push_back(describeKernelEntry(kernel));
      bundle::Attributes &schedule = target.kernels.back().schedule;
      if (groupOf(kernel))
        needFeature(manifest, bundle::kFeaturePointerTables);
      schedule["candidates"] = describeCandidates(kernel, compiled);
      if (auto dropped = func::FuncOp(kernel)->getAttrOfType<ArrayAttr>(attr::dropped)) {
        std::vector<bundle::AttrValue> lines;
        for (Attribute line : dropped)
          lines.push_back(cast<StringAttr>(line).str());
        schedule["dropped"] = lines;
      }
      describeGpuCode(result, target.kernels.back(), compiled);
    }
  }
  describeLaunches(step, kernels, target);
  for (auto [i, compiled] : llvm::enumerate(code.kernels))
    describeTensorMaps(target, i, compiled.tensorMaps);
  describeArena(step, target);
  describeConstants(step, result, target);
  if (manifest.targets.empty())
    cutBuckets(manifest, target);
  describeBucketReady(manifest, target);
  manifest.targets.push_back(std::move(target));
}
