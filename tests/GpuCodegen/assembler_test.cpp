//===- assembler_test.cpp - PTX to machine code, by the real ptxas --------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "HandWritten.h"
#include "nova/GpuCodegen/PtxEmitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

using namespace nova;
using namespace nova::test;
namespace fs = std::filesystem;

namespace {

/// A folder that stands in for everything of the system, gone at the end.
struct Folder {
  Folder() {
    std::string model = (fs::temp_directory_path() / "nova-test-XXXXXX");
    path = ::mkdtemp(model.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::string executable(const std::string &name, const std::string &script) {
    fs::path file = path / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\n" << script;
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
  fs::path path;
};

/// While it lives, temporary files go to a folder of their own.
struct TemporaryFolder : Folder {
  TemporaryFolder() {
    const char *old = std::getenv("TMPDIR");
    before = old ? old : "";
    ::setenv("TMPDIR", path.c_str(), 1);
  }
  ~TemporaryFolder() {
    if (before.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", before.c_str(), 1);
  }
  size_t files() const {
    return std::distance(fs::directory_iterator(path), {});
  }
  std::string before;
};

const char kVersion[] =
    "echo 'Cuda compilation tools, release 11.8, V11.8.89'\n";

GpuKernelCode compile(const char *text, const char *device) {
  Context context;
  uint32_t threads = text == kVectorAdd ? 256 : text == kMma ? 32 : 128;
  GpuKernelModule kernel = context.parse(text, threads);
  std::string name = text == kVectorAdd ? "vector_add"
                     : text == kShared  ? "shared"
                     : text == kMma     ? "mma"
                                        : "hopper";
  if (!assembler())
    return {};
  Expected<GpuKernelCode> code =
      compileGpuKernel(kernel, name, *target::findTarget(device), assembler());
  EXPECT_TRUE(code) << device << ": " << (code ? "" : code.error().message);
  return code ? std::move(*code) : GpuKernelCode{};
}

} // namespace

//===----------------------------------------------------------------------===//
// Assembling
//===----------------------------------------------------------------------===//

TEST(Assembler, EveryKernelForEveryArchitecture) {
  for (const PtxTarget &target : ptxTargets()) {
    std::string arch(target.arch);
    for (const char *text : {kVectorAdd, kShared, kMma}) {
      GpuKernelCode code = compile(text, arch.c_str());
      EXPECT_EQ(code.cubin.substr(0, 4), "\x7f"
                                         "ELF")
          << arch;
      EXPECT_GE(code.registers, 8u) << arch;
      EXPECT_EQ(code.spillBytes, 0u) << arch;
      EXPECT_TRUE(code.warnings.empty()) << arch << code.warnings[0].text;
      // ptxas pads to the alignment of the dynamic part, which comes behind.
      uint64_t shared = text == kMma ? 512 : text == kShared ? 1024 : 0;
      EXPECT_EQ(code.staticSharedBytes, shared) << arch;
    }
  }
  for (const char *arch : {"sm_90a", "sm_100a"})
    EXPECT_EQ(compile(kHopper, arch).registers > 0, true) << arch;
}

TEST(Assembler, TheBytesAreTheSameInAnotherFolder) {
  std::string first = compile(kMma, "sm_90a").cubin;
  TemporaryFolder other;
  EXPECT_EQ(compile(kMma, "sm_90a").cubin, first);
  EXPECT_EQ(first.find(other.path), first.npos);
  EXPECT_EQ(first.find("novac-"), first.npos);
  EXPECT_EQ(other.files(), 0u);
}

TEST(Assembler, RefusedPtxIsExplainedAndLeavesNoFiles) {
  TemporaryFolder folder;
  ASSERT_NE(assembler(), nullptr);
  Expected<Assembled> result = assembler()->assemble(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry f() { nonsense; }",
      "sm_80", "kernel 'f'");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Internal);
  const std::string &message = result.error().message;
  EXPECT_EQ(message.find("kernel 'f': ptxas " + assembler()->version() +
                         " refuses its PTX for sm_80:\n  ptxas PTX, line 4; "),
            0u)
      << message;
  EXPECT_EQ(message.find(folder.path), message.npos) << message;
  EXPECT_EQ(folder.files(), 0u);
}

TEST(Assembler, ATemporaryFolderThatIsNotThereIsNamed) {
  ASSERT_NE(assembler(), nullptr);
  TemporaryFolder folder;
  ::setenv("TMPDIR", (folder.path / "gone").c_str(), 1);
  Expected<Assembled> result = assembler()->assemble("", "sm_80", "kernel 'f'");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Missing);
  EXPECT_NE(result.error().message.find(folder.path / "gone"),
            std::string::npos)
      << result.error().message;
}

TEST(Assembler, LogIsRead) {
  Assembled result;
  parseAssemblerLog(R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'f' for 'sm_90a'
ptxas info    : (C7511) Potential Performance Loss: wgmma is serialized in function 'f'
ptxas info    : Function properties for f
    96 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 96 bytes cumulative stack size, 1024 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 1.000 ms
ptxas /tmp/k.ptx, line 12; warning : Instruction 'x' is slow
ptxas warning : (C7504) Potential Performance Loss: 'setmaxnreg' ignored
ptxas info    : Compiling entry function 'g' for 'sm_90a'
ptxas info    : Function properties for g
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
)",
                    "/tmp/k.ptx", result);
  ASSERT_EQ(result.entries.size(), 2u);
  const AssembledEntry &f = result.entries[0];
  EXPECT_EQ(f.name, "f");
  EXPECT_EQ(f.registers, 168u);
  EXPECT_EQ(f.stackBytes, 96u);
  EXPECT_EQ(f.spillStoreBytes, 40u);
  EXPECT_EQ(f.spillLoadBytes, 44u);
  EXPECT_EQ(f.staticSharedBytes, 1024u);
  EXPECT_EQ(result.entries[1].registers, 8u);
  EXPECT_EQ(result.entries[1].staticSharedBytes, 0u);
  ASSERT_EQ(result.warnings.size(), 3u);
  EXPECT_EQ(result.warnings[0].code, "C7511");
  EXPECT_EQ(result.warnings[0].text,
            "Potential Performance Loss: wgmma is serialized in function 'f'");
  EXPECT_EQ(result.warnings[1].code, "");
  EXPECT_EQ(result.warnings[1].text, "line 12: Instruction 'x' is slow");
  EXPECT_EQ(result.warnings[2].code, "C7504");
}

//===----------------------------------------------------------------------===//
// The device's limits
//===----------------------------------------------------------------------===//

TEST(CompileGpuKernel, WhatABlockCannotHaveIsNamedWithTheLimit) {
  ASSERT_NE(assembler(), nullptr);
  Context context;
  const target::Device &device = *target::findTarget("rtx3060");
  GpuKernelModule kernel = context.parse(kShared, 128, 101000);
  Expected<GpuKernelCode> code =
      compileGpuKernel(kernel, "shared", device, assembler());
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message,
            "kernel 'shared': bytes of shared memory of a block: 102024, "
            "rtx3060 has at most 101376");
  kernel.threads = 1056;
  code = compileGpuKernel(kernel, "shared", device, assembler());
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message, "kernel 'shared': threads of a block: 1056, "
                                  "rtx3060 has at most 1024");
}

