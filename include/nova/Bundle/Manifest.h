//===- Manifest.h - manifest.json: its format, reader and writer ----------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest is the only contract between the compiler and the loader. No
// LLVM and no JSON library shows here.
//
// Grammar of schema version 1 (T? = may be absent, T|null = always present):
//
//   manifest  = { schema_version: 1, features: [string], name: string,
//                 graph_digest: digest, producer, numerics,
//                 inputs: [input], outputs: [output], blobs: [blob],
//                 targets: [target], buckets: [bucket] }
//   producer  = { novac: string, llvm: string, ptxas: string, options: attrs }
//   numerics  = { matmul: "f32"|"tf32"|"bf16", deterministic: bool,
//                 fast_math: [string], graph_16bit?: true }
//   input     = tensor + { advance?: real }
//   output    = tensor + { updates: index-of-input|null }
//   tensor    = { name, role, path: string, dtype, shape: [int],
//                 strides: [int], bytes: int, alignment: int }
//   blob      = { digest, size: int, media_type }
//   target    = { name, device: string, min_driver, ptx_version: int,
//                 kernels: [kernel], launches: [launch], arena,
//                 bucket_ready: [launch index], constants: [constant] }
//   kernel    = { name, symbol: string, blob: index, ptx_blob: index|null,
//                 grid, block, cluster: [int,int,int], dynamic_shared_bytes,
//                 static_shared_bytes, registers, spill_bytes, flops, bytes,
//                 predicted_ns: int, schedule: attrs, params: [param] }
//   param     = { kind: "pointer"|"tensormap"|"scalar"|"pointers", size,
//                 alignment: int }
//   launch    = { kind: "kernel"|"memset"|"copy", kernel: index|null,
//                 args: [arg], after: [launch index], nodes: [string] }
//   memory    = { buffer: index, offset: int } | { input: index, offset: int }
//             | { output: index, offset: int } | { constant: index, offset: int
//             }
//               one arg for each param; "pointers" (feature "pointer_tables"):
//               a table by value, size / 8 args in a row, all memory
//   arg       = memory | { immediate: bits, type: dtype } | { tensormap }
//   tensormap = { memory, element_type: string, rank: int, sizes: [int],
//                 strides: [int], box: [int], element_strides: [int],
//                 interleave, swizzle, l2_promotion, fill: string }
//   arena     = { size, alignment, lower_bound: int, buffers: [buffer] }
//   buffer    = { offset, size, first, last: int, alias?: index-of-buffer }
//   constant  = { blob: index, offset, size: int }
//   bucket    = { bytes: int, gradients: [output index] }
//   digest    = "sha256:" + 64 lower-case hexadecimal digits
//   real      = string, hexadecimal float as printf("%a") writes it
//   attrs     = object of ints, bools, strings, lists and attrs: never a real
//
// Canonical text: UTF-8, keys sorted by byte, integers only, no white space but
// one newline after each element of a top-level array (after its comma, or
// before the closing bracket) and one at the end of the file.
//
// Compatibility. A later schema adds keys and never changes the meaning of
// these. A reader of schema 1
//   - accepts schema_version >= 1, and refuses any name in `features` that it
//     does not know: a key that must be understood comes with a feature;
//   - refuses an unknown key when schema_version is 1 (it is a mistake), and
//     ignores it when schema_version is greater (it is an addition);
//   - so a writer that adds a key raises schema_version.
//
//===----------------------------------------------------------------------===//
#ifndef NOVA_BUNDLE_MANIFEST_H
#define NOVA_BUNDLE_MANIFEST_H

#include "nova/Support/Error.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace nova::bundle {

