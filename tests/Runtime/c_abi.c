/*===- c_abi.c - The header is C99 and the ABI does what it says
 * ------------===*
 *
 * Part of novac, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * c_abi SAMPLE.nova: every function of nova_rt.h once, its success and the
 * misuse that a C caller can commit.
 *
 *===----------------------------------------------------------------------===*/
#include <nova-rt/nova_rt.h>

#include <stdio.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      printf("%d: %s\n  (%s)\n", __LINE__, #condition,                         \
             nova_rt_error_message());                                         \
      ++failures;                                                              \
    }                                                                          \
  } while (0)

#define EXPECT_ERROR(call, status, text)                                       \
  do {                                                                         \
    EXPECT((call) == (status));                                                \
    EXPECT(strcmp(nova_rt_error_message(), (text)) == 0);                      \
  } while (0)

/* Aligned by hand: C99 has no aligned_alloc. */
static union {
  double align;
  unsigned char bytes[4096];
} memory;

static void *aligned(size_t at) {
  uintptr_t base = (uintptr_t)memory.bytes;
  return (void *)((base + 63) / 64 * 64 + at);
}

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "";
  nova_rt_bundle_t *bundle = NULL;
  nova_rt_program_t *program = NULL;
  nova_rt_instance_t *instance = NULL;
  nova_rt_bundle_info_t info;
  nova_rt_tensor_t tensor;
  nova_rt_target_t target;
  nova_rt_load_options_t load;
  nova_rt_instance_options_t create;
  uint32_t chosen = 99, i;
  float *w, *x, *t, *loss, *g, *lr;
  int64_t *count, *seen;
  unsigned char *threes;

  EXPECT(nova_rt_abi_version() == NOVA_RT_ABI_VERSION);
  EXPECT(strchr(nova_rt_version(), '.') != NULL);

  EXPECT_ERROR(nova_rt_bundle_open("/none", &bundle), NOVA_RT_BAD_INPUT,
               "cannot read manifest '/none/manifest.json': No such file or "
               "directory");
  EXPECT(bundle == NULL);
  EXPECT(strstr(nova_rt_error_hint(), "novac compile") != NULL);
  EXPECT_ERROR(nova_rt_bundle_open(NULL, &bundle), NOVA_RT_USAGE,
               "nova_rt_bundle_open: a null argument");
  EXPECT(nova_rt_bundle_open(path, &bundle) == NOVA_RT_OK);
  EXPECT(nova_rt_bundle_verify(bundle) == NOVA_RT_OK);

  memset(&info, 0, sizeof info);
  EXPECT_ERROR(nova_rt_bundle_info(bundle, &info), NOVA_RT_USAGE,
               "struct_size is 0, expected at least 56");
  info.struct_size = sizeof info;
  EXPECT(nova_rt_bundle_info(bundle, &info) == NOVA_RT_OK);
  EXPECT(strcmp(info.name, "least_squares") == 0);
  EXPECT(strcmp(info.matmul, "f32") == 0);
  EXPECT(info.inputs == 6 && info.outputs == 6 && info.targets == 1);

  tensor.struct_size = sizeof tensor;
  EXPECT(nova_rt_bundle_input(bundle, 4, &tensor) == NOVA_RT_OK);
  EXPECT(strcmp(tensor.name, "x") == 0 && strcmp(tensor.role, "input") == 0);
  EXPECT(tensor.rank == 2 && tensor.shape[0] == 7 && tensor.strides[0] == 8);
  EXPECT(tensor.bytes == 4 * (6 * 8 + 5) && tensor.alignment == 16);
  EXPECT(nova_rt_bundle_input(bundle, 3, &tensor) == NOVA_RT_OK);
  EXPECT(tensor.has_advance && tensor.advance == 1 && tensor.updates == -1);
  EXPECT(nova_rt_bundle_output(bundle, 3, &tensor) == NOVA_RT_OK);
  EXPECT(tensor.updates == 1);
  EXPECT_ERROR(nova_rt_bundle_input(bundle, 6, &tensor), NOVA_RT_USAGE,
               "input 6, the bundle has 6");
  EXPECT_ERROR(nova_rt_bundle_output(bundle, 9, &tensor), NOVA_RT_USAGE,
               "output 9, the bundle has 6");

  target.struct_size = sizeof target;
  EXPECT(nova_rt_bundle_target(bundle, 0, &target) == NOVA_RT_OK);
  EXPECT(strcmp(target.name, "host") == 0 && target.launches == 6);
  EXPECT(target.arena_bytes == 256 && target.constant_bytes == 4);

  EXPECT_ERROR(nova_rt_bundle_choose(bundle, 0, &chosen), NOVA_RT_MISSING,
               "GPU 0 was asked for, the bundle has no target for a GPU, it "
               "has: host (x86-64-v3)");
  EXPECT(chosen == 99);
  EXPECT_ERROR(nova_rt_bundle_choose(bundle, -2, &chosen), NOVA_RT_USAGE,
               "device -2, expected -1 for the CPU or the ordinal of a GPU");
  EXPECT(nova_rt_bundle_choose(bundle, NOVA_RT_DEVICE_HOST, &chosen) ==
         NOVA_RT_OK);
  EXPECT(chosen == 0);

  EXPECT_ERROR(nova_rt_program_load(bundle, 1, NULL, &program), NOVA_RT_USAGE,
               "target 1, the bundle has 1");
  memset(&load, 0, sizeof load);
  EXPECT_ERROR(nova_rt_program_load(bundle, 0, &load, &program), NOVA_RT_USAGE,
               "struct_size of the options is not set");
  load.struct_size = sizeof load;
  load.context = &load;
  EXPECT_ERROR(nova_rt_program_load(bundle, 0, &load, &program), NOVA_RT_USAGE,
               "nova_rt_program_load: a CUDA context, expected NULL for a "
               "host target");
  load.context = NULL;
  EXPECT(nova_rt_program_load(bundle, 0, &load, &program) == NOVA_RT_OK);

  create.struct_size = sizeof create;
  create.threads = 5000;
  EXPECT_ERROR(nova_rt_instance_create(program, &create, &instance),
               NOVA_RT_USAGE, "threads: 5000, expected at most 1024");
  create.threads = 3;
  EXPECT(nova_rt_instance_create(program, &create, &instance) == NOVA_RT_OK);
  EXPECT(nova_rt_instance_threads(instance) == 3);

  /* Closing early is allowed: the instance keeps what it needs. */
  nova_rt_program_close(program);
  nova_rt_bundle_close(bundle);

  w = aligned(0), x = aligned(256), t = aligned(512), lr = aligned(1024);
  loss = aligned(576), g = aligned(640), count = aligned(704);
  seen = aligned(768), threes = aligned(832);
  for (i = 0; i < 5; ++i)
    w[i] = 1;
  for (i = 0; i < 7; ++i)
    x[8 * i] = 1, t[i] = 3;
  *lr = 0.5f, *count = 41;
  EXPECT_ERROR(nova_rt_instance_launch(instance, NULL), NOVA_RT_USAGE,
               "input 0 (\"w\") is not bound");
  EXPECT_ERROR(nova_rt_instance_bind_input(instance, 0, NULL), NOVA_RT_USAGE,
               "input 0 (\"w\"): a null address, expected 20 bytes");
  EXPECT(nova_rt_instance_bind_input(instance, 0, w + 1) == NOVA_RT_USAGE);
  EXPECT(strstr(nova_rt_error_message(), "expected a multiple of 16 bytes"));
  EXPECT_ERROR(nova_rt_instance_bind_output(instance, 2, w), NOVA_RT_USAGE,
               "output 2 (\"w_new\") has no buffer of its own, it is written "
               "into that of input 0");
  EXPECT_ERROR(nova_rt_instance_bind_input(instance, 6, w), NOVA_RT_USAGE,
               "input 6, the bundle has 6");
  EXPECT_ERROR(nova_rt_instance_bind_output(instance, 6, w), NOVA_RT_USAGE,
               "output 6, the bundle has 6");
  EXPECT(!nova_rt_instance_bind_input(instance, 0, w));
  EXPECT(!nova_rt_instance_bind_input(instance, 1, w));
  EXPECT(!nova_rt_instance_bind_input(instance, 2, lr));
  EXPECT(!nova_rt_instance_bind_input(instance, 3, count));
  EXPECT(!nova_rt_instance_bind_input(instance, 4, x));
  EXPECT(!nova_rt_instance_bind_input(instance, 5, t));
  EXPECT(!nova_rt_instance_bind_output(instance, 0, loss));
  EXPECT(!nova_rt_instance_bind_output(instance, 1, g));
  EXPECT(!nova_rt_instance_bind_output(instance, 4, seen));
  EXPECT(!nova_rt_instance_bind_output(instance, 5, threes));
  EXPECT_ERROR(nova_rt_instance_launch(instance, NULL), NOVA_RT_USAGE,
               "the buffers of input 0 (\"w\") and input 1 (\"m\") overlap, "
               "and one of them is written");
  EXPECT(!nova_rt_instance_bind_input(instance, 1, aligned(64)));
  EXPECT_ERROR(nova_rt_instance_launch(instance, instance), NOVA_RT_USAGE,
               "nova_rt_instance_launch: a stream, expected NULL for a host "
               "target");
  EXPECT(nova_rt_instance_launch(instance, NULL) == NOVA_RT_OK);

  /* y = 1, r = -2, loss = 4, g = -4 in column 0, w = 1 - 0.5 * -4. */
  EXPECT(*loss == 4 && g[0] == -4 && g[1] == 0 && w[0] == 3 && w[1] == 1);
  EXPECT(*seen == 41 && threes[0] == 3 && threes[15] == 3 && threes[16] == 0);
  EXPECT(nova_rt_instance_advance(instance, NULL) == NOVA_RT_OK);
  EXPECT(*count == 42 && *lr == 0.5f);
  EXPECT(nova_rt_instance_advance(instance, x) == NOVA_RT_USAGE);

  EXPECT(nova_rt_instance_launch(NULL, NULL) == NOVA_RT_USAGE);
  EXPECT(nova_rt_bundle_verify(NULL) == NOVA_RT_USAGE);
  EXPECT(nova_rt_instance_threads(NULL) == 0);
  nova_rt_instance_close(instance);
  nova_rt_instance_close(NULL);
  nova_rt_program_close(NULL);
  nova_rt_bundle_close(NULL);
  if (!failures)
    printf("ok\n");
  return failures != 0;
}