TEST(CompileGpuKernel, ABlockIsOfTheSizeThatTheCodeIsFor) {
  Context context;
  GpuKernelModule kernel = context.parse(kShared, 64);
  Expected<GpuKernelCode> code =
      compileGpuKernel(kernel, "shared", *target::findTarget("h200"), nullptr);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message,
            "kernel 'shared': a block of 64 threads, its code is for 128");
}

TEST(CompileGpuKernel, PtxNeedsNoAssembler) {
  Context context;
  GpuKernelModule kernel = context.parse(kShared, 128, 512);
  Expected<GpuKernelCode> code =
      compileGpuKernel(kernel, "shared", *target::findTarget("h200"), nullptr);
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_NE(code->ptx.find(".entry shared"), std::string::npos);
  EXPECT_TRUE(code->cubin.empty());
  EXPECT_EQ(code->dynamicSharedBytes, 512u);
}

//===----------------------------------------------------------------------===//
// Finding it
//===----------------------------------------------------------------------===//

TEST(Assembler, IsWhoItSaysItIs) {
  ASSERT_NE(assembler(), nullptr);
  EXPECT_GE(assembler()->cudaVersion(), 12080u);
  EXPECT_EQ(assembler()->digest().size(), sizeof("blake3:") - 1 + 64);
}

TEST(Assembler, TheFirstPlaceThatHasOneCounts) {
  Folder folder;
  AssemblerSearch search;
  search.fallback = folder.path / "fallback";
  std::vector<std::string> order = {
      folder.executable("given", kVersion),
      folder.executable("home/bin/ptxas", kVersion),
      folder.executable("cuda/bin/ptxas", kVersion),
      folder.executable("path/ptxas", kVersion),
      folder.executable("fallback/ptxas", kVersion)};
  search.given = order[0];
  search.cudaHome = folder.path / "home";
  search.cudaPath = folder.path / "cuda";
  search.path = "/nowhere:" + (folder.path / "path").string();
  for (size_t i = 0; i < order.size(); ++i) {
    Expected<Assembler> found = Assembler::find(search);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->path(), order[i]);
    EXPECT_EQ(found->version(), "11.8.89");
    EXPECT_EQ(found->cudaVersion(), 11080u);
    fs::remove(order[i]);
    search.given.clear();
  }
  Expected<Assembler> found = Assembler::find(search);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::Missing);
  std::string at = folder.path;
  EXPECT_EQ(found.error().message,
            "no assembler for GPU targets: ptxas is in none of CUDA_HOME '" +
                at + "/home/bin/ptxas', CUDA_PATH '" + at +
                "/cuda/bin/ptxas', PATH, '" + at + "/fallback/ptxas'");
  EXPECT_NE(found.error().hint.find("nvidia-cuda-nvcc 13.0.88"),
            std::string::npos);
}

