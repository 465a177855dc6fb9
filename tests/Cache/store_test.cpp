//===- store_test.cpp - The cache's store ----------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Cache/Store.h"
#include "nova/Support/File.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace nova;
using namespace nova::cache;
namespace fs = std::filesystem;

namespace {
class StoreTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder = fs::path(::testing::TempDir()) /
             ("nova-store-" + std::to_string(::getpid()) +
              ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  Store open(const std::string &name = "cache", uint64_t limit = kDefaultLimit) {
    StoreOptions options;
    options.folder = folder / name;
    options.limitBytes = limit;
    options.patience = std::chrono::milliseconds(200);
    options.warn = [this](const std::string &line) { warnings.push_back(line); };
    return Store(options);
  }
  static KeyBuilder key(const std::string &what, const std::string &more = "") {
    KeyBuilder key;
    key.section("graph", what).section("target", "host").section("novac", "1");
    if (!more.empty())
      key.section("ptxas", more);
    return key;
  }
  /// Every file below the folder of a cache.
  std::vector<fs::path> files(const std::string &part = "cache") {
    std::vector<fs::path> found;
    if (fs::exists(folder / part))
      for (const auto &file : fs::recursive_directory_iterator(folder / part))
        if (file.is_regular_file())
          found.push_back(file.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  static std::string bytesOf(const fs::path &path) {
    return *readFile(path.string(), "file");
  }
  static void setUsed(const Store &store, const KeyBuilder &key, time_t when) {
    std::string name = key.key();
    std::string path = store.folder() + "/entry/graph/" + name.substr(0, 2) + "/" + name;
    timespec times[2] = {{when, 0}, {when, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
  }
  bool warned(const std::string &what) {
    return std::any_of(warnings.begin(), warnings.end(), [&](const std::string &line) {
      return line.find(what) != line.npos;
    });
  }

  fs::path folder;
  std::vector<std::string> warnings;
};
} // namespace

TEST_F(StoreTest, WhatIsPutIsFound) {
  Store store = open();
  EXPECT_FALSE(store.find("graph", key("a").key()));
  ASSERT_TRUE(store.put("graph", key("a"), {{"manifest", "{}"}, {"0", std::string("\0\1", 2)}}));
  auto found = store.find("graph", key("a").key());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].name, "manifest");
  EXPECT_EQ((*found)[0].bytes, "{}");
  EXPECT_EQ((*found)[1].bytes, std::string("\0\1", 2));
  // Kinds are apart.
  EXPECT_FALSE(store.find("kernel", key("a").key()));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(StoreTest, EqualBytesAreKeptOnce) {
  Store store = open();
  ASSERT_TRUE(store.put("graph", key("a"), {{"x", "same"}, {"y", "a"}}));
  ASSERT_TRUE(store.put("graph", key("b"), {{"x", "same"}, {"y", "b"}}));
  auto stats = store.stats();
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->entries, 2u);
  EXPECT_EQ(stats->blobs, 3u);
  // Nothing is left of the writing.
  for (const fs::path &file : files())
    EXPECT_EQ(file.string().find(".tmp-"), std::string::npos) << file;
}

TEST_F(StoreTest, ABitFlippedAnywhereIsFoundAndNamed) {
  Store store = open();
  std::vector<Blob> blobs = {{"manifest", "some bytes"}, {"0", "others"}};
  ASSERT_TRUE(store.put("graph", key("a"), blobs));
  std::vector<fs::path> all = files();
  all.erase(std::remove(all.begin(), all.end(), folder / "cache/lock"), all.end());
  ASSERT_EQ(all.size(), 3u); // the entry and two blobs
  for (const fs::path &victim : all) {
    std::string good = bytesOf(victim);
    for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string bytes = good;
      bytes[bit / 8] = char(bytes[bit / 8] ^ (1 << bit % 8));
      std::ofstream(victim, std::ios::binary) << bytes;
      warnings.clear();
      ASSERT_FALSE(store.find("graph", key("a").key())) << victim << " bit " << bit;
      ASSERT_EQ(warnings.size(), 1u);
      EXPECT_TRUE(warned("'" + victim.string() + "' is damaged and not used")) << warnings[0];
      EXPECT_FALSE(fs::exists(victim));
      EXPECT_EQ(files("cache/quarantine").size(), 1u);
      fs::remove_all(folder / "cache/quarantine");
      std::ofstream(victim, std::ios::binary) << good;
    }
    // What went to quarantine is put again, and is good again.
    std::ofstream(victim, std::ios::binary) << "";
    ASSERT_FALSE(store.find("graph", key("a").key()));
    ASSERT_TRUE(store.put("graph", key("a"), blobs));
    ASSERT_TRUE(store.find("graph", key("a").key()));
    fs::remove_all(folder / "cache/quarantine");
  }
}

TEST_F(StoreTest, VerifyFindsWhatNobodyAskedFor) {
  Store store = open();
  ASSERT_TRUE(store.put("graph", key("a"), {{"x", "shared"}, {"y", "a"}}));
  ASSERT_TRUE(store.put("graph", key("b"), {{"x", "shared"}}));
  uint64_t checked = 0;
  auto problems = store.verify(checked);
  ASSERT_TRUE(problems);
  EXPECT_TRUE(problems->empty());
  EXPECT_EQ(checked, 4u);
  std::string digest = sha256Hex("shared");
  std::ofstream(folder / "cache/blob" / digest.substr(0, 2) / digest) << "shareD";
  problems = store.verify(checked);
  ASSERT_TRUE(problems);
  ASSERT_EQ(problems->size(), 3u); // the blob, and both entries
  EXPECT_NE((*problems)[0].find("it has digest sha256:" + sha256Hex("shareD")), std::string::npos);
  EXPECT_NE((*problems)[1].find("its blob " + digest + " is damaged"), std::string::npos);
  EXPECT_FALSE(store.find("graph", key("a").key()));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(StoreTest, DamagedBytesOfAnotherEntryAreMended) {
  Store store = open();
  ASSERT_TRUE(store.put("graph", key("a"), {{"x", "shared"}}));
  std::string digest = sha256Hex("shared");
  std::ofstream(folder / "cache/blob" / digest.substr(0, 2) / digest) << "shareD";
  ASSERT_TRUE(store.put("graph", key("b"), {{"x", "shared"}}));
  EXPECT_TRUE(store.find("graph", key("a").key()));
}

TEST_F(StoreTest, AnEntryUnderAnotherKeyIsNotUsed) {
  Store store = open();
  ASSERT_TRUE(store.put("graph", key("a"), {{"x", "1"}}));
  std::string a = key("a").key(), b = key("b").key();
  fs::create_directories(folder / "cache/entry/graph" / b.substr(0, 2));
  fs::copy_file(folder / "cache/entry/graph" / a.substr(0, 2) / a, folder / "cache/entry/graph" / b.substr(0, 2) / b);
  EXPECT_FALSE(store.find("graph", b));
  EXPECT_TRUE(warned("it is the entry of graph " + a));
}

TEST_F(StoreTest, TheLeastRecentlyUsedGoesFirst) {
  Store store = open();
  std::string large(10000, 'x');
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store.put("graph", key(std::to_string(i)), {{"x", large + std::to_string(i)}, {"s", "shared"}}));
    setUsed(store, key(std::to_string(i)), 1000 + i);
  }
  ASSERT_TRUE(store.find("graph", key("0").key())); // now the youngest
  auto removed = store.collect(25000);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->entries, 3u);
  EXPECT_TRUE(store.find("graph", key("0").key()));
  EXPECT_TRUE(store.find("graph", key("4").key()));
  for (const char *gone : {"1", "2", "3"})
    EXPECT_FALSE(store.find("graph", key(gone).key())) << gone;
  EXPECT_TRUE(warnings.empty());
  EXPECT_LE(store.stats()->bytes, 25000u);
  // collect(0) leaves nothing, not even blobs.
  ASSERT_TRUE(store.collect(0));
  EXPECT_EQ(files(), std::vector<fs::path>{folder / "cache/lock"});
}

