//===- novac.cpp - The compiler -------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "nova/Driver/Driver.h"

int main(int argc, char **argv) { return nova::driver::run(argc, argv); }