TEST(Assembler, IsRememberedAsLongAsItIsTheSameFile) {
  Folder folder;
  AssemblerSearch search;
  search.given = folder.executable("ptxas", "echo asked >> " + (folder.path / "log").string() + "\n" + kVersion);
  search.memo = folder.path / "memo";
  auto asked = [&] {
    std::ifstream log(folder.path / "log");
    return std::count(std::istreambuf_iterator<char>(log), {}, '\n');
  };
  // A file that young may change again without another time of change.
  ASSERT_TRUE(Assembler::find(search));
  EXPECT_FALSE(fs::exists(search.memo));
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));
  Expected<Assembler> first = Assembler::find(search);
  Expected<Assembler> second = Assembler::find(search);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(asked(), 2);
  EXPECT_EQ(second->version(), "11.8.89");
  EXPECT_EQ(second->cudaVersion(), 11080u);
  EXPECT_EQ(second->digest(), first->digest());
  // What is remembered is checked, too.
  fs::path memo = fs::directory_iterator(search.memo)->path();
  std::ofstream(memo, std::ios::app) << "x";
  ASSERT_TRUE(Assembler::find(search));
  EXPECT_EQ(asked(), 3);
  // Another program there, with the time of the old one.
  fs::file_time_type time = fs::last_write_time(search.given);
  folder.executable("ptxas", "echo asked >> " + (folder.path / "log").string() + "\n" + kVersion + "# other\n");
  fs::last_write_time(search.given, time);
  Expected<Assembler> third = Assembler::find(search);
  ASSERT_TRUE(third);
  EXPECT_EQ(asked(), 4);
  EXPECT_NE(third->digest(), first->digest());
}

TEST(Assembler, AGivenPathIsTheOnlyPlace) {
  AssemblerSearch search;
  search.path = "/usr/bin:/bin";
  search.given = "/nowhere/ptxas";
  Expected<Assembler> found = Assembler::find(search);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::Missing);
  EXPECT_EQ(found.error().message,
            "--ptxas '/nowhere/ptxas': there is no such file");
  Folder folder;
  search.given = folder.path;
  found = Assembler::find(search);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "--ptxas '" + folder.path.string() + "': it cannot be executed");
}

TEST(Assembler, AnotherProgramIsRefused) {
  Folder folder;
  AssemblerSearch search;
  search.given = folder.executable("ptxas", "echo GNU assembler\n");
  Expected<Assembler> found = Assembler::find(search);
  ASSERT_FALSE(found);
  EXPECT_EQ(
      found.error().message,
      "'" + search.given +
          "' is no ptxas: with --version it prints 'GNU "
          "assembler', expected 'release 13.0, V13.0.88' or another version");
}

TEST(Assembler, OneThatIsTooOldIsNamed) {
  Folder folder;
  AssemblerSearch search;
  search.given = folder.executable("ptxas", kVersion);
  Expected<Assembler> old = Assembler::find(search);
  ASSERT_TRUE(old);
  Expected<Assembled> result = old->assemble("", "sm_120a", "kernel 'f'");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Missing);
  EXPECT_EQ(result.error().message,
            "ptxas 11.8.89 ('" + search.given +
                "') is too old for sm_120a, "
                "whose PTX 8.7 needs CUDA 12.8 or later");
}

TEST(Assembler, ACrashIsAnError) {
  Folder folder;
  AssemblerSearch search;
  search.given = folder.executable(
      "ptxas", "case $1 in --version) echo 'release 13.0, V13.0.1';; "
               "*) kill -SEGV $$;; esac\n");
  Expected<Assembler> crashing = Assembler::find(search);
  ASSERT_TRUE(crashing) << crashing.error().message;
  Expected<Assembled> result = crashing->assemble("x", "sm_80", "kernel 'f'");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::Internal);
  EXPECT_EQ(result.error().message.find(
                "kernel 'f': ptxas 13.0.1 refuses its PTX for sm_80:\n"),
            0u)
      << result.error().message;
}
