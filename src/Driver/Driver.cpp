//===- Driver.cpp - From a command line to an exit status -----------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Driver/Driver.h"

#include "LocalGpus.h"
#include "Log.h"
#include "Reproducer.h"
#include "Verbs.h"
#include "nova/Driver/Options.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <exception>
#include <iostream>

using namespace nova;
using namespace nova::driver;

static Status dispatch(Options &options) {
  switch (options.verb) {
  case Verb::Explain:
    // A bundle has its targets.
    if (llvm::sys::fs::is_directory(options.operands[0]))
      return explainVerb(options);
    [[fallthrough]];
  case Verb::Compile:
  case Verb::Check:
  case Verb::Verify: {
    std::string said;
    std::vector<LocalGpu> gpus;
    if (asksForNative(options))
      gpus = localGpus();
    if (Status status = resolve(options, gpus, said); !status)
      return status;
    if (!said.empty())
      note(said);
    return options.verb == Verb::Compile   ? compileVerb(options)
           : options.verb == Verb::Check   ? checkVerb(options)
           : options.verb == Verb::Explain ? explainVerb(options)
                                           : verifyVerb(options);
  }
  case Verb::Inspect:
    return inspectVerb(options);
  case Verb::Run:
    return runVerb(options);
  case Verb::Targets:
    return targetsVerb(options);
  case Verb::Ops:
    return opsVerb(options);
  case Verb::Version:
    return versionVerb(options);
  case Verb::Cache:
    return cacheVerb(options);
  case Verb::Diff:
    break; // parseOptions() lets no verb through that is not available.
  }
  return Error{ErrorCode::Internal, "verb without a function", {}};
}

/// The arguments, with those in response files (@FILE, quoted as for a GNU tool)
/// in their places; an @FILE that is not there is an argument.
static Expected<std::vector<std::string>> expandArguments(int argc,
                                                          char **argv) {
  llvm::BumpPtrAllocator allocator;
  llvm::SmallVector<const char *, 32> arguments(argv + 1, argv + argc);
  llvm::cl::ExpansionContext context(allocator,
                                     llvm::cl::TokenizeGNUCommandLine);
  if (llvm::Error error = context.expandResponseFiles(arguments))
    return badInput("response file: " + llvm::toString(std::move(error)));
  return std::vector<std::string>(arguments.begin(), arguments.end());
}

/// Standard output is data: a disk that is full or a reader that is gone is an
/// error, unless another one came first.
static int flushed(int status) {
  llvm::outs().flush();
  bool failed = llvm::outs().has_error() || !std::cout.flush();
  llvm::outs().clear_error();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout) && !failed)
    return status;
  if (status == 0)
    return report({ErrorCode::Missing, "cannot write standard output", {}});
  return status;
}

int driver::run(int argc, char **argv) {
  try {
    Expected<std::vector<std::string>> expanded = expandArguments(argc, argv);
    if (!expanded)
      return report(expanded.error());
    std::vector<std::string> arguments = std::move(*expanded);
    Expected<Options> options = parseOptions(arguments);
    if (!options)
      return report(options.error());
    if (options->help) {
      bool general = arguments[0] == "--help" || arguments[0] == "-h" ||
                     arguments[0] == "help";
      std::string text = general ? generalHelp() : verbHelp(options->verb);
      std::fputs(text.c_str(), stdout);
      return flushed(0);
    }
    setVerbose(options->verbose);
    Status status = dispatch(*options);
    if (status)
      return flushed(0);
    if (!status.error().message.empty()) {
      report(status.error());
      // Compiler errors bring a reproducer of their own; for the rest the
      // command line is one.
      if (status.error().code == ErrorCode::Internal) {
        std::string line = "novac";
        for (const std::string &argument : arguments)
          line += " '" + argument + "'";
        errorLine(writeReproducer(line + "\n"));
      }
    }
    return flushed(static_cast<int>(status.error().code));
  } catch (const std::exception &exception) {
    return report({ErrorCode::Internal,
                   std::string("unexpected exception: ") + exception.what(),
                   {}});
  }
}
