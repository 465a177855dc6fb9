//===- Log.cpp - Standard error: progress, warnings, errors ---------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>

#include <unistd.h>

using namespace nova;

/// The message and nothing else: the level is in the words of the message, so
/// that it reads the same in a log of CI as on a terminal.
static spdlog::logger &logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("novac",
                        std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%v");
    made.set_level(spdlog::level::warn);
    return made;
  }();
  return instance;
}

static double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void driver::setVerbose(bool verbose) {
  if (verbose)
    logger().set_level(spdlog::level::info);
}

void driver::info(std::string_view message) {
  if (logger().should_log(spdlog::level::info))
    logger().log(spdlog::level::info, "novac: {}", message);
}

void driver::note(std::string_view message) {
  logger().log(spdlog::level::warn, "novac: {}", message);
}

void driver::warning(std::string_view message) {
  logger().log(spdlog::level::warn, "warning: {}", message);
}

void driver::errorLine(std::string_view message) {
  logger().log(spdlog::level::err, "{}", message);
}

int driver::report(const Error &error) {
  errorLine("error: " + error.message);
  if (!error.hint.empty())
    errorLine("  " + error.hint);
  return static_cast<int>(error.code);
}

driver::ProgressLine::ProgressLine()
    : terminal(::isatty(STDERR_FILENO)), start(now()) {}

driver::ProgressLine::~ProgressLine() {
  if (shown)
    std::fputs("\r\x1b[K", stderr);
}

void driver::ProgressLine::update(std::string_view text) {
  if (!terminal || now() - start < 1)
    return;
  shown = true;
  std::fprintf(stderr, "\r\x1b[K%.*s", static_cast<int>(text.size()),
               text.data());
}