constexpr int64_t kSchemaVersion = 1;
/// Larger manifests are refused unread.
constexpr uint64_t kMaxManifestBytes = 256ull << 20;
/// Deeper nesting is refused while parsing.
constexpr unsigned kMaxNesting = 32;
/// More arena buffers in one target are refused: the overlap check is
/// quadratic.
constexpr uint64_t kMaxArenaBuffers = 1 << 16;
/// More launches in one target are refused: which comes before which is a bit for
/// each pair.
constexpr uint64_t kMaxLaunches = 1 << 15;
/// Base addresses of arguments and of arena buffers, in bytes.
constexpr uint64_t kArgumentAlignment = 16;
constexpr uint64_t kBufferAlignment = 256;

/// Free-form description: integers, booleans, strings, lists, nested objects.
/// A real number is stored as a string made by hexFloat().
struct AttrValue;
using Attributes = std::map<std::string, AttrValue>;
struct AttrValue {
  std::variant<int64_t, bool, std::string, std::vector<AttrValue>, Attributes>
      value;
  AttrValue() : value(int64_t(0)) {}
  AttrValue(int64_t v) : value(v) {}
  AttrValue(int v) : value(int64_t(v)) {}
  AttrValue(bool v) : value(v) {}
  AttrValue(std::string v) : value(std::move(v)) {}
  AttrValue(const char *v) : value(std::string(v)) {}
  AttrValue(std::vector<AttrValue> v) : value(std::move(v)) {}
  AttrValue(Attributes v) : value(std::move(v)) {}
};

/// A tensor of the signature. `strides` are in elements and always present.
/// `bytes` is the memory the caller gives: (1 + sum (shape-1)*stride) elements,
/// 0 for an empty tensor. `path` is the producer's own name ("" for none).
struct TensorDesc {
  std::string name;
  /// Inputs: parameter state buffer scalar input.
  /// Outputs: loss output gradient update.
  std::string role;
  std::string path;
  /// float64 float32 bfloat16 float16 int64 int32 int16 int8 uint8 bool.
  std::string dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  uint64_t bytes = 0;
  uint64_t alignment = kArgumentAlignment;
  /// Inputs of role `scalar` only: what a runner adds after each step, as
  /// hexFloat(). Absent: it stays.
  std::optional<std::string> advance;
};

/// With `updates`, the output is written into the buffer of that input and the
/// caller gives none; otherwise the caller gives a buffer of `bytes`.
struct OutputDesc : TensorDesc {
  std::optional<uint32_t> updates;
};

/// A file blobs/sha256/<hex>, named by the digest of its bytes.
struct Blob {
  std::string digest; ///< "sha256:" + 64 lower-case hexadecimal digits.
  uint64_t size = 0;  ///< Bytes.
  std::string mediaType;
};
inline constexpr const char *kMediaCubin = "application/vnd.nova.cubin";
inline constexpr const char *kMediaPtx = "application/vnd.nova.ptx";
inline constexpr const char *kMediaHost = "application/vnd.nova.host";
inline constexpr const char *kMediaData = "application/vnd.nova.data";

/// Pointers: several in a row, by value, as one parameter.
enum class ParamKind { Pointer, TensorMap, Scalar, Pointers };
/// Readers of a bundle with such parameters must know them.
inline constexpr const char *kFeaturePointerTables = "pointer_tables";
/// Bytes of one pointer.
inline constexpr uint64_t kPointerBytes = 8;
/// Bytes of parameters that a launch may have on any device (CUDA C++ Programming
/// Guide, "Kernel parameters").
inline constexpr uint64_t kMaxParameterBytes = 32764;

/// A kernel parameter; `size` and `alignment` in bytes.
struct Param {
  ParamKind kind = ParamKind::Pointer;
  uint64_t size = kPointerBytes;
  uint64_t alignment = 8;

  /// Launch arguments that it takes.
  uint64_t arguments() const {
    return kind == ParamKind::Pointers ? size / kPointerBytes : 1;
  }
};

