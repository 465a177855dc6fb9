//===- Assembler.cpp - PTX to machine code, by ptxas ----------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/GpuCodegen/Assembler.h"

#include "nova/GpuCodegen/PtxEmitter.h"
#include "nova/Support/File.h"
#include "nova/Support/Hash.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>

#include <sys/stat.h>

using namespace llvm;

namespace nova {

static const char kInstall[] =
    "install the CUDA toolkit, or the package nvidia-cuda-nvcc 13.0.88 from "
    "PyPI, and name its ptxas with --ptxas or its folder with CUDA_HOME";

static nova::Error missing(std::string message, std::string hint = {}) {
  return {ErrorCode::Missing, std::move(message), std::move(hint)};
}

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

namespace {
/// A temporary file that is gone when its owner is, and after a signal.
class Temporary {
public:
  static nova::Expected<Temporary> create(StringRef suffix) {
    SmallString<128> model;
    sys::path::system_temp_directory(true, model);
    sys::path::append(model, "novac-%%%%%%%%%%%%" + suffix);
    llvm::Expected<sys::fs::TempFile> file = sys::fs::TempFile::create(model);
    if (!file)
      return missing("cannot make a temporary file '" + model.str().str() +
                     "': " + toString(file.takeError()));
    return Temporary(std::move(*file));
  }
  Temporary(Temporary &&) = default;
  ~Temporary() {
    if (!file.TmpName.empty())
      consumeError(file.discard());
  }

  StringRef path() const { return file.TmpName; }

  Status write(StringRef bytes) {
    raw_fd_ostream os(file.FD, /*shouldClose=*/false);
    os << bytes;
    os.flush();
    std::error_code error = os.error();
    os.clear_error();
    if (error)
      return missing("cannot write temporary file '" + path().str() +
                     "': " + error.message());
    return Status::ok();
  }

