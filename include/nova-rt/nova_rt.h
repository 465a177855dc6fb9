/*===- nova_rt.h - libnova_rt: opens a bundle and launches its step
 * ---------===*
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
 *   nova_rt_instance_bind*     the caller's buffers, all or by index
 *   nova_rt_instance_launch    one step
 *
 * Memory: the caller owns the buffers of all inputs, and of the outputs that
 * update no input (an output that does is written into the buffer of that
 * input). Buffers hold the `bytes` of their tensor and start at a multiple of
 * its `alignment` (16 at least). Those that are written overlap no other.
 * For `host` they are host memory, for a GPU target device memory.
 *
 * GPUs: the CUDA driver is opened when first needed, by the name libcuda.so.1;
 * the environment variable NOVA_RT_LIBCUDA names another file. No other part of
 * CUDA is used. A program lives in one context, every function makes that
 * current for itself, and several devices may be used at once. Launches enqueue
 * and return. An instance has one arena: launches of one instance on different
 * streams are for the caller to order, with events. Nothing is compiled, unless
 * allow_jit is set.
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

/* 2 added GPUs: nova_rt_device_info, nova_rt_bundle_choose_for,
 * nova_rt_bundle_check, nova_rt_program_info, nova_rt_instance_bind,
 * nova_rt_instance_info, the functions for memory, streams and timers, and the
 * last fields of the options. */
#define NOVA_RT_ABI_VERSION 2

#if defined(__GNUC__)
#define NOVA_RT_API __attribute__((visibility("default")))
#else
#define NOVA_RT_API
#endif

