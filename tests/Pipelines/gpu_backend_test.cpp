//===- gpu_backend_test.cpp - A planned step to machine code for a GPU ----===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The lowering is replaced: what it would make of a kernel is one store to its
// last parameter.
//
//===----------------------------------------------------------------------===//
#include "nova/Import/Import.h"
#include "nova/Pipelines/GpuBackend.h"
#include "nova/Pipelines/HostBackend.h"
#include "nova/Pipelines/Pipelines.h"
#include "nova/Pipelines/PlanToManifest.h"
#include "nova/Transforms/Candidates.h"
#include "nova/Transforms/KernelContract.h"

#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/ThreadPool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace mlir;
using namespace nova;
namespace fs = std::filesystem;

namespace {

/// Two kernels, one of which is launched twice.
const char kStep[] = R"mlir(
!t = tensor<2x3xf32>
func.func @step(%w: !t {nova.name = "w", nova.path = "w", nova.role = "parameter"},
                %x: !t {nova.name = "x", nova.path = "x", nova.role = "input"},
                %lr: tensor<f32> {nova.name = "lr", nova.path = "lr", nova.role = "scalar"})
    -> (tensor<f32> {nova.name = "loss", nova.role = "loss"},
        !t {nova.name = "gradient", nova.role = "gradient"},
        !t {nova.name = "new_w", nova.role = "update", nova.updates = 0 : i64})
    attributes {nova.graph = "small"} {
  %g = nova.mul %x, %x : (!t, !t) -> !t
  %p = nova.mul %w, %g : (!t, !t) -> !t
  %loss = nova.sum %p {dims = array<i64: 0, 1>} : (!t) -> tensor<f32>
  %d = nova.mul %g, %lr : (!t, tensor<f32>) -> !t
  %n = nova.sub %w, %d : (!t, !t) -> !t
  return %loss, %g, %n : tensor<f32>, !t, !t
}
)mlir";

const target::Device &h200() { return *target::findTarget("h200"); }

const Assembler *assembler() {
  static const std::optional<Assembler> found =
      []() -> std::optional<Assembler> {
    AssemblerSearch search;
    search.given = NOVA_PTXAS;
    Expected<Assembler> assembler = Assembler::find(search);
    if (!assembler) {
      ADD_FAILURE() << assembler.error().message
                    << "; scripts/setup.sh installs an assembler";
      return std::nullopt;
    }
    return *assembler;
  }();
  return found ? &*found : nullptr;
}

/// `body` in a kernel of that name with the parameters of the kernel function.
GpuKernelModule kernelWith(func::FuncOp kernel, const std::string &body,
                           uint32_t threads = 64) {
  unsigned params = kernel.getNumArguments() + kernel.getNumResults();
  std::string text = "llvm.func @" + kernel.getSymName().str() + "(";
  for (unsigned i = 0; i < params; ++i)
    text += (i ? ", %p" : "%p") + std::to_string(i) + ": !llvm.ptr<1>";
  text += ") attributes {nvvm.kernel, nvvm.reqntid = array<i32: " +
          std::to_string(threads) + ">} {\n" + body + "  llvm.return\n}\n";
  GpuKernelModule result;
  result.module = parseSourceString<ModuleOp>(text, kernel.getContext());
  EXPECT_TRUE(result.module) << text;
  result.threads = threads;
  result.dynamicSharedBytes = 256;
  return result;
}

Expected<GpuKernelModule> storeOne(func::FuncOp kernel, const target::Device &,
                                   const GpuLoweringOptions &) {
  unsigned last = kernel.getNumArguments() + kernel.getNumResults() - 1;
  return kernelWith(kernel, "  %one = llvm.mlir.constant(1.0 : f32) : f32\n"
                            "  llvm.store %one, %p" +
                                std::to_string(last) +
                                " : f32, !llvm.ptr<1>\n");
}

struct GpuBackend : testing::Test {
  GpuBackend() {
    loadGraphDialects(context);
    step = parseSourceString<ModuleOp>(kStep, &context);
    EXPECT_TRUE(step);
    options.device = &h200();
    options.assembler = assembler();
    options.lower = storeOne;
  }

