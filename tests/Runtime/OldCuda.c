/*===- OldCuda.c - A driver that is too old -------------------------------===*
 *
 * Part of novac, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/
int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int *version) {
  *version = 11080;
  return 0;
}
