//===- CacheVerb.cpp - novac cache -----------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// --json prints one object with "schema": 1, "action", "folder", and
//
//   stats   entries, blobs, bytes, limit, quarantined, quarantined_bytes, kinds {}
//   list    entries [{kind, key, bytes, used (seconds since 1970), from []}]
//   verify  checked, problems []
//   gc      removed_entries, removed_bytes       (clear likewise)
//   export  entries, file                        (import likewise)
//
//===----------------------------------------------------------------------===//
#include "GraphCache.h"
#include "Log.h"
#include "Verbs.h"
#include "nova/Graph/NearestNames.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <array>
#include <ctime>

using namespace nova;
using namespace nova::driver;

namespace {
/// What one action prints.
class Printer {
public:
  Printer(const Options &options, const cache::Store &store)
      : options(options), store(store) {}

  /// One object: what is common, and then `rest`.
  void json(llvm::function_ref<void(llvm::json::OStream &)> rest) {
    llvm::json::OStream out(llvm::outs());
    out.object([&] {
      out.attribute("action", options.operands[0]);
      out.attribute("folder", llvm::json::fixUTF8(store.folder()));
      out.attribute("schema", 1);
      rest(out);
    });
    llvm::outs() << "\n";
  }

  Status stats();
  Status list();
  Status verify();
  Status collect(uint64_t limit);
  Status archive(bool in);

private:
  const Options &options;
  const cache::Store &store;
};
} // namespace

static std::string count(uint64_t number, const char *what) {
  return std::to_string(number) + " " + what +
         (number == 1 ? "" : "s");
}

/// "1 entry", "2 entries"
static std::string entries(uint64_t number) {
  return std::to_string(number) + (number == 1 ? " entry" : " entries");
}

Status Printer::stats() {
  Expected<cache::StoreStats> stats = store.stats();
  if (!stats)
    return stats.error();
  if (options.json) {
    json([&](llvm::json::OStream &out) {
      out.attribute("entries", stats->entries);
      out.attribute("blobs", stats->blobs);
      out.attribute("bytes", stats->bytes);
      out.attribute("limit", options.cacheLimit);
      out.attribute("quarantined", stats->quarantined);
      out.attribute("quarantined_bytes", stats->quarantinedBytes);
      out.attributeObject("kinds", [&] {
        for (const auto &[kind, number] : stats->kinds)
          out.attribute(kind, number);
      });
    });
    return Status::ok();
  }
  llvm::outs() << store.folder() << ": " << entries(stats->entries);
  for (const auto &[kind, number] : stats->kinds)
    llvm::outs() << (kind == stats->kinds.front().first ? " (" : ", ") << number
                 << " " << kind;
  llvm::outs() << (stats->kinds.empty() ? "" : ")") << ", "
               << count(stats->blobs, "blob") << ", "
               << bytesText(stats->bytes) << " of at most "
               << bytesText(options.cacheLimit) << "\n";
  if (stats->quarantined)
    llvm::outs() << "quarantine: " << count(stats->quarantined, "file") << ", "
                 << bytesText(stats->quarantinedBytes) << "\n";
  return Status::ok();
}

Status Printer::list() {
  Expected<std::vector<cache::EntryInfo>> list = store.list();
  if (!list)
    return list.error();
  if (options.json) {
    json([&](llvm::json::OStream &out) {
      out.attributeArray("entries", [&] {
        for (const cache::EntryInfo &entry : *list)
          out.object([&] {
            out.attribute("kind", entry.kind);
            out.attribute("key", entry.key);
            out.attribute("bytes", entry.bytes);
            out.attribute("used", entry.used);
            out.attributeArray("from", [&] {
              for (const std::string &line : entry.from)
                out.value(llvm::json::fixUTF8(line));
            });
          });
      });
    });
    return Status::ok();
  }
  for (const cache::EntryInfo &entry : *list) {
    char when[32];
    std::time_t used = entry.used;
    std::tm utc;
    std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%SZ",
                  gmtime_r(&used, &utc));
    llvm::outs() << entry.kind << " " << entry.key.substr(0, 16) << "  "
                 << when << "  " << bytesText(entry.bytes) << "\n";
  }
  return Status::ok();
}