  /// The step at stage `plan` for a device.
  OwningOpRef<ModuleOp> plannedFor(std::string_view device) {
    OwningOpRef<ModuleOp> module = step->clone();
    PassManager manager(&context);
    PipelineOptions pipeline;
    pipeline.device = device;
    buildPipeline(manager, pipeline, Stage::Plan);
    EXPECT_TRUE(succeeded(manager.run(*module)));
    return module;
  }

  std::string errorOf(ModuleOp planned) {
    Expected<std::vector<GpuKernelCode>> codes =
        compileForGpu(planned, options, pool);
    EXPECT_FALSE(codes);
    return codes ? "" : codes.error().message;
  }

  MLIRContext context;
  llvm::DefaultThreadPool pool{llvm::hardware_concurrency(2)};
  OwningOpRef<ModuleOp> step;
  GpuBackendOptions options;
};

} // namespace

TEST_F(GpuBackend, EveryKernelIsCompiledOnceInTheOrderOfItsFirstLaunch) {
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  std::vector<std::string> done;
  Expected<std::vector<GpuKernelCode>> codes =
      compileForGpu(*planned, options, pool, [&](const KernelDone &kernel) {
        done.push_back(kernel.kernel);
      });
  ASSERT_TRUE(codes) << codes.error().message;
  std::vector<func::FuncOp> kernels = launchedKernels(*planned);
  ASSERT_EQ(codes->size(), kernels.size());
  ASSERT_GE(kernels.size(), 2u);
  EXPECT_EQ(done.size(), kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const GpuKernelCode &code = (*codes)[i];
    EXPECT_NE(code.ptx.find(".entry " + kernels[i].getSymName().str() + "("),
              std::string::npos);
    EXPECT_FALSE(code.cubin.empty());
    EXPECT_GT(code.registers, 0u);
    EXPECT_EQ(code.threads, 64u);
  }
  // Other threads, the same bytes.
  llvm::DefaultThreadPool one{llvm::hardware_concurrency(1)};
  Expected<std::vector<GpuKernelCode>> again =
      compileForGpu(*planned, options, one);
  ASSERT_TRUE(again);
  for (size_t i = 0; i < codes->size(); ++i) {
    EXPECT_EQ((*again)[i].ptx, (*codes)[i].ptx);
    EXPECT_EQ((*again)[i].cubin, (*codes)[i].cubin);
  }
}

TEST_F(GpuBackend, ABundleOfTwoTargetsIsOneThatTheReaderAccepts) {
  OwningOpRef<ModuleOp> forGpu = plannedFor("h200");
  OwningOpRef<ModuleOp> forCpu = plannedFor("x86-64-v3");
  Expected<std::vector<GpuKernelCode>> codes =
      compileForGpu(*forGpu, options, pool);
  ASSERT_TRUE(codes) << codes.error().message;
  Expected<std::string> object = compileForHost(*forCpu, pool);
  ASSERT_TRUE(object) << object.error().message;
  ManifestFacts facts;
  facts.name = "small";
  facts.graphDigest = "sha256:" + std::string(64, '0');
  facts.numerics.matmul = "tf32";
  bundle::Bundle bundle = startBundle(*forGpu, facts);
  TargetCode gpu;
  gpu.name = "sm_90a";
  gpu.device = "h200";
  gpu.kernels = *codes;
  gpu.minDriver = minimumDriver(h200(), assembler());
  gpu.ptxVersion = 80;
  addTarget(bundle, *forGpu, gpu);
  TargetCode cpu;
  cpu.object = *object;
  addTarget(bundle, *forCpu, cpu);

  Expected<bundle::Manifest> read =
      bundle::readManifest(bundle::writeManifest(bundle.manifest), "manifest");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->targets.size(), 2u);
  const bundle::Target &target = read->targets[0];
  EXPECT_EQ(target.minDriver, 13000u);
  EXPECT_EQ(target.ptxVersion, 80u);
  ASSERT_EQ(target.kernels.size(), codes->size());
  for (size_t i = 0; i < codes->size(); ++i) {
    const bundle::Kernel &kernel = target.kernels[i];
    EXPECT_EQ(bundle.blobs[kernel.blob], (*codes)[i].cubin);
    EXPECT_EQ(read->blobs[kernel.blob].mediaType, bundle::kMediaCubin);
    ASSERT_TRUE(kernel.ptxBlob);
    EXPECT_EQ(bundle.blobs[*kernel.ptxBlob], (*codes)[i].ptx);
    EXPECT_EQ(read->blobs[*kernel.ptxBlob].mediaType, bundle::kMediaPtx);
    EXPECT_EQ(kernel.block, (std::array<uint64_t, 3>{64, 1, 1}));
    EXPECT_EQ(kernel.grid[0], uint64_t(gridSize(launchedKernels(*forGpu)[i])));
    EXPECT_EQ(kernel.dynamicSharedBytes, 256u);
    EXPECT_EQ(kernel.registers, (*codes)[i].registers);
  }
  ASSERT_EQ(read->buckets.size(), 1u);
  EXPECT_EQ(target.bucketReady.size(), 1u);
  EXPECT_EQ(read->targets[1].bucketReady.size(), 1u);
  EXPECT_EQ(read->targets[1].name, "host");
}

