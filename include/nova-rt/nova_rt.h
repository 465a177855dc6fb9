/*===- nova_rt.h - libnova_rt: opens a bundle and launches its step ---------===*
 *
 * Part of novac, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * C99, no dependencies. In the order of use:
 *
 *   nova_rt_bundle_open        reads and checks the manifest, reads no blob
 *   nova_rt_bundle_input, ...  the signature
 *   nova_rt_bundle_choose      which target runs on a device, and can it here
 *   nova_rt_program_load       reads the target's blobs, verifies, loads code
 *   nova_rt_instance_create    the arena, and for `host` the threads
 *   nova_rt_instance_bind_*    the caller's buffers, by index
 *   nova_rt_instance_launch    one step
 *
 * Memory: the caller owns the buffers of all inputs, and of the outputs that
 * update no input (an output that does is written into the buffer of that
 * input). Buffers hold the `bytes` of their tensor and start at a multiple of
 * its `alignment` (16 at least). Those that are written overlap no other.
 * For `host` they are host memory, for a GPU target device memory.
 *
 * Threads: every function may be called from any thread. Launches and bindings
 * of one instance exclude each other; instances of one program run
 * concurrently. Handles are counted inside: close them in any order.
 *
 * Errors: a function that can fail returns a status, NOVA_RT_OK on success; on
 * failure output arguments are untouched and nova_rt_error_message() holds the
 * reason for the calling thread. The values of the statuses are the exit
 * statuses of the novac commands.
 *
 * Compatibility: NOVA_RT_ABI_VERSION grows when functions are added; a change
 * that would break a caller changes the SONAME instead. Structs that the
 * library fills begin with their size, set by the caller: fields are only
 * added at the end, and those beyond the size are not written.
 *
 *===----------------------------------------------------------------------===*/
#ifndef NOVA_RT_H
#define NOVA_RT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NOVA_RT_ABI_VERSION 1

#if defined(__GNUC__)
#define NOVA_RT_API __attribute__((visibility("default")))
#else
#define NOVA_RT_API
#endif

typedef int32_t nova_rt_status_t;
enum {
  NOVA_RT_OK = 0,
  NOVA_RT_BAD_INPUT = 1,    /* missing, unreadable or rejected */
  NOVA_RT_USAGE = 2,        /* a wrong argument of a call */
  NOVA_RT_INTERNAL = 3,     /* a defect of this library */
  NOVA_RT_MISSING = 4,      /* this machine lacks something */
  NOVA_RT_VERIFICATION = 5  /* a wrong digest */
};

typedef struct nova_rt_bundle_t nova_rt_bundle_t;
typedef struct nova_rt_program_t nova_rt_program_t;
typedef struct nova_rt_instance_t nova_rt_instance_t;

/* The version that the library was built as, NOVA_RT_ABI_VERSION and
 * "MAJOR.MINOR.PATCH". */
NOVA_RT_API int32_t nova_rt_abi_version(void);
NOVA_RT_API const char *nova_rt_version(void);

/* The last failure of this thread: what was got and what was expected, and what
 * to do about it ("" for none). Valid until the thread's next failure. */
NOVA_RT_API const char *nova_rt_error_message(void);
NOVA_RT_API const char *nova_rt_error_hint(void);

/* --- the bundle ---------------------------------------------------------- */

/* `path` is the bundle's folder. */
NOVA_RT_API nova_rt_status_t nova_rt_bundle_open(const char *path,
                                                 nova_rt_bundle_t **bundle);
/* NULL is accepted, as by every close. */
NOVA_RT_API void nova_rt_bundle_close(nova_rt_bundle_t *bundle);
/* Reads every blob of every target and compares its digest. */
NOVA_RT_API nova_rt_status_t
nova_rt_bundle_verify(const nova_rt_bundle_t *bundle);

/* Strings below live as long as the bundle. */
typedef struct nova_rt_bundle_info_t {
  size_t struct_size; /* sizeof(nova_rt_bundle_info_t), set by the caller */
  const char *name;
  const char *graph_digest; /* "sha256:..." */
  const char *matmul;       /* "f32", "tf32" or "bf16" */
  int32_t graph_16bit;      /* the graph itself multiplies 16-bit tensors */
  uint32_t inputs, outputs, targets, blobs;
} nova_rt_bundle_info_t;
NOVA_RT_API nova_rt_status_t nova_rt_bundle_info(const nova_rt_bundle_t *bundle,
                                                 nova_rt_bundle_info_t *info);

