//===- file_test.cpp - Reading, atomic publishing, write if changed -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "nova/Support/File.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace nova;
namespace fs = std::filesystem;

namespace {

class FileTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "nova-file-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string in(const std::string &name) const { return folder + "/" + name; }
  size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder),
                                             fs::directory_iterator()));
  }
  void put(const std::string &name, std::string_view bytes) const {
    ASSERT_TRUE(static_cast<bool>(writeIfChanged(in(name), bytes)));
  }

  std::string folder;
};

timespec stamp(const std::string &path) {
  struct stat info;
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return info.st_mtim;
}

} // namespace

TEST_F(FileTest, ReadsWhatWasWritten) {
  std::string bytes("a\0b\n", 4);
  put("x", bytes);
  Expected<std::string> back = readFile(in("x"), "thing");
  ASSERT_TRUE(static_cast<bool>(back));
  EXPECT_EQ(*back, bytes);
}

TEST_F(FileTest, ReadErrorsNameThePathAndTheReason) {
  Expected<std::string> r = readFile(in("none"), "graph");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::BadInput);
  EXPECT_EQ(r.error().message, "cannot read graph '" + in("none") +
                                   "': No such file or directory");
  r = readFile(folder, "graph");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "cannot read graph '" + folder +
                                   "': it is a folder, expected a file");
  put("big", "12345");
  r = readFile(in("big"), "graph", 4);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "cannot read graph '" + in("big") +
                                   "': it has 5 bytes, the limit is 4");
  EXPECT_TRUE(static_cast<bool>(readFile(in("big"), "graph", 5)));
  // A FIFO with no writer would block for ever if it were simply opened.
  ASSERT_EQ(::mkfifo(in("fifo").c_str(), 0600), 0);
  r = readFile(in("fifo"), "graph");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message,
            "cannot read graph '" + in("fifo") + "': it is not a regular file");
}

TEST_F(FileTest, NothingIsSeenBeforeCommit) {
  put("x", "old");
  Expected<AtomicFile> file = AtomicFile::open(in("x"));
  ASSERT_TRUE(static_cast<bool>(file));
  ASSERT_TRUE(static_cast<bool>(file->write("new ")));
  ASSERT_TRUE(static_cast<bool>(file->write("text")));
  EXPECT_EQ(*readFile(in("x"), "f"), "old");
  ASSERT_TRUE(static_cast<bool>(file->commit()));
  EXPECT_EQ(*readFile(in("x"), "f"), "new text");
  EXPECT_EQ(count(), 1u) << "the temporary is gone";
  Status again = file->commit();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::Internal);
  EXPECT_FALSE(file->write("more"));
}

TEST_F(FileTest, DestructorRemovesTheTemporary) {
  {
    Expected<AtomicFile> file = AtomicFile::open(in("x"));
    ASSERT_TRUE(static_cast<bool>(file));
    ASSERT_TRUE(static_cast<bool>(file->write("half")));
    AtomicFile moved = std::move(*file);
    EXPECT_EQ(count(), 1u);
  }
  EXPECT_EQ(count(), 0u);
}

TEST_F(FileTest, ModeIsTheUsersUmask) {
  mode_t old = ::umask(027);
  put("x", "y");
  ::umask(old);
  struct stat info;
  ASSERT_EQ(::stat(in("x").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(FileTest, WritersRaceAndOneWholeFileWins) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i)
        EXPECT_TRUE(static_cast<bool>(
            writeIfChanged(in("x"), std::string(1000 + t, char('a' + t)))));
    });
  for (std::thread &t : threads)
    t.join();
  std::string bytes = *readFile(in("x"), "f");
  EXPECT_EQ(bytes, std::string(bytes.size(), bytes[0]));
  EXPECT_EQ(bytes.size(), 1000u + (bytes[0] - 'a'));
  EXPECT_EQ(count(), 1u);
}

TEST_F(FileTest, UnchangedFileKeepsItsTimeStamp) {
  put("x", "same");
  timespec past[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, in("x").c_str(), past, 0), 0);
  Expected<bool> changed = writeIfChanged(in("x"), "same");
  ASSERT_TRUE(static_cast<bool>(changed));
  EXPECT_FALSE(*changed);
  EXPECT_EQ(stamp(in("x")).tv_sec, 1000);
  changed = writeIfChanged(in("x"), "diff");
  ASSERT_TRUE(static_cast<bool>(changed));
  EXPECT_TRUE(*changed);
  EXPECT_NE(stamp(in("x")).tv_sec, 1000);
}

TEST_F(FileTest, WriteErrorsAreMissingAndLeaveNothing) {
  Expected<AtomicFile> file = AtomicFile::open(in("no/such/x"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::Missing);
  EXPECT_EQ(file.error().message, "cannot write '" + in("no/such/x") +
                                      "': No such file or directory");
  // A folder in the way: the rename fails, and the temporary is removed.
  ASSERT_TRUE(static_cast<bool>(makeDirectories(in("d"))));
  Expected<bool> r = writeIfChanged(in("d"), "x");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::Missing);
  EXPECT_EQ(r.error().message,
            "cannot write '" + in("d") + "': Is a directory");
  EXPECT_EQ(count(), 1u);
}

TEST_F(FileTest, FullDiskIsSaid) {
  Expected<AtomicFile> file = AtomicFile::open(in("x"));
  ASSERT_TRUE(static_cast<bool>(file));
  // The limit on file size stands in for a full disk: EFBIG takes the same way
  // out as ENOSPC.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit old, small;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 4;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Status s = file->write("12345678");
  ::setrlimit(RLIMIT_FSIZE, &old);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::Missing);
  EXPECT_EQ(s.error().message,
            "cannot write '" + in("x") + "': File too large");
}

TEST_F(FileTest, MakeDirectories) {
  EXPECT_TRUE(static_cast<bool>(makeDirectories(in("a/b/c"))));
  EXPECT_TRUE(fs::is_directory(in("a/b/c")));
  EXPECT_TRUE(static_cast<bool>(makeDirectories(in("a/b/c/"))));
  put("file", "x");
  Status s = makeDirectories(in("file/sub"));
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().code, ErrorCode::Missing);
  EXPECT_EQ(s.error().message,
            "cannot create folder '" + in("file/sub") + "': Not a directory");
  s = makeDirectories(in("file"));
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().message,
            "cannot create folder '" + in("file") + "': Not a directory");
}