TEST_F(GpuBackend, OfSeveralErrorsTheFirstByLaunchCounts) {
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  options.lower = [](func::FuncOp kernel, const target::Device &,
                     const GpuLoweringOptions &) -> Expected<GpuKernelModule> {
    return Error{ErrorCode::Internal, "no " + kernel.getSymName().str(), {}};
  };
  EXPECT_EQ(errorOf(*planned),
            "no " + launchedKernels(*planned)[0].getSymName().str());
}

TEST_F(GpuBackend, ACrashNamesItsKernelAndSparesTheOthers) {
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  std::string last = launchedKernels(*planned).back().getSymName().str();
  options.lower = [&](func::FuncOp kernel, const target::Device &device,
                      const GpuLoweringOptions &lowering) {
    if (kernel.getSymName() == last)
      std::abort();
    return storeOne(kernel, device, lowering);
  };
  EXPECT_EQ(errorOf(*planned),
            "kernel '" + last + "': the code generator crashed");
  options.lower = storeOne;
  EXPECT_TRUE(compileForGpu(*planned, options, pool));
}

TEST_F(GpuBackend, WhatTheArchitectureHasNotIsAnErrorWithLlvmsWords) {
  OwningOpRef<ModuleOp> planned = plannedFor("a100");
  options.device = target::findTarget("a100");
  options.lower = [](func::FuncOp kernel, const target::Device &,
                     const GpuLoweringOptions &) -> Expected<GpuKernelModule> {
    return kernelWith(kernel, "  nvvm.wgmma.fence.aligned\n");
  };
  std::string first = launchedKernels(*planned)[0].getSymName().str();
  std::string message = errorOf(*planned);
  EXPECT_EQ(message.find("kernel '" + first + "': Cannot select: "), 0u)
      << message;
  EXPECT_EQ(message.find('\n'), message.npos) << message;
}

TEST_F(GpuBackend, AnEmptySpaceNeedsNoLowering) {
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  Builder builder(&context);
  for (func::FuncOp kernel : launchedKernels(*planned)) {
    kernel->removeAttr(attr::candidates);
    kernel->setAttr(attr::space, builder.getDenseI64ArrayAttr({0}));
    kernel->setAttr(attr::tile, builder.getDenseI64ArrayAttr({1}));
  }
  options.lower = nullptr;
  Expected<std::vector<GpuKernelCode>> codes =
      compileForGpu(*planned, options, pool);
  ASSERT_TRUE(codes) << codes.error().message;
  EXPECT_EQ((*codes)[0].threads, 1u);
  EXPECT_FALSE((*codes)[0].cubin.empty());
}

TEST_F(GpuBackend, AGridBeyondTheLimitIsNamed) {
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  Builder builder(&context);
  func::FuncOp kernel = launchedKernels(*planned)[0];
  kernel->removeAttr(attr::candidates);
  kernel->setAttr(attr::space,
                  builder.getDenseI64ArrayAttr({int64_t(1) << 31}));
  kernel->setAttr(attr::tile, builder.getDenseI64ArrayAttr({1}));
  EXPECT_EQ(errorOf(*planned),
            "kernel '" + kernel.getSymName().str() +
                "': a grid of 2147483648 points, h200 has at most 2147483647");
}