TEST_F(StoreTest, TrimKeepsToTheLimit) {
  Store store = open("cache", 30000);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store.put("graph", key(std::to_string(i)), {{"x", std::string(5000, 'a' + i)}}));
    setUsed(store, key(std::to_string(i)), 1000 + i);
    ASSERT_TRUE(store.trim());
    EXPECT_LE(store.stats()->bytes, 30000u);
  }
  EXPECT_TRUE(store.find("graph", key("9").key()));
  EXPECT_FALSE(store.find("graph", key("0").key()));
}

TEST_F(StoreTest, CollectTakesWhatTheDeadLeft) {
  Store store = open();
  ASSERT_TRUE(store.put("graph", key("a"), {{"x", "1"}}));
  std::string digest = sha256Hex("orphan");
  fs::create_directories(folder / "cache/blob" / digest.substr(0, 2));
  std::ofstream(folder / "cache/blob" / digest.substr(0, 2) / digest) << "orphan";
  std::ofstream(folder / "cache/entry/graph/x.tmp-1-2") << "half";
  auto removed = store.collect(kDefaultLimit);
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->entries, 0u);
  EXPECT_EQ(removed->bytes, 10u);
  EXPECT_TRUE(store.find("graph", key("a").key()));
}

TEST_F(StoreTest, TheLockHasATimeOut) {
  Store store = open();
  ASSERT_TRUE(store.put("graph", key("a"), {{"x", "1"}}));
  int fd = ::open((folder / "cache/lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  Status status = store.put("graph", key("b"), {{"x", "2"}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Missing);
  EXPECT_EQ(status.error().message, "the lock '" + (folder / "cache/lock").string() + "' was not free within 200 ms");
  EXPECT_FALSE(store.collect(0));
  // Readers need none.
  EXPECT_TRUE(store.find("graph", key("a").key()));
  ::close(fd);
  EXPECT_TRUE(store.put("graph", key("b"), {{"x", "2"}}));
}

TEST_F(StoreTest, TheSecondLayerIsNeverWritten) {
  Store first = open("second");
  ASSERT_TRUE(first.put("graph", key("a"), {{"x", "1"}}));
  ASSERT_TRUE(first.put("graph", key("b"), {{"x", "2"}}));
  std::string digest = sha256Hex("2");
  std::ofstream(folder / "second/blob" / digest.substr(0, 2) / digest) << "3";
  std::vector<fs::path> before = files("second");
  StoreOptions options;
  options.folder = folder / "cache";
  options.secondFolder = folder / "second";
  options.warn = [this](const std::string &line) { warnings.push_back(line); };
  Store store(options);
  EXPECT_TRUE(store.find("graph", key("a").key()));
  EXPECT_FALSE(store.find("graph", key("b").key()));
  EXPECT_TRUE(warned("is damaged and not used"));
  ASSERT_TRUE(store.put("graph", key("b"), {{"x", "2"}}));
  EXPECT_TRUE(store.find("graph", key("b").key()));
  EXPECT_EQ(files("second"), before);
}

TEST_F(StoreTest, AFullDiskIsAnErrorAndLeavesNothing) {
  Store store = open();
  // No file of this process may be larger: what a full disk looks like to it.
  pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit64 limit{100, 100};
    ::setrlimit64(RLIMIT_FSIZE, &limit);
    Status status = store.put("graph", key("a"), {{"x", std::string(5000, 'x')}});
    ::_exit(!status && status.error().code == ErrorCode::Missing ? 0 : 1);
  }
  int result = 0;
  ::waitpid(child, &result, 0);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(files(), std::vector<fs::path>{folder / "cache/lock"});
}

TEST_F(StoreTest, AMissIsExplained) {
  Store store = open();
  EXPECT_EQ(store.explainMiss("graph", key("a")),
            "no entry in '" + store.folder() + "' has anything in common with this one\n");
  ASSERT_TRUE(store.put("graph", key("a", "13.0"), {{"x", "1"}}));
  ASSERT_TRUE(store.put("graph", key("b"), {{"x", "1"}}));
  EXPECT_EQ(store.explainMiss("graph", key("a", "13.1")),
            "nearest entry " + key("a", "13.0").key() + "\n  had   ptxas: 13.0\n  wants ptxas: 13.1\n");
  EXPECT_EQ(store.explainMiss("graph", key("a")),
            "nearest entry " + key("a", "13.0").key() + "\n  had   ptxas: 13.0\n");
}

//===----------------------------------------------------------------------===//
// One file
//===----------------------------------------------------------------------===//

TEST_F(StoreTest, AnArchiveDependsOnTheContentOnly) {
  Store one = open("one"), two = open("two"), three = open("three");
  auto put = [](const Store &store, const char *name) {
    ASSERT_TRUE(store.put("graph", key(name), {{"x", std::string(1000, name[0])}, {"s", "shared"}}));
  };
  put(one, "a"), put(one, "b");
  put(two, "b"), put(two, "a");
  setUsed(two, key("a"), 5);
  std::string first = folder / "one.tar", second = folder / "two.tar", third = folder / "three.tar";
  ASSERT_EQ(*one.exportTo(first), 2u);
  ASSERT_EQ(*two.exportTo(second), 2u);
  EXPECT_EQ(bytesOf(first), bytesOf(second));
  ASSERT_EQ(*three.importFrom(first), 2u);
  ASSERT_TRUE(three.find("graph", key("a").key()));
  EXPECT_EQ((*three.find("graph", key("b").key()))[0].bytes, std::string(1000, 'b'));
  ASSERT_EQ(*three.exportTo(third), 2u);
  EXPECT_EQ(bytesOf(first), bytesOf(third));
  // Others can read it.
  EXPECT_EQ(std::system(("tar tf " + first + " > /dev/null").c_str()), 0);
}

TEST_F(StoreTest, ABitFlippedAnywhereInAnArchiveIsFound) {
  Store store = open();
  ASSERT_TRUE(store.put("graph", key("a"), {{"x", "some bytes"}}));
  std::string path = folder / "a.tar", broken = folder / "b.tar";
  ASSERT_TRUE(store.exportTo(path));
  std::string good = bytesOf(path);
  unsigned unnoticed = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    // Padding is long, and all alike.
    if (good[at] == 0 && at % 61)
      continue;
    std::string bytes = good;
    bytes[at] = char(bytes[at] ^ (1 << at % 8));
    std::ofstream(broken, std::ios::binary) << bytes;
    fs::remove_all(folder / "other");
    Store other = open("other");
    if (auto imported = other.importFrom(broken); !imported) {
      EXPECT_NE(imported.error().message.find(broken), std::string::npos);
      EXPECT_FALSE(fs::exists(folder / "other")) << at;
      continue;
    }
    // Nothing but padding may differ.
    ++unnoticed;
    auto found = other.find("graph", key("a").key());
    ASSERT_TRUE(found) << at;
    EXPECT_EQ((*found)[0].bytes, "some bytes");
  }
  EXPECT_LT(unnoticed, good.size());
  for (size_t size : {size_t(0), size_t(100), good.size() / 2, good.size() - 1024}) {
    std::ofstream(broken, std::ios::binary) << good.substr(0, size);
    EXPECT_FALSE(open("other").importFrom(broken)) << size;
  }
}