  /// What is at the path now, whoever wrote it.
  nova::Expected<std::string> read() const {
    auto buffer = MemoryBuffer::getFile(path(), /*IsText=*/false,
                                        /*RequiresNullTerminator=*/false);
    if (!buffer)
      return missing("cannot read temporary file '" + path().str() +
                     "': " + buffer.getError().message());
    return (*buffer)->getBuffer().str();
  }

private:
  explicit Temporary(sys::fs::TempFile file) : file(std::move(file)) {}
  sys::fs::TempFile file;
};

struct Run {
  int status = 0;     ///< Of the process; negative: no exit status.
  std::string output; ///< Standard output and standard error.
};
} // namespace

static nova::Expected<Run> runProgram(StringRef program,
                                      ArrayRef<StringRef> arguments) {
  nova::Expected<Temporary> log = Temporary::create(".log");
  if (!log)
    return log.error();
  SmallVector<StringRef> all = {program};
  all.append(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(""), log->path(),
                                          log->path()};
  std::string why;
  Run run;
  run.status =
      sys::ExecuteAndWait(program, all, std::nullopt, redirects,
                          /*SecondsToWait=*/0, /*MemoryLimit=*/0, &why);
  nova::Expected<std::string> text = log->read();
  if (!text)
    return text.error();
  run.output = std::move(*text);
  if (run.status < 0)
    run.output += why + "\n";
  return run;
}

//===----------------------------------------------------------------------===//
// Finding it
//===----------------------------------------------------------------------===//

/// The executable, or an error that names every place that was looked at.
static nova::Expected<std::string> locate(const AssemblerSearch &search) {
  auto usable = [](StringRef path) {
    return sys::fs::can_execute(path) && !sys::fs::is_directory(path);
  };
  if (!search.given.empty()) {
    if (usable(search.given))
      return search.given;
    bool there = sys::fs::exists(search.given);
    return missing(
        "--ptxas '" + search.given +
            "': " + (there ? "it cannot be executed" : "there is no such file"),
        kInstall);
  }
  std::string places;
  auto look = [&](StringRef label, StringRef folder) -> std::string {
    SmallString<128> path(folder);
    sys::path::append(path, "ptxas");
    if (usable(path))
      return path.str().str();
    places += (places.empty() ? "" : ", ") + label.str() + "'" +
              path.str().str() + "'";
    return {};
  };
  for (auto [variable, root] : {std::pair("CUDA_HOME", &search.cudaHome),
                                std::pair("CUDA_PATH", &search.cudaPath)})
    if (root->empty())
      places +=
          (places.empty() ? "" : ", ") + std::string(variable) + " (not set)";
    else if (std::string found =
                 look(std::string(variable) + " ", *root + "/bin");
             !found.empty())
      return found;
  SmallVector<StringRef> folders;
  StringRef(search.path).split(folders, ':', -1, false);
  for (StringRef folder : folders) {
    SmallString<128> path(folder);
    sys::path::append(path, "ptxas");
    if (usable(path))
      return path.str().str();
  }
  places += ", PATH";
  if (!search.fallback.empty())
    if (std::string found = look("", search.fallback); !found.empty())
      return found;
  return missing("no assembler for GPU targets: ptxas is in none of " + places,
                 kInstall);
}

/// "13.0.88" in "Cuda compilation tools, release 13.0, V13.0.88".
static std::string versionIn(StringRef text) {
  StringRef rest = text.split("release ").second;
  StringRef version = rest.split(", V").second;
  return version.take_while([](char c) { return isDigit(c) || c == '.'; })
      .str();
}

/// 13000 of "13.0.88"; false for what is no version.
static bool cudaVersionOf(StringRef version, unsigned &cuda) {
  unsigned major = 0, minor = 0;
  auto [first, rest] = version.split('.');
  if (first.getAsInteger(10, major) ||
      rest.split('.').first.getAsInteger(10, minor))
    return false;
  cuda = 1000 * major + 10 * minor;
  return true;
}

//===----------------------------------------------------------------------===//
// What is remembered of it: a digest of the file, and
//
//   <path> <size> <inode> <modified> <changed>
//   <version>
//   <digest of the program>
//===----------------------------------------------------------------------===//

/// Says which file is at the path; empty for one that is not there, or so young
/// that it may change again without another time.
static std::string stampOf(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 ||
      std::time(nullptr) - std::max(info.st_mtime, info.st_ctime) < 2)
    return {};
  auto time = [](const timespec &when) {
    return std::to_string(when.tv_sec) + "." + std::to_string(when.tv_nsec);
  };
  return path + " " + std::to_string(info.st_size) + " " +
         std::to_string(info.st_ino) + " " + time(info.st_mtim) + " " +
         time(info.st_ctim);
}

static bool recall(const std::string &memo, const std::string &stamp,
                   std::string &version, std::string &digest) {
  nova::Expected<std::string> text = readFile(memo, "memo", 1 << 16);
  if (!text)
    return false;
  auto [said, rest] = StringRef(*text).split('\n');
  SmallVector<StringRef> lines;
  rest.split(lines, '\n', -1, false);
  if (said != sha256Hex(rest) || lines.size() != 3 || lines[0] != stamp)
    return false;
  version = lines[1].str();
  digest = lines[2].str();
  return true;
}

/// As well as it can: the next run can find it out again.
static void memoise(const std::string &memo, const std::string &stamp,
                    const std::string &version, const std::string &digest) {
  std::string text = stamp + "\n" + version + "\n" + digest + "\n";
  if (makeDirectories(sys::path::parent_path(memo).str()))
    (void)writeIfChanged(memo, sha256Hex(text) + "\n" + text);
}