/// A ptxas that says what a shell script prints: $threads is the size of the
/// kernel's block.
struct FakeAssembler {
  explicit FakeAssembler(const std::string &says) {
    std::string model = fs::temp_directory_path() / "nova-test-XXXXXX";
    folder = ::mkdtemp(model.data());
    fs::path script = folder / "ptxas";
    // -v -O3 -arch A -o OUT IN
    std::ofstream(script) << R"(#!/bin/sh
if [ "$1" = --version ]; then echo 'release 13.0, V13.0.1'; exit; fi
entry=$(sed -n 's/.*\.entry \([a-z0-9_]*\)(.*/\1/p' "$7")
threads=$(sed -n 's/.*\.reqntid \([0-9]*\).*/\1/p' "$7")
echo "ptxas info    : Compiling entry function '$entry' for '$4'"
)" << says << R"(
echo "ptxas info    : Used 255 registers"
echo cubin > "$6"
)";
    fs::permissions(script, fs::perms::owner_all);
    AssemblerSearch search;
    search.given = script;
    Expected<Assembler> found = Assembler::find(search);
    EXPECT_TRUE(found) << found.error().message;
    if (found)
      assembler = *found;
  }
  ~FakeAssembler() { fs::remove_all(folder); }

  fs::path folder;
  std::optional<Assembler> assembler;
};

/// A block of 64 threads for the first candidate, 96 for the second ...
static size_t candidateNumber(func::FuncOp kernel) {
  for (auto [i, candidate] : llvm::enumerate(candidatesOf(kernel)))
    if (llvm::all_of(candidate, [&](NamedAttribute attribute) {
          return kernel->getAttr(attribute.getName()) == attribute.getValue();
        }))
      return i;
  ADD_FAILURE() << "a schedule that is no candidate";
  return 0;
}

static Expected<GpuKernelModule> threadsByCandidate(func::FuncOp kernel,
                                                    const target::Device &,
                                                    const GpuLoweringOptions &) {
  return kernelWith(kernel, "", 64 + 32 * candidateNumber(kernel));
}

TEST_F(GpuBackend, WarningsOfTheAssemblerAreDiagnosticsOfTheKernel) {
  FakeAssembler fake("echo \"ptxas info    : (C7506) Potential Performance "
                     "Loss: something\"");
  options.assembler = &*fake.assembler;
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  std::vector<std::string> said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said.push_back(diagnostic.str());
  });
  Expected<std::vector<GpuKernelCode>> codes =
      compileForGpu(*planned, options, pool);
  ASSERT_TRUE(codes) << codes.error().message;
  EXPECT_TRUE((*codes)[0].rejections.empty());
  std::vector<func::FuncOp> kernels = launchedKernels(*planned);
  ASSERT_EQ(said.size(), kernels.size());
  EXPECT_EQ(said[0],
            "kernel '" + kernels[0].getSymName().str() +
                "' for h200: C7506: Potential Performance Loss: something");
}

TEST_F(GpuBackend, ASpillOrALostWgmmaTakesTheNextCandidate) {
  const std::pair<const char *, const char *> cases[] = {
      {"    8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads",
       "ptxas spills 12 bytes a thread"},
      {"ptxas info    : (C7511) Potential Performance Loss: wgmma serialized",
       "ptxas warns: C7511: Potential Performance Loss: wgmma serialized"}};
  options.lower = threadsByCandidate;
  for (auto [line, why] : cases) {
    FakeAssembler fake("if [ $threads = 64 ]; then echo \"" +
                       std::string(line) + "\"; fi");
    options.assembler = &*fake.assembler;
    OwningOpRef<ModuleOp> planned = plannedFor("h200");
    func::FuncOp kernel = launchedKernels(*planned)[0];
    SmallVector<DictionaryAttr> candidates = candidatesOf(kernel);
    ASSERT_GE(candidates.size(), 2u);
    Expected<std::vector<GpuKernelCode>> codes =
        compileForGpu(*planned, options, pool);
    ASSERT_TRUE(codes) << codes.error().message;
    const GpuKernelCode &code = (*codes)[0];
    EXPECT_EQ(code.candidate, 1u);
    EXPECT_EQ(code.spillBytes, 0u);
    EXPECT_TRUE(code.warnings.empty());
    ASSERT_EQ(code.rejections.size(), 1u);
    EXPECT_EQ(code.rejections[0].candidate, 0u);
    EXPECT_EQ(code.rejections[0].why, why);
    // The plan says what the code is.
    for (StringRef name : {attr::tile, attr::warps, attr::reason})
      EXPECT_EQ(kernel->getAttr(name), candidates[1].get(name));
  }
}

