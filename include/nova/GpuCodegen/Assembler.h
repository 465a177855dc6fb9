//===- Assembler.h - PTX to machine code, by ptxas ------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ptxas is NVIDIA's, and runs as a process of its own. nvJitLink, which would
// not, makes worse code: it compiles relocatable, where setmaxnreg is ignored.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_GPUCODEGEN_ASSEMBLER_H
#define NOVA_GPUCODEGEN_ASSEMBLER_H

#include "nova/Support/Error.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace nova {

/// Where to look, in this order. Empty: not given, and then not looked at.
struct AssemblerSearch {
  std::string given;    ///< A path (--ptxas): then nothing else is looked at.
  std::string cudaHome; ///< $CUDA_HOME: DIR/bin/ptxas.
  std::string cudaPath; ///< $CUDA_PATH, likewise.
  std::string path;     ///< $PATH: folders separated by colons.
  std::string fallback = "/usr/local/cuda/bin"; ///< A folder.
  /// A folder in which to remember who it was, as long as it is the same file (path,
  /// size, inode, times); empty: it is asked, and read, every time.
  std::string memo;
};

/// What ptxas said about one entry function.
struct AssembledEntry {
  std::string name;
  uint64_t registers = 0; ///< Per thread.
  uint64_t stackBytes = 0;
  uint64_t spillStoreBytes = 0, spillLoadBytes = 0;
  uint64_t staticSharedBytes = 0;
};

/// A warning, or one of the remarks about lost performance.
struct AssemblerWarning {
  std::string code; ///< "C7504", or empty.
  std::string text; ///< Without "ptxas warning :" and without paths.
};

struct Assembled {
  std::string cubin;
  std::vector<AssembledEntry> entries; ///< In the order of the PTX.
  std::vector<AssemblerWarning> warnings;
};

/// Reads what `ptxas -v` printed. `input` is the path that stood on its command
/// line; it is left out of the warnings' texts.
void parseAssemblerLog(llvm::StringRef log, llvm::StringRef input,
                       Assembled &result);

/// A ptxas that is there and works. Copies are cheap; all functions may be
/// called from several threads.
class Assembler {
public:
  /// Looks for ptxas and asks it who it is, once: the rest of a run uses what
  /// was found here. Missing if it is in none of the places (they are named) or
  /// is no ptxas.
  static Expected<Assembler> find(const AssemblerSearch &search);

  const std::string &path() const { return executable; }
  const std::string &version() const { return versionText; } ///< "13.0.88"
  /// As cuDriverGetVersion() counts: 13000 for release 13.0.
  unsigned cudaVersion() const { return cuda; }
  /// "blake3:" and 64 digits, of its bytes: two with the same make the same
  /// code, whatever their paths.
  const std::string &digest() const { return contentDigest; }

  /// Assembles `ptx` for `arch`. The bytes depend on these and on the ptxas,
  /// not on the machine. `what` is named in errors ("kernel 'x'"). Temporary
  /// files are removed whatever happens. Missing: the ptxas is older than the
  /// PTX, or temporary files cannot be written. Internal: it refuses the PTX
  /// (its words follow) or crashes.
  Expected<Assembled> assemble(llvm::StringRef ptx, llvm::StringRef arch,
                               llvm::StringRef what) const;

private:
  std::string executable, versionText, contentDigest;
  unsigned cuda = 0;
};

} // namespace nova

#endif // NOVA_GPUCODEGEN_ASSEMBLER_H
