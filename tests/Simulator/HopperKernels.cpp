//===- HopperKernels.cpp - Micro-kernels for compute capability 9.0 -------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of warpgroups: every thread writes its inputs to 64 bytes of shared
// memory, of which a descriptor makes operands, whatever it says; what they are
// is another question, and answered by the result. Tensor maps: a box of the
// inputs as it lies in shared memory, and back.
//
//===----------------------------------------------------------------------===//
#include "MicroKernelBuilder.h"

namespace micro {
namespace {

constexpr unsigned kWords = 8; ///< That a thread writes to shared memory.
constexpr unsigned kTileBytes = kThreads * kWords * 8;

struct Text {
  std::string body;
  unsigned outputs = 1, blocks = 1;
  std::vector<Map> maps;
  bool stores = true; ///< The outputs, %d50 and on.
  std::string target = "sm_90a";
};

std::string kernelText(const Text &t) {
  std::string s = ".version 8.0\n.target " + t.target +
                  "\n.address_size 64\n"
                  ".shared .align 1024 .b8 tile[" +
                  number(kTileBytes) + "];\n.shared .align 1024 .b8 box[" +
                  number(kTileBytes) +
                  "];\n.shared .align 8 .b64 bars[4];\n"
                  ".visible .entry micro(.param .u64 in, .param .u64 out";
  for (unsigned k = 0; k < t.maps.size(); ++k)
    s += ", .param .align 64 .b8 map" + number(k) + "[128]";
  s += ")\n.reqntid " + number(kThreads) + ", 1, 1\n";
  if (t.blocks > 1)
    s += ".reqnctapercluster " + number(t.blocks) + ", 1, 1\n";
  s += "{\n  .reg .pred %p<10>;\n  .reg .b16 %h<20>;\n"
       "  .reg .b32 %r<100>;\n  .reg .b64 %d<100>;\n  .reg .b32 %s<140>;\n"
       "  mov.u32 %r90, %tid.x;\n  mov.u32 %r91, %ctaid.x;\n"
       "  mad.lo.u32 %r92, %r91, " +
       number(kThreads) +
       ", %r90;\n"
       "  ld.param.u64 %d90, [in];\n  ld.param.u64 %d91, [out];\n"
       "  mad.wide.u32 %d90, %r92, " +
       number(8 * kWords) +
       ", %d90;\n"
       "  mad.wide.u32 %d91, %r92, " +
       number(8 * t.outputs) + ", %d91;\n  setp.eq.u32 %p9, %r90, 0;\n";
  for (unsigned k = 0; k < kWords; ++k)
    s += "  ld.global.u64 %d" + number(k) + ", [%d90+" + number(8 * k) + "];\n";
  s += t.body;
  if (t.stores)
    for (unsigned k = 0; k < t.outputs; ++k)
      s += "  st.global.u64 [%d91+" + number(8 * k) + "], %d" + number(50 + k) +
           ";\n";
  return s + "  ret;\n}\n";
}

void add(Builder &b, const std::string &family, const std::string &name,
         const Text &text, char kind) {
  Case c;
  c.name = name;
  c.family = family;
  c.inputs = kWords;
  c.outputs = text.outputs;
  c.blocks = text.blocks;
  c.maps = text.maps;
  c.ptx = kernelText(text);
  Random r(name);
  auto word = [&]() -> uint64_t {
    auto two = [&](char of) { return draw(r, of) | draw(r, of) << 32; };
    switch (kind) {
    case 'U': // float32 near 1, some zero.
      return (r.below(16) ? draw(r, 'T') : r.below(2) << 31) |
             (r.below(16) ? draw(r, 'T') : r.below(2) << 31) << 32;
    case 'V':
      return two('Q');
    case 'W':
      return two('P');
    case 'e': // Edges of each type.
      return floatBits(r, 's') | floatBits(r, 's') << 32;
    case 'f':
      return two('B');
    case 'g':
      return two('H');
    default:
      return r.next();
    }
  };
  for (unsigned t = 0; t < text.blocks * kThreads * kWords; ++t)
    c.in.push_back(word());
  b.all.push_back(std::move(c));
}

/// Every thread's inputs, where its 64 bytes of `to` are.
std::string fill(const char *to) {
  std::string s = std::string("  mov.u32 %r0, ") + to +
                  ";\n  mad.lo.u32 %r1, %r90, 64, %r0;\n";
  for (unsigned k = 0; k < kWords; k += 2)
    s += "  st.shared.v2.u64 [%r1+" + number(8 * k) + "], {%d" + number(k) +
         ", %d" + number(k + 1) + "};\n";
  return s;
}

// --- products ---------------------------------------------------------------

struct Matrix {
  unsigned start = 0, leading = 16, stride = 1024, span = 128, turned = 0;
  bool outer = false; ///< k outside.
  uint64_t bits() const {
    uint64_t mode = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    return uint64_t(start / 16) | uint64_t(leading / 16) << 16 |
           uint64_t(stride / 16) << 32 | uint64_t(turned) << 49 | mode << 62;
  }
};

struct Product {
  std::string type = "tf32";
  unsigned columns = 16;
  Matrix a, b;
  bool held = false, half = false, scaled = true;
  int signA = 1, signB = 1;
  unsigned steps = 1; ///< Products in a row, each 32 bytes of k further.
};

std::string textOf(const Product &p) {
  bool tf32 = p.type == "tf32";
  unsigned sums = p.columns / (p.half ? 4 : 2);
  std::string s = fill("tile");
  s += "  fence.proxy.async;\n  bar.sync 0;\n"
       "  mov.u32 %r2, tile;\n  and.b32 %r2, %r2, 0x3ffff;\n"
       "  shr.u32 %r2, %r2, 4;\n  cvt.u64.u32 %d10, %r2;\n";
  s += "  add.u64 %d11, %d10, " + std::to_string(p.a.bits()) + ";\n";
  s += "  add.u64 %d12, %d10, " + std::to_string(p.b.bits()) + ";\n";
  // Accumulators and fragments out of the thread's own inputs.
  for (unsigned k = 0; k < kWords; ++k)
    s += "  mov.b64 {%r" + number(10 + 2 * k) + ", %r" + number(11 + 2 * k) +
         "}, %d" + number(k) + ";\n";
  std::string list;
  for (unsigned k = 0; k < sums; ++k) {
    s += "  mov.b32 %s" + number(k) + ", %r" + number(10 + k % 16) + ";\n";
    list += (k ? ", %s" : "%s") + number(k);
  }
  s += "  setp." + std::string(p.scaled ? "eq" : "ne") +
       ".u32 %p1, 0, 0;\n  wgmma.fence.sync.aligned;\n";
  for (unsigned step = 0; step < p.steps; ++step) {
    if (step)
      s += "  add.u64 %d11, %d11, 2;\n  add.u64 %d12, %d12, 2;\n";
    s += "  wgmma.mma_async.sync.aligned.m64n" + number(p.columns) +
         (tf32 ? "k8" : "k16") + (p.half ? ".f16." : ".f32.") + p.type + "." +
         p.type + " {" + list + "}, " +
         (p.held ? "{%r20, %r15, %r12, %r19}" : "%d11") + ", %d12, %p1, " +
         std::to_string(p.signA) + ", " + std::to_string(p.signB);
    if (!tf32 && !p.held)
      s += p.a.outer ? ", 1" : ", 0";
    if (!tf32)
      s += p.b.outer ? ", 1" : ", 0";
    s += ";\n";
  }
  s += "  wgmma.commit_group.sync.aligned;\n"
       "  wgmma.wait_group.sync.aligned 0;\n";
  // All of them, folded into two words.
  s += "  mov.u32 %r40, 1;\n  mov.u32 %r41, 7;\n";
  for (unsigned k = 0; k < sums; ++k)
    s += "  mad.lo.u32 %r4" + number(k % 2) + ", %r4" + number(k % 2) +
         ", 1664525, %s" + number(k) + ";\n";
  // And two as they are.
  s += "  mov.b64 %d50, {%r40, %r41};\n  mov.b64 %d51, {%s0, %s" +
       number(sums - 1) + "};\n";
  return s;
}

void addProduct(Builder &b, const std::string &what, const Product &p,
                char kind = 0) {
  Text t;
  t.body = textOf(p);
  t.outputs = 2;
  auto matrix = [](const Matrix &m) {
    return number(m.span) + (m.outer ? "t" : "") + "@" + number(m.start) + "," +
           number(m.leading) + "," + number(m.stride) +
           (m.turned ? "," + number(m.turned) : "");
  };
  std::string name = "wgmma." + p.type + " n" + number(p.columns) + " " + what +
                     " " + (p.held ? "held" : matrix(p.a)) + " " + matrix(p.b);
  if (!kind)
    kind = p.type == "tf32" ? 'U' : p.type == "bf16" ? 'V' : 'W';
  add(b, "warpgroup", name, t, kind);
}

void products(Builder &b) {
  for (const char *type : {"tf32", "bf16", "f16"}) {
    Product p;
    p.type = type;
    char edge = p.type == "tf32" ? 'e' : p.type == "bf16" ? 'f' : 'g';
    for (unsigned columns : {8, 24, 64, 136}) {
      p.columns = columns;
      // Operands of at most 8192 bytes each, or they overlap: any bytes do.
      p.b.start = columns > 64 ? 1024 : 8192;
      p.b.stride = columns > 64 ? 512 : 1024;
      addProduct(b, "plain", p);
    }
    // 256 columns of 128 bytes would be 32 KB: of 32 they are 8.
    p.columns = 256;
    p.b = {8192, 16, 256, 32};
    addProduct(b, "wide", p);
    p.columns = 16;
    p.b = {8192, 16, 1024, 128};
    addProduct(b, "edges", p, edge);
    p.scaled = false;
    addProduct(b, "no sum", p);
    p.scaled = true;
    p.signA = -1;
    addProduct(b, "minus a", p);
    p.signB = -1;
    addProduct(b, "minus both", p);
    p.signA = p.signB = 1;
    p.steps = 4;
    addProduct(b, "four steps", p);
    p.steps = 1;
    p.held = true;
    addProduct(b, "held", p);
    addProduct(b, "held edges", p, edge);
    p.held = false;
    // Each way of lying, with offsets that tell the two strides apart.
    for (unsigned span : {0u, 32u, 64u, 128u}) {
      unsigned group = span ? 8 * span : 128;
      p.a = {2 * group, span ? 16u : 1280u, group, span};
      p.b = {4096 + group, span ? 16u : 640u, 2 * group, span};
      addProduct(b, "lying", p);
      // Rows that begin inside a pattern.
      if (span) {
        p.a = {2048 + 128, 16, group, span, 1};
        p.b = {4096 + 256, 16, 2 * group, span, 2};
        addProduct(b, "later", p);
        p.a.turned = p.b.turned = 0;
        addProduct(b, "later, unsaid", p);
      }
      if (p.type == "tf32")
        continue;
      p.columns = 96;
      for (int which : {1, 2, 3}) {
        p.a = {group, span ? 16u : 1280u, 2 * group, span};
        p.b = {2048 + group, 16, group, span};
        if (span == 0)
          p.b = {2048, 2048, 128, 0};
        if (which & 1)
          p.a = {group, span ? 2048u : 3072u, span ? group : 256, span, 0,
                 true};
        if (which & 2)
          p.b = {4096, span ? 3072u : 2048u, span ? group : 256, span, 0, true};
        if (span == 32 && (which & 2))
          p.b.leading = 1536;
        addProduct(b, "turned " + std::to_string(which), p);
      }
      p.held = true;
      addProduct(b, "held, turned", p);
      p.held = false;
      p.columns = 16;
    }
  }
  Product half;
  half.type = "f16";
  half.half = true;
  half.columns = 32;
  half.b.start = 8192;
  addProduct(b, "half sums", half);
  addProduct(b, "half sums, edges", half, 'g');
}

// --- tensor maps ------------------------------------------------------------

/// Thread 0 begins `copy`, all wait; then each folds its 64 bytes of the box.
std::string loading(const std::string &copy, uint64_t bytes) {
  std::string s = "  mov.u32 %r0, box;\n  mov.u32 %r2, bars;\n"
                  // What the copy leaves alone is zero.
                  "  mad.lo.u32 %r1, %r90, 64, %r0;\n  mov.u64 %d20, 0;\n";
  for (unsigned k = 0; k < 8; k += 2)
    s += "  st.shared.v2.u64 [%r1+" + number(8 * k) + "], {%d20, %d20};\n";
  s += "  fence.proxy.async;\n"
       "  @%p9 mbarrier.init.shared.b64 [%r2], 1;\n"
       "  @%p9 fence.mbarrier_init.release.cluster;\n  bar.sync 0;\n"
       "  mov.b64 %d21, map0;\n  cvta.param.u64 %d21, %d21;\n"
       "  @!%p9 bra READY;\n"
       "  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], " +
       std::to_string(bytes) + ";\n" + copy +
       "READY:\n"
       "  mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;\n"
       "  @!%p1 bra READY;\n  mov.u64 %d50, 1;\n";
  for (unsigned k = 0; k < 8; ++k)
    s += "  ld.shared.u64 %d22, [%r1+" + number(8 * k) +
         "];\n  mad.lo.u64 %d50, %d50, 6364136223846793005, %d22;\n";
  return s + "  ld.shared.u64 %d51, [%r1];\n";
}

constexpr unsigned kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr const char *kTypeNames[] = {
    "uint8",       "uint16",   "uint32",      "int32",   "uint64",
    "int64",       "float16",  "float32",     "float64", "bfloat16",
    "float32_ftz", "tfloat32", "tfloat32_ftz"};

uint64_t boxBytes(const Map &m) {
  uint64_t bytes = kElementBytes[m.type];
  for (size_t d = 0; d < m.box.size(); ++d) {
    uint64_t step = d ? m.elementStrides[d] : 1;
    bytes *= (m.box[d] + step - 1) / step;
  }
  return bytes;
}

std::string listOf(const std::vector<int> &at) {
  std::string s = "{";
  for (size_t k = 0; k < at.size(); ++k)
    s += (k ? ", " : "") + std::to_string(at[k]);
  return s + "}";
}

std::string nameOf(const Map &m, const std::vector<int> &at) {
  std::string s = std::string(kTypeNames[m.type]) + " " +
                  std::to_string(m.sizes.size()) + "d swizzle " +
                  std::to_string(m.swizzle ? 16 << m.swizzle : 0) + " fill " +
                  std::to_string(m.fill) + " box";
  for (uint64_t v : m.box)
    s += " " + std::to_string(v);
  for (size_t d = 1; d < m.elementStrides.size(); ++d)
    if (m.elementStrides[d] > 1)
      s += " every " + std::to_string(m.elementStrides[d]);
  return s + " at " + listOf(at);
}

Map dense(unsigned type, std::vector<uint64_t> sizes,
          std::vector<uint64_t> box) {
  Map m;
  m.type = type;
  uint64_t step = kElementBytes[type];
  for (size_t d = 0; d + 1 < sizes.size(); ++d)
    m.strides.push_back(step *= sizes[d]);
  m.elementStrides.assign(sizes.size(), 1);
  m.sizes = std::move(sizes);
  m.box = std::move(box);
  return m;
}

std::string coordinates(const std::vector<int> &at, std::string &body) {
  std::string list;
  for (size_t k = 0; k < at.size(); ++k) {
    std::string name = "%r" + number(unsigned(60 + k));
    body += "  mov.b32 " + name + ", " + std::to_string(at[k]) + ";\n";
    list += (k ? ", " : "") + name;
  }
  return "{" + list + "}";
}

void addLoad(Builder &b, const Map &m, const std::vector<int> &at, char kind) {
  Text t;
  std::string copy, list = coordinates(at, copy);
  copy +=
      "  cp.async.bulk.tensor." + std::to_string(at.size()) +
      "d.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%d21, " +
      list + "], [%r2];\n";
  t.body = loading(copy, boxBytes(m));
  t.outputs = 2;
  t.maps = {m};
  add(b, "tensormap", "load " + nameOf(m, at), t, kind);
}

void addStore(Builder &b, Map m, const std::vector<int> &at) {
  m.onOut = true;
  Text t;
  t.body = fill("box") + "  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
                         "  mov.b64 %d21, map0;\n"
                         "  cvta.param.u64 %d21, %d21;\n  @!%p9 bra END;\n";
  std::string list = coordinates(at, t.body);
  t.body += "  cp.async.bulk.tensor." + std::to_string(at.size()) +
            "d.global.shared::cta.bulk_group [%d21, " + list +
            "], [%r0];\n  cp.async.bulk.commit_group;\n"
            "  cp.async.bulk.wait_group 0;\nEND:\n";
  t.outputs = 8;
  t.stores = false;
  t.maps = {m};
  add(b, "tensormap", "store " + nameOf(m, at), t, 'k');
}

void tensorMaps(Builder &b) {
  for (unsigned swizzle : {0u, 1u, 2u, 3u}) {
    uint64_t span = swizzle ? 16u << swizzle : 128;
    for (unsigned type : {7u, 9u, 0u}) {
      Map m = dense(type, {512 / kElementBytes[type], 24},
                    {span / kElementBytes[type], 16});
      m.swizzle = swizzle;
      addLoad(b, m, {0, 0}, 'k');
      int inner = int(16 / kElementBytes[type]);
      addLoad(b, m, {-inner, -3}, 'k');
      addLoad(b, m, {int(512 / kElementBytes[type]) - inner, 15}, 'k');
      addStore(b, m, {inner, 5});
      addStore(b, m, {-inner, 20});
    }
    if (swizzle) { // A box narrower than what is permuted.
      Map m = dense(7, {64, 40}, {4, 32});
      m.swizzle = swizzle;
      addLoad(b, m, {8, 3}, 'k');
      addStore(b, m, {8, 3});
    }
  }
  for (unsigned type : {1u, 2u, 3u, 4u, 5u, 6u, 8u, 10u, 11u, 12u}) {
    Map m = dense(type, {256 / kElementBytes[type], 40},
                  {64 / kElementBytes[type], 32});
    addLoad(b, m, {int(16 / kElementBytes[type]), 20}, type == 6 ? 'g' : 'e');
    if (type >= 6) {
      m.fill = 1;
      addLoad(b, m, {int(16 / kElementBytes[type]), 20}, type == 6 ? 'g' : 'e');
    }
  }
  // Every TF32 rounding: random bits below the cut.
  Map rounding = dense(11, {64, 64}, {32, 64});
  rounding.swizzle = 3;
  addLoad(b, rounding, {0, 0}, 'U');
  addStore(b, rounding, {0, 0});
  for (unsigned type : {7u, 9u}) {
    Map m = dense(type, {64}, {32});
    addLoad(b, m, {48}, 'k');
    addStore(b, m, {48});
    m = dense(type, {16, 8, 6}, {8, 4, 3});
    addLoad(b, m, {8, 6, 4}, 'k');
    addLoad(b, m, {0, -1, -2}, 'k');
    addStore(b, m, {8, 6, 4});
    m = dense(type, {16, 4, 3, 5}, {8, 3, 2, 4});
    addLoad(b, m, {0, 2, 2, -1}, 'k');
    addStore(b, m, {0, 2, 2, -1});
    m = dense(type, {16, 3, 2, 3, 2}, {8, 2, 2, 2, 2});
    addLoad(b, m, {8, 2, 1, 2, -1}, 'k');
    addStore(b, m, {8, 2, 1, 2, -1});
    // Every other row; rows in another order than memory's.
    m = dense(type, {32, 32}, {16, 15});
    m.elementStrides[1] = 2;
    addLoad(b, m, {8, 1}, 'k');
    addLoad(b, m, {8, 21}, 'k');
    m = dense(type, {32, 4, 6}, {16, 4, 3});
    std::swap(m.strides[0], m.strides[1]);
    addLoad(b, m, {0, 1, 4}, 'k');
  }
  Map within = dense(7, {20, 17}, {8, 16});
  within.strides[0] = 4 * 48;
  within.offset = 64;
  addLoad(b, within, {16, 5}, 'k');
}

// --- mbarriers, bulk copies, clusters, the rest -----------------------------

void others(Builder &b) {
  Text t;
  t.outputs = 8;
  // One thread's; the others give zeros.
  std::string zeros;
  for (unsigned k = 50; k < 58; ++k)
    zeros += "  mov.u64 %d" + number(k) + ", 0;\n";
  auto look = [](unsigned to, const std::string &parity) {
    return "  mbarrier.test_wait.parity.shared.b64 %p1, [%r2], " + parity +
           ";\n  selp.u64 %d" + number(to) + ", 1, 2, %p1;\n";
  };
  t.body = zeros +
           "  mov.u32 %r2, bars;\n  @!%p9 bra END;\n"
           "  mbarrier.init.shared.b64 [%r2], 3;\n" +
           look(50, "0") + look(51, "1") +
           "  mbarrier.arrive.shared.b64 %d20, [%r2], 2;\n"
           "  mbarrier.pending_count.b64 %r3, %d20;\n"
           "  cvt.u64.u32 %d52, %r3;\n"
           "  mbarrier.arrive.shared.b64 %d21, [%r2];\n"
           "  mbarrier.pending_count.b64 %r3, %d21;\n"
           "  cvt.u64.u32 %d53, %r3;\n" +
           look(54, "0") + look(55, "1") +
           "  mbarrier.test_wait.shared.b64 %p1, [%r2], %d20;\n"
           "  selp.u64 %d56, 1, 2, %p1;\n"
           "  mbarrier.arrive_drop.shared.b64 %d22, [%r2];\n"
           "  mbarrier.arrive.shared.b64 %d23, [%r2], 2;\n"
           "  mbarrier.arrive.shared.b64 %d24, [%r2];\n"
           "  mbarrier.pending_count.b64 %r3, %d24;\n"
           "  cvt.u64.u32 %d57, %r3;\n"
           "  mbarrier.inval.shared.b64 [%r2];\nEND:\n";
  add(b, "mbarrier", "mbarrier arrivals and phases", t, 'k');
  t.body = zeros +
           "  mov.u32 %r2, bars;\n  @!%p9 bra END;\n"
           "  mbarrier.init.shared.b64 [%r2+8], 2;\n"
           "  add.u32 %r2, %r2, 8;\n"
           "  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], "
           "512;\n  mbarrier.arrive.shared.b64 %d20, [%r2], 2;\n" +
           look(50, "0") +
           "  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 256;\n" +
           look(51, "0") +
           "  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 256;\n" +
           look(52, "0") + look(53, "1") +
           // Bytes that come before they are announced.
           "  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 64;\n"
           "  mbarrier.arrive.shared.b64 %d21, [%r2];\n" +
           look(54, "1") +
           "  mbarrier.arrive.expect_tx.shared.b64 %d22, [%r2], 64;\n" +
           look(55, "1") + "END:\n";
  add(b, "mbarrier", "mbarrier bytes", t, 'k');

  t = Text();
  t.outputs = 2;
  t.maps = {dense(7, {16}, {4})}; // Taken and not used.
  t.body = loading(
      "  ld.param.u64 %d30, [in];\n"
      "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%r0+16], [%d30+128], 4096, [%r2];\n",
      4096);
  add(b, "bulk", "cp.async.bulk to shared", t, 'k');
  t = Text();
  t.outputs = 8;
  t.stores = false;
  t.body = fill("box") +
           "  fence.proxy.async;\n  bar.sync 0;\n  @!%p9 bra END;\n"
           "  cp.async.bulk.global.shared::cta.bulk_group [%d91+256], "
           "[%r0+512], 8192;\n  cp.async.bulk.commit_group;\n"
           "  cp.async.bulk.wait_group.read 0;\nEND:\n";
  add(b, "bulk", "cp.async.bulk to global", t, 'k');

  t = Text();
  t.body = "  and.b32 %r3, %r90, 7;\n  setp.gt.u32 %p2, %r3, 2;\n"
           "  mov.u64 %d50, 0;\n  @!%p2 bra END;\n"
           "  elect.sync %r4|%p1, 0xf8f8f8f8;\n  cvt.u64.u32 %d50, %r4;\n"
           "  @%p1 add.u64 %d50, %d50, 100;\nEND:\n";
  add(b, "warp", "elect.sync", t, 'k');

  // A pair of blocks: who is who, and each reads what the other wrote.
  t = Text();
  t.blocks = 2;
  t.outputs = 4;
  t.body =
      "  mov.u32 %r3, %cluster_ctarank;\n  mov.u32 %r4, %cluster_nctarank;\n"
      "  mov.u32 %r5, %clusterid.x;\n  mov.u32 %r6, %nclusterid.x;\n"
      "  mov.u32 %r7, %cluster_ctaid.x;\n  mov.u32 %r8, %cluster_nctaid.x;\n"
      "  mov.b64 %d50, {%r3, %r4};\n  mov.b64 %d51, {%r5, %r6};\n"
      "  mov.b64 %d52, {%r7, %r8};\n" +
      fill("tile") +
      "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
      "  xor.b32 %r9, %r3, 1;\n  mapa.shared::cluster.u32 %r10, %r1, %r9;\n"
      "  ld.shared::cluster.u64 %d53, [%r10+24];\n"
      "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n";
  add(b, "cluster", "cluster of two", t, 'k');
  // One block's copy for both.
  t = Text();
  t.blocks = 2;
  t.outputs = 2;
  Map m = dense(7, {64, 64}, {32, 64});
  m.swizzle = 3;
  t.maps = {m};
  t.body = loading("  mov.u32 %r5, %cluster_ctarank;\n"
                   "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"
                   "  mov.u16 %h1, 3;\n  mov.b32 %r60, 32;\n"
                   "  mov.b32 %r61, 2;\n  setp.eq.u32 %p2, %r5, 1;\n"
                   "  @%p2 cp.async.bulk.tensor.2d.shared::cluster.global"
                   ".mbarrier::complete_tx::bytes.multicast::cluster [%r0], "
                   "[%d21, {%r60, %r61}], [%r2], %h1;\n",
                   boxBytes(m));
  // All arrive: those that do not copy at once.
  t.body.replace(t.body.find("READY:\n"), 7,
                 "  bra LOOK;\nREADY:\n"
                 "  barrier.cluster.arrive;\n  barrier.cluster.wait;\nLOOK:\n");
  t.body.replace(t.body.find("@!%p1 bra READY"), 15, "@!%p1 bra LOOK");
  t.body += "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
  add(b, "cluster", "multicast", t, 'k');
  // An arrival at the other block's mbarrier.
  t = Text();
  t.blocks = 2;
  t.outputs = 1;
  t.body =
      "  mov.u32 %r2, bars;\n"
      "  @%p9 mbarrier.init.shared.b64 [%r2], 256;\n"
      "  @%p9 fence.mbarrier_init.release.cluster;\n" +
      fill("tile") +
      "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"
      "  mov.u32 %r3, %cluster_ctarank;\n  xor.b32 %r9, %r3, 1;\n"
      "  mapa.shared::cluster.u32 %r10, %r2, %r9;\n"
      "  mapa.shared::cluster.u32 %r11, %r1, %r9;\n"
      "  st.shared::cluster.u64 [%r11], %d5;\n"
      "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r10];\n"
      "LOOK:\n"
      "  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r2], "
      "0;\n  @!%p1 bra LOOK;\n  ld.shared.u64 %d50, [%r1];\n"
      "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";
  add(b, "cluster", "remote arrival", t, 'k');
}

} // namespace

void hopper(Builder &b) {
  others(b);
  tensorMaps(b);
  products(b);
}

} // namespace micro
