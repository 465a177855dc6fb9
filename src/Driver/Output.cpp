//===- Output.cpp - Where a bundle goes, and what a build system is told --===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Output.h"

#include "Log.h"
#include "nova/Bundle/Bundle.h"
#include "nova/Support/File.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Signals.h"

#include <filesystem>
#include <system_error>

using namespace nova;
using namespace nova::driver;
namespace fs = std::filesystem;

static Error notABundle(const std::string &path, const std::string &got) {
  return {ErrorCode::Missing,
          "cannot write bundle '" + path + "': " + got +
              ", expected a bundle, an empty folder or nothing there",
          "choose another place with -o"};
}

Status OutputFolder::choose(const std::string &name, bool isPath) {
  std::string path = name;
  if (!isPath) {
    // A graph's name is anybody's text: it must not lead out of this folder.
    if (name.empty() || name[0] == '.' || name[0] == '-' ||
        name.find('/') != name.npos || name.find('\0') != name.npos)
      return Error{ErrorCode::Missing,
                   "the graph's name '" + name +
                       "' is no file name, so there is no default output",
                   "name one with -o"};
    path += ".nova";
  }
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  existed = fs::exists(status);
  if (existed && !fs::is_directory(status))
    return notABundle(path, "it is a file");
  if (existed)
    for (fs::directory_iterator it(path, error), end; !error && it != end;
         it.increment(error)) {
      std::string entry = it->path().filename();
      // Temporaries of a publication that was killed begin like their file.
      if (entry != "blobs" && entry.find("manifest.json") == entry.npos &&
          entry.find("provenance.json") == entry.npos)
        return notABundle(path, "it holds '" + entry + "'");
    }
  folder = path;
  llvm::sys::RemoveFileOnSignal(bundle::manifestPath(folder));
  return Status::ok();
}

void OutputFolder::keep() {
  llvm::sys::DontRemoveFileOnSignal(bundle::manifestPath(folder));
  kept = true;
}

OutputFolder::~OutputFolder() {
  if (kept || folder.empty())
    return;
  llvm::sys::DontRemoveFileOnSignal(bundle::manifestPath(folder));
  if (existed && !silent)
    if (Expected<bundle::Manifest> old = bundle::openManifest(folder)) {
      std::string targets;
      for (const bundle::Target &target : old->targets)
        targets += (targets.empty() ? "" : ", ") + target.name +
                   (target.name == "host" ? "" : " (" + target.device + ")");
      note("removed the bundle that was at '" + folder + "' (" + targets +
           "): a failed compile leaves none that looks fresh");
    }
  bundle::unpublishBundle(folder);
  std::error_code ignored;
  if (!existed)
    fs::remove_all(folder, ignored);
}

Status driver::writeDepfile(const std::string &path, const std::string &target,
                            const std::vector<std::string> &files) {
  auto escaped = [](const std::string &name) {
    std::string text;
    for (char c : name) {
      if (c == ' ' || c == '#' || c == '\\' || c == ':')
        text += '\\';
      if (c == '$')
        text += '$';
      text += c;
    }
    return text;
  };
  std::string text = escaped(target) + ":";
  for (const std::string &file : files)
    text += " \\\n  " + escaped(file);
  Expected<bool> written = writeIfChanged(path, text + "\n");
  return written ? Status::ok() : Status(written.error());
}