/// One compiled function. For the `host` target `blob` is a shared object that
/// imports nothing and exports `symbol` as
///   void symbol(void *const *args, int64_t first, int64_t last)
/// computing grid points [first,last); then grid = {points,1,1},
/// block = cluster = {1,1,1}, and each of args is the address of what the
/// launch argument of that position denotes (of the 8 little-endian bytes of
/// an immediate's bits).
struct Kernel {
  std::string name;   ///< Role and digest prefix, never a counter.
  std::string symbol; ///< In the blob.
  uint32_t blob = 0;
  std::optional<uint32_t> ptxBlob;
  std::array<uint64_t, 3> grid{1, 1, 1};
  std::array<uint64_t, 3> block{1, 1, 1};
  std::array<uint64_t, 3> cluster{1, 1, 1};
  uint64_t dynamicSharedBytes = 0;
  uint64_t staticSharedBytes = 0;
  uint64_t registers = 0;
  uint64_t spillBytes = 0;
  Attributes schedule;
  uint64_t flops = 0; ///< Per launch.
  uint64_t bytes = 0; ///< Moved per launch, at least.
  uint64_t predictedNs = 0;
  std::vector<Param> params;
};

/// Memory: byte `offset` into an arena buffer, an input, an output, a constant.
struct BufferRef {
  uint32_t buffer = 0;
  uint64_t offset = 0;
};
struct InputRef {
  uint32_t input = 0;
  uint64_t offset = 0;
};
struct OutputRef {
  uint32_t output = 0;
  uint64_t offset = 0;
};
struct ConstantRef {
  uint32_t constant = 0;
  uint64_t offset = 0;
};
using MemoryRef = std::variant<BufferRef, InputRef, OutputRef, ConstantRef>;

/// A value passed by value: the low bits of `bits`, read as dtype `type`.
struct Immediate {
  uint64_t bits = 0;
  std::string type;
};

/// Exactly the arguments of cuTensorMapEncodeTiled, innermost dimension first.
/// `sizes` and `box` are in elements; `strides` in bytes, with rank-1 entries
/// (the innermost is implied); `elementStrides` in elements, 1 for dense. The
/// words are those of TensorMapWords.h. The parameter is 128 bytes by value,
/// `.param .align 64 .b8 name[128]`, of which the kernel takes the address.
struct TensorMap {
  MemoryRef memory;
  std::string elementType;
  uint32_t rank = 0;
  std::vector<uint64_t> sizes, strides, box, elementStrides;
  std::string interleave = "none", swizzle = "none", l2Promotion = "none",
              fill = "zero";
};

using LaunchArg = std::variant<BufferRef, InputRef, OutputRef, ConstantRef,
                               Immediate, TensorMap>;

enum class LaunchKind { Kernel, Memset, Copy };

/// One step of the plan. Arguments by kind:
///   Kernel  one per parameter of the kernel, in its order;
///   Memset  destination, immediate byte value (uint8), immediate count
///   (int64); Copy    destination, source, immediate byte count (int64).
/// `kernel` is set for Kernel only. `after` holds smaller launch indices.
struct Launch {
  LaunchKind kind = LaunchKind::Kernel;
  std::optional<uint32_t> kernel;
  std::vector<LaunchArg> args;
  std::vector<uint32_t> after;
  std::vector<std::string> nodes; ///< Graph nodes this computes.
};

/// Bytes [offset, offset+size) of the arena, touched by launches first..last
/// (inclusive) only. Two buffers alive together do not overlap unless one
/// names the other as its `alias` (directly, or through a chain of aliases).
struct ArenaBuffer {
  uint64_t offset = 0; ///< A multiple of kBufferAlignment.
  uint64_t size = 0;
  uint32_t first = 0;
  uint32_t last = 0;
  std::optional<uint32_t> alias;
};

struct Arena {
  uint64_t size = 0;
  uint64_t alignment = kBufferAlignment;
  uint64_t lowerBound = 0; ///< Peak of live bytes.
  std::vector<ArenaBuffer> buffers;
};