TEST_F(GpuBackend, OfCandidatesThatAllSpillTheOneWithLeastIsTakenAndWarnedOf) {
  FakeAssembler fake(R"(
if [ $threads = 96 ]; then spill=4; else spill=40; fi
echo "    8 bytes stack frame, 0 bytes spill stores, $spill bytes spill loads"
)");
  options.assembler = &*fake.assembler;
  options.lower = threadsByCandidate;
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  std::vector<std::string> said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said.push_back(diagnostic.str());
  });
  Expected<std::vector<GpuKernelCode>> codes =
      compileForGpu(*planned, options, pool);
  ASSERT_TRUE(codes) << codes.error().message;
  EXPECT_EQ((*codes)[0].candidate, 1u);
  EXPECT_EQ((*codes)[0].spillBytes, 4u);
  EXPECT_EQ((*codes)[0].trouble, "ptxas spills 4 bytes a thread");
  std::string kernel =
      "kernel '" + launchedKernels(*planned)[0].getSymName().str() +
      "' for h200: ";
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0], kernel + "it spills registers: 4 bytes are stored and "
                              "loaded per thread");
}

TEST_F(GpuBackend, ARefusalOfTheLoweringTakesTheNextCandidateADefectDoesNot) {
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  ErrorCode code = ErrorCode::BadInput;
  options.lower = [&](func::FuncOp kernel, const target::Device &device,
                      const GpuLoweringOptions &lowering)
      -> Expected<GpuKernelModule> {
    if (candidateNumber(kernel) == 0)
      return Error{code, "needs 300000 bytes", {}};
    return threadsByCandidate(kernel, device, lowering);
  };
  Expected<std::vector<GpuKernelCode>> codes =
      compileForGpu(*planned, options, pool);
  ASSERT_TRUE(codes) << codes.error().message;
  EXPECT_EQ((*codes)[0].candidate, 1u);
  ASSERT_EQ((*codes)[0].rejections.size(), 1u);
  EXPECT_EQ((*codes)[0].rejections[0].why, "needs 300000 bytes");
  // Without an assembler too.
  options.assembler = nullptr;
  planned = plannedFor("h200");
  Expected<OwningOpRef<ModuleOp>> lowered =
      lowerForGpu(*planned, options, pool);
  EXPECT_TRUE(lowered) << lowered.error().message;
  code = ErrorCode::Internal;
  EXPECT_EQ(errorOf(*planned), "needs 300000 bytes");
}

TEST_F(GpuBackend, LoweredKernelsStandInOneModule) {
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  Expected<OwningOpRef<ModuleOp>> lowered =
      lowerForGpu(*planned, options, pool);
  ASSERT_TRUE(lowered) << lowered.error().message;
  std::vector<std::string> names, expected;
  for (ModuleOp kernel : (*lowered)->getOps<ModuleOp>())
    names.push_back(kernel.getSymName()->str());
  for (func::FuncOp kernel : launchedKernels(*planned))
    expected.push_back(kernel.getSymName().str());
  EXPECT_EQ(names, expected);
  EXPECT_TRUE(succeeded((*lowered)->verify()));
}

TEST_F(GpuBackend, AKernelThatCannotBeLoweredIsNamedOnce) {
  OwningOpRef<ModuleOp> planned = plannedFor("h200");
  func::FuncOp kernel = launchedKernels(*planned)[0];
  kernel->removeAttr(attr::candidates);
  kernel->setAttr(attr::tile, Builder(&context).getDenseI64ArrayAttr({9}));
  options.lower = lowerKernelToNvvm;
  EXPECT_EQ(errorOf(*planned),
            "kernel '" + kernel.getSymName().str() +
                "': nova.tile holds 9, expected a power of two times 1, 3, 5 "
                "or 7");
}

TEST(MinimumDriver, ReadsThePtxAndIsOfTheAssemblersGeneration) {
  EXPECT_EQ(minimumDriver(*target::findTarget("sm_80"), nullptr), 12000u);
  EXPECT_EQ(minimumDriver(*target::findTarget("sm_100a"), nullptr), 12070u);
  EXPECT_EQ(minimumDriver(*target::findTarget("sm_120a"), nullptr), 12080u);
  ASSERT_NE(assembler(), nullptr);
  unsigned generation = assembler()->cudaVersion() / 1000 * 1000;
  EXPECT_EQ(minimumDriver(*target::findTarget("sm_80"), assembler()),
            std::max(12000u, generation));
}