Status Printer::verify() {
  uint64_t checked = 0;
  Expected<std::vector<std::string>> problems = store.verify(checked);
  if (!problems)
    return problems.error();
  if (options.json)
    json([&](llvm::json::OStream &out) {
      out.attribute("checked", checked);
      out.attributeArray("problems", [&] {
        for (const std::string &line : *problems)
          out.value(llvm::json::fixUTF8(line));
      });
    });
  else
    for (const std::string &line : *problems)
      llvm::outs() << line << "\n";
  if (!problems->empty())
    return Error{ErrorCode::Verification,
                 "cache '" + store.folder() + "': " +
                     std::to_string(problems->size()) + " of " +
                     count(checked, "file") + " damaged",
                 "they are in its folder quarantine, and will be compiled again"};
  if (!options.json)
    llvm::outs() << store.folder() << ": " << count(checked, "file")
                 << ", all good\n";
  return Status::ok();
}

Status Printer::collect(uint64_t limit) {
  Expected<cache::Removed> removed = store.collect(limit);
  if (!removed)
    return removed.error();
  if (options.json)
    json([&](llvm::json::OStream &out) {
      out.attribute("removed_entries", removed->entries);
      out.attribute("removed_bytes", removed->bytes);
    });
  else
    llvm::outs() << store.folder() << ": removed " << entries(removed->entries)
                 << ", " << bytesText(removed->bytes) << "\n";
  return Status::ok();
}

Status Printer::archive(bool in) {
  const std::string &file = options.operands[1];
  Expected<uint64_t> number =
      in ? store.importFrom(file) : store.exportTo(file);
  if (!number)
    return number.error();
  if (in)
    if (Status status = store.trim(); !status)
      return status;
  if (options.json)
    json([&](llvm::json::OStream &out) {
      out.attribute("entries", *number);
      out.attribute("file", llvm::json::fixUTF8(file));
    });
  else
    note(file + ": " + entries(*number) + (in ? " imported into '" : " of '") +
         store.folder() + "'");
  return Status::ok();
}

Status driver::cacheVerb(const Options &options) {
  static constexpr std::array<std::string_view, 7> actions = {
      "stats", "list", "verify", "gc", "clear", "export", "import"};
  const std::string &action = options.operands[0];
  if (std::find(actions.begin(), actions.end(), action) == actions.end()) {
    std::string near;
    for (const std::string &name : graph::nearestNames(
             action, {actions.begin(), actions.end()}, 1))
      near = ", did you mean '" + name + "'?";
    return Error{ErrorCode::Usage, "unknown action '" + action + "' of novac cache" + near,
                 "actions: stats list verify gc clear export import"};
  }
  bool needsFile = action == "export" || action == "import";
  if (needsFile != (options.operands.size() == 2))
    return Error{ErrorCode::Usage,
                 needsFile ? "novac cache " + action + " needs a FILE"
                           : "unexpected operand '" + options.operands[1] +
                                 "', novac cache " + action + " takes none",
                 "see `novac cache --help`"};
  std::optional<cache::Store> store = openStore(options);
  if (!store)
    return Error{ErrorCode::Missing,
                 "there is no folder for a cache: none of NOVAC_CACHE_DIR, "
                 "XDG_CACHE_HOME and HOME is set",
                 "name one with --cache-dir"};
  Printer printer(options, *store);
  if (action == "stats")
    return printer.stats();
  if (action == "list")
    return printer.list();
  if (action == "verify")
    return printer.verify();
  if (action == "gc")
    return printer.collect(options.cacheLimit);
  if (action == "clear")
    return printer.collect(0);
  return printer.archive(action == "import");
}