/// Constant data: bytes [offset, offset+size) of a blob.
struct Constant {
  uint32_t blob = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// Gradients that are reduced over ranks together.
struct Bucket {
  uint64_t bytes = 0;
  std::vector<uint32_t> gradients; ///< Output indices.
};

/// For the CPU: name "host", device "x86-64-v3", minDriver 0, ptxVersion 0.
/// minDriver is a CUDA version as cuDriverGetVersion gives it: 1000 major + 10
/// minor.
struct Target {
  std::string name;
  std::string device;
  uint64_t minDriver = 0;
  uint64_t ptxVersion = 0;
  std::vector<Kernel> kernels;
  std::vector<Launch> launches;
  Arena arena;
  std::vector<uint32_t> bucketReady; ///< Per bucket, a launch index.
  std::vector<Constant> constants;
};

struct Producer {
  std::string novac, llvm, ptxas; ///< Versions; "" where it took no part.
  Attributes options;             ///< Those that can change the output.
};

struct Numerics {
  std::string matmul = "f32"; ///< How float32 contractions multiply.
  bool deterministic = true;
  std::vector<std::string> fastMath;
  /// The graph itself multiplies 16-bit tensors: results are judged by the
  /// bf16 column whatever `matmul` says. Written only when true.
  bool graph16bit = false;
};

struct Manifest {
  int64_t schemaVersion = kSchemaVersion;
  std::vector<std::string> features;
  std::string name;
  std::string graphDigest; ///< "sha256:" + hex of the canonical graph.
  Producer producer;
  Numerics numerics;
  std::vector<TensorDesc> inputs;
  std::vector<OutputDesc> outputs;
  std::vector<Blob> blobs;
  std::vector<Target> targets;
  std::vector<Bucket> buckets;
};

/// Bytes of one element, or 0 for a name that is no dtype.
unsigned dtypeBytes(std::string_view dtype);
/// The `bytes` of a tensor (see TensorDesc), or nullopt when negative sizes or
/// strides, an unknown dtype, or 64-bit overflow make it meaningless.
std::optional<uint64_t> tensorBytes(std::string_view dtype,
                                    const std::vector<int64_t> &shape,
                                    const std::vector<int64_t> &strides);
/// Contiguous row-major element strides of a shape.
std::vector<int64_t> contiguousStrides(const std::vector<int64_t> &shape);
/// A double as the manifest writes it ("0x1.8p+1"), and back (nullopt unless
/// the whole string is one).
std::string hexFloat(double value);
std::optional<double> parseHexFloat(std::string_view text);

/// The canonical text. Does not check; readManifest(writeManifest(m)) does.
std::string writeManifest(const Manifest &manifest);

/// The rules that do not depend on the text (all of readManifest's but those on
/// JSON itself), on a manifest in memory. Same errors.
Status checkManifest(const Manifest &manifest, std::string_view what);

/// Whether argument `position` of launch `launch` is written. Of a copy or memset
/// the first is; of a kernel its results, the last schedule.results of its pointers.
/// Where the schedule does not say: an output, an input that an output updates, at
/// its last place among the arguments, and an arena buffer in the launch that touches
/// it first. The launch has passed checkManifest().
bool writesArgument(const Manifest &manifest, const Target &target,
                    uint32_t launch, size_t position);

/// Reads and checks everything above and, in checked 64-bit arithmetic: every
/// index in range; sizes and products without overflow; `bytes` as computed
/// from shape, strides and dtype; offsets inside what they point into; buffers
/// aligned, inside the arena, not overlapping while alive, and not touched
/// outside first..last; `after` smaller than the launch itself, and a path of it
/// between any two launches that touch the same bytes, one of them writing; no
/// duplicate key; nothing after the object. BadInput with `what` (the reader's word for
/// the text, usually its path), the JSON path, the value and the expectation.
Expected<Manifest> readManifest(std::string_view text, std::string_view what);

} // namespace nova::bundle

#endif // NOVA_BUNDLE_MANIFEST_H
