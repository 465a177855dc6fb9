/*===- sample_kernels.c - A host blob written by hand
 * -----------------------===*
 *
 * Part of novac, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The kernels of the sample bundle (SampleBundle.h): least squares with
 * momentum, x is [7,5], w is [5]. Imports nothing, as every host blob.
 *
 *===----------------------------------------------------------------------===*/
#include <stdint.h>

enum { ROWS = 7, COLUMNS = 5 };

/* args: x with row stride 8, w -> y. Grid: rows. */
void predict(void *const *args, int64_t first, int64_t last) {
  const float *x = args[0], *w = args[1];
  float *y = args[2];
  for (int64_t i = first; i < last; ++i) {
    float sum = 0;
    for (int j = 0; j < COLUMNS; ++j)
      sum += x[8 * i + j] * w[j];
    y[i] = sum;
  }
}

/* args: y, t, 1/rows (a constant) -> r = y - t, loss. Grid: 1. */
void residual(void *const *args, int64_t first, int64_t last) {
  const float *y = args[0], *t = args[1], *scale = args[2];
  float *r = args[3], *loss = args[4];
  for (int64_t p = first; p < last; ++p) {
    float sum = 0;
    for (int i = 0; i < ROWS; ++i) {
      r[i] = y[i] - t[i];
      sum += r[i] * r[i];
    }
    *loss = sum * *scale;
  }
}

/* args: x, r, 2/rows (an immediate) -> g. Grid: columns. */
void gradient(void *const *args, int64_t first, int64_t last) {
  const float *x = args[0], *r = args[1], *scale = args[2];
  float *g = args[3];
  for (int64_t j = first; j < last; ++j) {
    float sum = 0;
    for (int i = 0; i < ROWS; ++i)
      sum += r[i] * x[8 * i + j];
    g[j] = sum * *scale;
  }
}

/* args: w, m, g, lr -> w, m in place. Grid: columns. */
void momentum(void *const *args, int64_t first, int64_t last) {
  float *w = args[0], *m = args[1];
  const float *g = args[2], *lr = args[3];
  for (int64_t j = first; j < last; ++j) {
    m[j] = 0.75f * m[j] + g[j];
    w[j] -= *lr * m[j];
  }
}