TEST_F(StoreTest, AnArchiveThatLeavesItsFolderIsRefused) {
  Store store = open();
  fs::create_directories(folder / "x");
  std::ofstream(folder / "x/evil") << "x";
  std::string path = folder / "evil.tar";
  ASSERT_EQ(std::system(("cd " + (folder / "x").string() + " && tar --format=ustar -cf " + path +
                         " --transform 's,^,blob/../../,' evil").c_str()), 0);
  auto imported = store.importFrom(path);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code, ErrorCode::BadInput);
  EXPECT_NE(imported.error().message.find("'blob/../../evil' is no file of a cache"), std::string::npos)
      << imported.error().message;
}

//===----------------------------------------------------------------------===//
// Many processes
//===----------------------------------------------------------------------===//

/// Puts, finds and evicts until it is killed. Whatever it finds must be right.
[[noreturn]] static void work(const std::string &folder, unsigned seed) {
  StoreOptions options;
  options.folder = folder;
  options.limitBytes = 60000;
  bool damaged = false;
  options.warn = [&](const std::string &) { damaged = true; };
  Store store(options);
  std::mt19937 random(seed);
  for (;;) {
    std::string name = std::to_string(random() % 20);
    KeyBuilder key;
    key.section("graph", name);
    std::string expected = std::string(4000, 'a' + name.back() - '0') + name;
    if (auto found = store.find("graph", key.key())) {
      if ((*found)[0].bytes != expected || (*found)[1].bytes != "shared")
        ::_exit(2);
    } else if (!store.put("graph", key, {{"x", expected}, {"s", "shared"}})) {
      ::_exit(3);
    }
    if (random() % 4 == 0 && !store.trim())
      ::_exit(4);
    if (damaged)
      ::_exit(5);
  }
}