nova::Expected<Assembler> Assembler::find(const AssemblerSearch &search) {
  nova::Expected<std::string> path = locate(search);
  if (!path)
    return path.error();
  Assembler assembler;
  assembler.executable = *path;
  std::string stamp = search.memo.empty() ? std::string() : stampOf(*path);
  std::string memo = search.memo + "/ptxas-" + sha256Hex(*path).substr(0, 16);
  if (!stamp.empty() && recall(memo, stamp, assembler.versionText,
                               assembler.contentDigest) &&
      cudaVersionOf(assembler.versionText, assembler.cuda))
    return assembler;
  nova::Expected<Run> run = runProgram(*path, {"--version"});
  if (!run)
    return run.error();
  assembler.versionText = versionIn(run->output);
  if (run->status != 0 ||
      !cudaVersionOf(assembler.versionText, assembler.cuda))
    return missing(
        "'" + *path + "' is no ptxas: with --version it " +
            (run->status
                 ? "fails"
                 : "prints '" +
                       StringRef(run->output).trim().split('\n').first.str() +
                       "'") +
            ", expected 'release 13.0, V13.0.88' or another version",
        kInstall);
  auto bytes = MemoryBuffer::getFile(*path, /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false);
  if (!bytes)
    return missing("cannot read '" + *path +
                   "': " + bytes.getError().message());
  BLAKE3 hasher;
  hasher.update((*bytes)->getBuffer());
  assembler.contentDigest = "blake3:" + toHex(hasher.final(), true);
  if (!stamp.empty())
    memoise(memo, stamp, assembler.versionText,
            assembler.contentDigest);
  return assembler;
}

//===----------------------------------------------------------------------===//
// Assembling
//===----------------------------------------------------------------------===//

/// ptxas's complaints, without the paths of temporary files.
static std::string complaints(const Run &run, StringRef input) {
  std::string text;
  SmallVector<StringRef> lines;
  StringRef(run.output).split(lines, '\n', -1, false);
  for (StringRef line : lines) {
    if (line.contains("info    :") || line.starts_with("    "))
      continue;
    std::string words = line.str();
    for (size_t at; (at = words.find(input)) != words.npos;)
      words.replace(at, input.size(), "PTX");
    text += "\n  " + words;
  }
  return text;
}

nova::Expected<Assembled> Assembler::assemble(StringRef ptx, StringRef arch,
                                              StringRef what) const {
  const PtxTarget *target = findPtxTarget({arch.data(), arch.size()});
  unsigned needed = target ? cudaOfPtx(target->ptxVersion) : 0;
  auto text = [](unsigned version) {
    return std::to_string(version / 1000) + "." +
           std::to_string(version % 1000 / 10);
  };
  if (cuda < needed)
    return missing("ptxas " + versionText + " ('" + executable +
                       "') is too old for " + arch.str() + ", whose PTX " +
                       std::to_string(target->ptxVersion / 10) + "." +
                       std::to_string(target->ptxVersion % 10) +
                       " needs CUDA " + text(needed) + " or later",
                   kInstall);
  nova::Expected<Temporary> input = Temporary::create(".ptx");
  if (!input)
    return input.error();
  nova::Expected<Temporary> output = Temporary::create(".cubin");
  if (!output)
    return output.error();
  if (Status status = input->write(ptx); !status)
    return status.error();
  nova::Expected<Run> run =
      runProgram(executable, {"-v", "-O3", "-arch", arch, "-o", output->path(),
                              input->path()});
  if (!run)
    return run.error();
  if (run->status != 0)
    return nova::Error{ErrorCode::Internal,
                       what.str() + ": ptxas " + versionText + " refuses its " +
                           "PTX for " + arch.str() + ":" +
                           complaints(*run, input->path()),
                       {}};
  Assembled result;
  nova::Expected<std::string> cubin = output->read();
  if (!cubin)
    return cubin.error();
  result.cubin = std::move(*cubin);
  parseAssemblerLog(run->output, input->path(), result);
  if (result.cubin.empty())
    return nova::Error{ErrorCode::Internal,
                       what.str() + ": ptxas " + versionText +
                           " succeeded, but wrote nothing",
                       {}};
  return result;
}

} // namespace nova