typedef struct nova_rt_tensor_t {
  size_t struct_size; /* sizeof(nova_rt_tensor_t), set by the caller */
  const char *name;
  const char *role;  /* parameter state buffer scalar input;
                        loss output gradient update */
  const char *path;  /* the producer's own name, "" for none */
  const char *dtype; /* "float32", "int64", ... */
  uint32_t rank;
  const int64_t *shape;
  const int64_t *strides; /* in elements */
  uint64_t bytes;         /* of the buffer, gaps between strides included */
  uint64_t alignment;     /* of its address */
  int64_t updates;        /* the input that an output replaces, or -1 */
  int32_t has_advance;    /* a scalar that a runner advances after each step */
  double advance;
} nova_rt_tensor_t;
NOVA_RT_API nova_rt_status_t
nova_rt_bundle_input(const nova_rt_bundle_t *bundle, uint32_t index,
                     nova_rt_tensor_t *tensor);
NOVA_RT_API nova_rt_status_t
nova_rt_bundle_output(const nova_rt_bundle_t *bundle, uint32_t index,
                      nova_rt_tensor_t *tensor);

typedef struct nova_rt_target_t {
  size_t struct_size; /* sizeof(nova_rt_target_t), set by the caller */
  const char *name;   /* "host", "sm_90a", ... */
  const char *device; /* what it was scheduled for */
  uint32_t kernels, launches;
  uint64_t arena_bytes;
  uint64_t arena_lower_bound; /* peak of live bytes */
  uint64_t constant_bytes;
} nova_rt_target_t;
NOVA_RT_API nova_rt_status_t
nova_rt_bundle_target(const nova_rt_bundle_t *bundle, uint32_t index,
                      nova_rt_target_t *target);

/* --- choosing and loading ------------------------------------------------ */

#define NOVA_RT_DEVICE_HOST (-1)

/* The target of the bundle for a device: NOVA_RT_DEVICE_HOST, or the ordinal of
 * a GPU. NOVA_RT_MISSING, with what was expected and what this machine has,
 * when the bundle has none for it or it cannot run here. Loads nothing. */
NOVA_RT_API nova_rt_status_t nova_rt_bundle_choose(
    const nova_rt_bundle_t *bundle, int32_t device, uint32_t *target);

typedef struct nova_rt_load_options_t {
  size_t struct_size; /* sizeof(nova_rt_load_options_t) */
  int32_t allow_jit;  /* PTX may go to the driver's compiler. Not for host. */
  void *context;      /* GPU targets: a CUcontext, NULL for the primary one */
} nova_rt_load_options_t;

/* Reads the blobs of that target, checks size and digest, and loads the code.
 * `options` may be NULL. */
NOVA_RT_API nova_rt_status_t nova_rt_program_load(
    const nova_rt_bundle_t *bundle, uint32_t target,
    const nova_rt_load_options_t *options, nova_rt_program_t **program);
NOVA_RT_API void nova_rt_program_close(nova_rt_program_t *program);

typedef struct nova_rt_instance_options_t {
  size_t struct_size; /* sizeof(nova_rt_instance_options_t) */
  uint32_t threads;   /* host: 0 for one per CPU that this process may use */
} nova_rt_instance_options_t;

/* An arena, and for host a pool of threads. `options` may be NULL. */
NOVA_RT_API nova_rt_status_t nova_rt_instance_create(
    const nova_rt_program_t *program,
    const nova_rt_instance_options_t *options, nova_rt_instance_t **instance);
NOVA_RT_API void nova_rt_instance_close(nova_rt_instance_t *instance);

/* --- a step -------------------------------------------------------------- */

/* Binds a buffer; one that is bound already costs a comparison. Binding an
 * output that updates an input is NOVA_RT_USAGE: bind the input. NULL is
 * accepted for a tensor of 0 bytes only. */
NOVA_RT_API nova_rt_status_t nova_rt_instance_bind_input(
    nova_rt_instance_t *instance, uint32_t index, void *address);
NOVA_RT_API nova_rt_status_t nova_rt_instance_bind_output(
    nova_rt_instance_t *instance, uint32_t index, void *address);

/* Runs the step once. host: returns when it is done, `stream` must be NULL;
 * the results do not depend on the number of threads. GPU: enqueues on the
 * CUstream. */
NOVA_RT_API nova_rt_status_t
nova_rt_instance_launch(nova_rt_instance_t *instance, void *stream);

/* Adds `advance` to each bound scalar input that has one: between two steps.
 * Integers are rounded to nearest, and wrap. */
NOVA_RT_API nova_rt_status_t
nova_rt_instance_advance(nova_rt_instance_t *instance, void *stream);

/* How many threads run the kernels of a host instance. */
NOVA_RT_API uint32_t
nova_rt_instance_threads(const nova_rt_instance_t *instance);

#ifdef __cplusplus
}
#endif

#endif /* NOVA_RT_H */