typedef int32_t nova_rt_status_t;
enum {
  NOVA_RT_OK = 0,
  NOVA_RT_BAD_INPUT = 1,   /* missing, unreadable or rejected */
  NOVA_RT_USAGE = 2,       /* a wrong argument of a call */
  NOVA_RT_INTERNAL = 3,    /* a defect of this library */
  NOVA_RT_MISSING = 4,     /* this machine lacks something */
  NOVA_RT_VERIFICATION = 5 /* a wrong digest */
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
NOVA_RT_API nova_rt_status_t nova_rt_bundle_input(
    const nova_rt_bundle_t *bundle, uint32_t index, nova_rt_tensor_t *tensor);
NOVA_RT_API nova_rt_status_t nova_rt_bundle_output(
    const nova_rt_bundle_t *bundle, uint32_t index, nova_rt_tensor_t *tensor);

typedef struct nova_rt_target_t {
  size_t struct_size; /* sizeof(nova_rt_target_t), set by the caller */
  const char *name;   /* "host", "sm_90a", ... */
  const char *device; /* what it was scheduled for */
  uint32_t kernels, launches;
  uint64_t arena_bytes;
  uint64_t arena_lower_bound; /* peak of live bytes */
  uint64_t constant_bytes;
} nova_rt_target_t;
NOVA_RT_API nova_rt_status_t nova_rt_bundle_target(
    const nova_rt_bundle_t *bundle, uint32_t index, nova_rt_target_t *target);

/* --- choosing and loading ------------------------------------------------ */

#define NOVA_RT_DEVICE_HOST (-1)

/* The target of the bundle for a device: NOVA_RT_DEVICE_HOST, or the ordinal of
 * a GPU. NOVA_RT_MISSING, with what was expected and what this machine has,
 * when the bundle has none for it or it cannot run here. Loads nothing. */
NOVA_RT_API nova_rt_status_t nova_rt_bundle_choose(
    const nova_rt_bundle_t *bundle, int32_t device, uint32_t *target);

/* A GPU as the driver describes it. */
typedef struct nova_rt_device_t {
  size_t struct_size;     /* sizeof(nova_rt_device_t), set by the caller */
  char name[256];         /* "NVIDIA H200" */
  int32_t major, minor;   /* compute capability */
  int32_t driver_version; /* CUDA version: 1000 major + 10 minor */
  int32_t devices;        /* how many GPUs this process sees */
  uint64_t total_bytes;   /* of device memory */
  uint64_t shared_bytes_per_block;
} nova_rt_device_t;
/* NOVA_RT_MISSING when there is no driver or no such GPU. */
NOVA_RT_API nova_rt_status_t nova_rt_device_info(int32_t device,
                                                 nova_rt_device_t *info);

typedef struct nova_rt_choose_options_t {
  size_t struct_size; /* sizeof(nova_rt_choose_options_t) */
  int32_t device;     /* NOVA_RT_DEVICE_HOST or the ordinal of a GPU */
  int32_t allow_jit;  /* also targets whose PTX the driver would compile */
} nova_rt_choose_options_t;
/* nova_rt_bundle_choose with options. For a GPU: the target that was made for
 * exactly this device, else the one of the highest architecture that runs on
 * it, made for that architecture's canonical device where there are several. A
 * target whose name ends in `a` needs equal compute capability, others an equal
 * major and no lower minor number. What cannot run is refused with what was
 * expected and what this device has: driver, compute capability, limits of a
 * kernel, memory. */
NOVA_RT_API nova_rt_status_t nova_rt_bundle_choose_for(
    const nova_rt_bundle_t *bundle, const nova_rt_choose_options_t *options,
    uint32_t *target);
/* Can that one target run there? NOVA_RT_OK, or why not. Loads nothing. */
NOVA_RT_API nova_rt_status_t
nova_rt_bundle_check(const nova_rt_bundle_t *bundle, uint32_t target,
                     const nova_rt_choose_options_t *options);

typedef struct nova_rt_load_options_t {
  size_t struct_size; /* sizeof(nova_rt_load_options_t) */
  int32_t allow_jit;  /* PTX may go to the driver's compiler. Not for host. */
  void *context;  /* GPU targets: a CUcontext, which outlives the program. NULL:
                     the current context of the calling thread where it is of
                     `device`, else the primary context of `device`, retained */
  int32_t device; /* GPU targets without `context`: the ordinal */
  uint64_t caller_bytes; /* GPU targets: device memory that the caller is going
                            to allocate after this, counted when the device's
                            free memory is checked */
} nova_rt_load_options_t;

/* Reads the blobs of that target, checks size and digest, and loads the code:
 * for a GPU all modules, and constants are uploaded. Before that, everything
 * that nova_rt_bundle_check checks, and free memory against arena, constants
 * and caller_bytes. `options` may be NULL. */
NOVA_RT_API nova_rt_status_t nova_rt_program_load(
    const nova_rt_bundle_t *bundle, uint32_t target,
    const nova_rt_load_options_t *options, nova_rt_program_t **program);
NOVA_RT_API void nova_rt_program_close(nova_rt_program_t *program);

typedef struct nova_rt_program_info_t {
  size_t struct_size; /* sizeof(nova_rt_program_info_t), set by the caller */
  uint32_t target;    /* its index in the bundle */
  int32_t device;     /* NOVA_RT_DEVICE_HOST or the ordinal of a GPU */
  const char *device_name; /* lives as long as the program */
  int32_t jit;             /* the driver compiled the code from PTX */
} nova_rt_program_info_t;
NOVA_RT_API nova_rt_status_t nova_rt_program_info(
    const nova_rt_program_t *program, nova_rt_program_info_t *info);

/* How the launches of a step get onto a GPU. */
enum {
  NOVA_RT_LAUNCH_GRAPH = 0, /* one CUDA graph with the launches' dependencies */
  NOVA_RT_LAUNCH_CHAIN = 1, /* one CUDA graph, each launch after the former */
  NOVA_RT_LAUNCH_PLAIN = 2  /* one call per launch, in order */
};

typedef struct nova_rt_instance_options_t {
  size_t struct_size; /* sizeof(nova_rt_instance_options_t) */
  uint32_t threads;   /* host: 0 for one per CPU that this process may use */
  int32_t launch;     /* GPU targets: NOVA_RT_LAUNCH_... */
} nova_rt_instance_options_t;

/* An arena, and for host a pool of threads. `options` may be NULL. */
NOVA_RT_API nova_rt_status_t nova_rt_instance_create(
    const nova_rt_program_t *program, const nova_rt_instance_options_t *options,
    nova_rt_instance_t **instance);
NOVA_RT_API void nova_rt_instance_close(nova_rt_instance_t *instance);

/* --- a step -------------------------------------------------------------- */

/* Binds a buffer; one that is bound already costs a comparison. Binding an
 * output that updates an input is NOVA_RT_USAGE: bind the input. NULL is
 * accepted for a tensor of 0 bytes only. */
NOVA_RT_API nova_rt_status_t nova_rt_instance_bind_input(
    nova_rt_instance_t *instance, uint32_t index, void *address);
NOVA_RT_API nova_rt_status_t nova_rt_instance_bind_output(
    nova_rt_instance_t *instance, uint32_t index, void *address);

/* Binds all buffers: one address per input and per output, in their order;
 * those of outputs that update an input are ignored. Nothing changed: one
 * comparison of the two arrays. A changed address: at the next launch only
 * those nodes of the graph that use it are updated. Addresses that come back,
 * as those of a caller who alternates between sets of buffers do: up to four
 * sets are kept ready, and cost comparisons. On failure those before it are
 * bound. */
NOVA_RT_API nova_rt_status_t nova_rt_instance_bind(nova_rt_instance_t *instance,
                                                   void *const *inputs,
                                                   size_t input_count,
                                                   void *const *outputs,
                                                   size_t output_count);

/* Runs the step once. host: returns when it is done, `stream` must be NULL;
 * the results do not depend on the number of threads. GPU: enqueues on the
 * CUstream (NULL: the default stream of the context); the first launch builds
 * the graph. Steps of one instance run one after the other, also when they are
 * launched on several streams, of which none may be destroyed while a step runs
 * on it. A launch that fails on the GPU is reported by a later call. */
NOVA_RT_API nova_rt_status_t
nova_rt_instance_launch(nova_rt_instance_t *instance, void *stream);

/* Adds `advance` to each bound scalar input that has one: between two steps.
 * Integers are rounded to nearest, and wrap. GPU: enqueues, in the order of the
 * stream, and returns. */
NOVA_RT_API nova_rt_status_t
nova_rt_instance_advance(nova_rt_instance_t *instance, void *stream);

/* How many threads run the kernels of a host instance. */
NOVA_RT_API uint32_t
nova_rt_instance_threads(const nova_rt_instance_t *instance);

/* What an instance is and has done. */
typedef struct nova_rt_instance_info_t {
  size_t struct_size; /* sizeof(nova_rt_instance_info_t), set by the caller */
  uint32_t threads;   /* 0 for a GPU */
  int32_t launch;     /* NOVA_RT_LAUNCH_...; host: NOVA_RT_LAUNCH_PLAIN */
  uint64_t launches;  /* steps that were launched */
  uint64_t graph_builds; /* executable graphs that were made: one, and one for
                            each set of addresses that came back */
  uint64_t graph_nodes;
  uint64_t node_updates; /* nodes that got new addresses, over all launches */
} nova_rt_instance_info_t;
NOVA_RT_API nova_rt_status_t nova_rt_instance_info(
    const nova_rt_instance_t *instance, nova_rt_instance_info_t *info);

/* --- memory, streams and time, for callers without a CUDA library ----------
 */

/* Memory that buffers of the program can be in, at a multiple of 256 bytes:
 * device memory, or the process's own for host. What is not freed by the caller
 * stays. Its contents are not defined. */
NOVA_RT_API nova_rt_status_t nova_rt_memory_alloc(
    const nova_rt_program_t *program, uint64_t bytes, void **address);
/* NULL is accepted. */
NOVA_RT_API nova_rt_status_t
nova_rt_memory_free(const nova_rt_program_t *program, void *address);
/* Copies `bytes` from the process to such memory, and back, after what is
 * enqueued on `stream`; done on return. */
NOVA_RT_API nova_rt_status_t
nova_rt_memory_write(const nova_rt_program_t *program, void *to,
                     const void *from, uint64_t bytes, void *stream);
NOVA_RT_API nova_rt_status_t
nova_rt_memory_read(const nova_rt_program_t *program, void *to,
                    const void *from, uint64_t bytes, void *stream);

/* A CUstream that does not wait for the default one; NULL for host. */
NOVA_RT_API nova_rt_status_t
nova_rt_stream_create(const nova_rt_program_t *program, void **stream);
/* NULL is accepted. */
NOVA_RT_API nova_rt_status_t
nova_rt_stream_destroy(const nova_rt_program_t *program, void *stream);
/* Returns when everything enqueued on it is done. */
NOVA_RT_API nova_rt_status_t
nova_rt_stream_synchronize(const nova_rt_program_t *program, void *stream);

/* The time between two points of a stream as the GPU reaches them; host: as the
 * CPU does. A timer may be used again once its time has been read. */
typedef struct nova_rt_timer_t nova_rt_timer_t;
NOVA_RT_API nova_rt_status_t
nova_rt_timer_create(const nova_rt_program_t *program, nova_rt_timer_t **timer);
NOVA_RT_API nova_rt_status_t nova_rt_timer_start(nova_rt_timer_t *timer,
                                                 void *stream);
NOVA_RT_API nova_rt_status_t nova_rt_timer_stop(nova_rt_timer_t *timer,
                                                void *stream);
/* From start to stop; waits until the stream has reached the latter. */
NOVA_RT_API nova_rt_status_t nova_rt_timer_milliseconds(nova_rt_timer_t *timer,
                                                        double *milliseconds);
NOVA_RT_API void nova_rt_timer_close(nova_rt_timer_t *timer);

#ifdef __cplusplus
}
#endif

#endif /* NOVA_RT_H */