TEST_F(StoreTest, ProcessesKilledAtRandomLeaveAGoodStore) {
  std::string cache = folder / "cache";
  std::mt19937 random(7);
  std::vector<pid_t> children;
  unsigned killed = 0;
  auto start = [&] {
    unsigned seed = random();
    if (pid_t child = ::fork())
      children.push_back(child);
    else
      work(cache, seed);
  };
  for (int i = 0; i < 8; ++i)
    start();
  while (killed < 100) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
    size_t which = random() % children.size();
    // One that ended by itself has found something wrong.
    int status = 0;
    ASSERT_EQ(::waitpid(children[which], &status, WNOHANG), 0) << "exit status " << WEXITSTATUS(status);
    ::kill(children[which], SIGKILL);
    ::waitpid(children[which], &status, 0);
    children.erase(children.begin() + which);
    ++killed;
    start();
  }
  for (pid_t child : children) {
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);
  }
  // No lock is left, nothing is damaged, and remains go.
  Store store = open();
  uint64_t checked = 0;
  auto problems = store.verify(checked);
  ASSERT_TRUE(problems) << problems.error().message;
  EXPECT_TRUE(problems->empty()) << (*problems)[0];
  EXPECT_GT(checked, 0u);
  EXPECT_TRUE(files("cache/quarantine").empty());
  ASSERT_TRUE(store.collect(kDefaultLimit));
  for (const fs::path &file : files())
    EXPECT_EQ(file.string().find(".tmp-"), std::string::npos) << file;
}
