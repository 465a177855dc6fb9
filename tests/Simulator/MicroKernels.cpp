//===- MicroKernels.cpp - One instruction, many inputs --------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "MicroKernelBuilder.h"

#include "nova/Support/Hash.h"

#include <bit>
#include <cmath>
#include <map>

namespace micro {
namespace {

void integers(Builder &b) {
  const std::pair<const char *, char> types[] = {
      {"16", 'i'}, {"32", 'j'}, {"64", 'k'}};
  for (auto [bits, kind] : types) {
    std::string two(2, kind), three(3, kind);
    for (const char *sign : {"s", "u"}) {
      std::string t = std::string(".") + sign + bits;
      for (const char *op :
           {"add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"})
        b.simple("integer", op + t, kind, two);
      for (const char *op : {"mad.lo", "mad.hi", "sad"})
        b.simple("integer", op + t, kind, three);
      if (kind != 'k') {
        char wide = kind == 'i' ? 'j' : 'k';
        b.simple("integer", "mul.wide" + t, wide, two);
        b.simple("integer", "mad.wide" + t, wide, two + wide);
      }
      b.simple("integer", "shr" + t, kind, std::string(1, kind) + "n");
      for (const char *c : {"eq", "ne", "lt", "le", "gt", "ge"})
        b.simple("compare", std::string("setp.") + c + t, 'p', two);
      if (kind != 'i') {
        b.simple("bits", "bfe" + t, kind, std::string(1, kind) + "nn");
        b.simple("bits", "bfind" + t, 'j', std::string(1, kind));
        b.simple("bits", "bfind.shiftamt" + t, 'j', std::string(1, kind));
      }
    }
    std::string t = std::string(".b") + bits;
    for (const char *op : {"and", "or", "xor"})
      b.simple("logic", op + t, kind, two);
    for (const char *op : {"not", "cnot"})
      b.simple("logic", op + t, kind, std::string(1, kind));
    b.simple("logic", "shl" + t, kind, std::string(1, kind) + "n");
    b.simple("integer", std::string("neg.s") + bits, kind,
             std::string(1, kind));
    b.simple("integer", std::string("abs.s") + bits, kind,
             std::string(1, kind));
    if (kind != 'i') {
      b.simple("bits", "popc" + t, 'j', std::string(1, kind));
      b.simple("bits", "clz" + t, 'j', std::string(1, kind));
      b.simple("bits", "brev" + t, kind, std::string(1, kind));
      b.simple("bits", "bfi" + t, kind, two + "nn");
    }
  }
  b.simple("integer", "add.sat.s32", 'j', "jj");
  b.simple("integer", "sub.sat.s32", 'j', "jj");
  for (const char *op :
       {"mul24.lo.s32", "mul24.hi.s32", "mul24.lo.u32", "mul24.hi.u32"})
    b.simple("integer", op, 'j', "jj");
  b.simple("integer", "mad24.lo.s32", 'j', "jjj");
  for (const char *op : {"dp4a.s32.s32", "dp4a.u32.u32", "dp4a.u32.s32",
                         "dp2a.lo.s32.s32", "dp2a.hi.u32.u32"})
    b.simple("integer", op, 'j', "jjj");
  for (const char *op : {"shf.l.clamp.b32", "shf.l.wrap.b32", "shf.r.clamp.b32",
                         "shf.r.wrap.b32"})
    b.simple("logic", op, 'j', "jjn");
  for (const char *table : {", 0x80", ", 0x6a", ", 0xe8", ", 0x1b", ", 0x96"})
    b.simple("logic", "lop3.b32", 'j', "jjj", kExact, "sm_80", table);
  b.simple("bits", "fns.b32", 'j', "jnn");
  for (const char *op : {"szext.clamp.s32", "szext.wrap.s32", "szext.clamp.u32",
                         "szext.wrap.u32"})
    b.simple("bits", op, 'j', "jn");
  b.simple("bits", "bmsk.clamp.b32", 'j', "nn");
  b.simple("bits", "bmsk.wrap.b32", 'j', "nn");
  for (const char *mode : {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"})
    b.simple("move", std::string("prmt.b32") + mode, 'j', "jjj");
  b.custom("integer", "add.cc chain",
           "  cvt.u32.u64 %r0, %d0;\n  cvt.u32.u64 %r1, %d1;\n"
           "  add.cc.u32 %r2, %r0, %r1;\n  addc.cc.u32 %r3, %r1, %r1;\n"
           "  addc.u32 %r4, 0, 0;\n  sub.cc.u32 %r5, %r0, %r1;\n"
           "  subc.u32 %r6, %r1, %r0;\n  cvt.u64.u32 %d50, %r2;\n"
           "  cvt.u64.u32 %d51, %r3;\n  cvt.u64.u32 %d52, %r4;\n"
           "  cvt.u64.u32 %d53, %r5;\n  cvt.u64.u32 %d54, %r6;\n",
           "jj", 5);
  b.custom("move", "mov pack and unpack",
           "  mov.b64 {%r0, %r1}, %d0;\n  mov.b64 %d50, {%r1, %r0};\n"
           "  mov.b32 {%h0, %h1}, %r0;\n  mov.b32 %r2, {%h1, %h0};\n"
           "  cvt.u64.u32 %d51, %r2;\n  mov.b64 {%h2, %h3, %h4, %h5}, %d0;\n"
           "  mov.b64 %d52, {%h5, %h4, %h3, %h2};\n",
           "k", 3);
}

void floats(Builder &b) {
  for (const char *f : {"", ".ftz"}) {
    for (const char *round : {".rn", ".rz", ".rm", ".rp"}) {
      std::string m = std::string(round) + f + ".f32";
      for (const char *op : {"add", "sub", "mul"})
        b.simple("float32", op + m, 's', "ss");
      b.simple("float32", "fma" + m, 's', "sss");
      b.simple("float32", "div" + m, 's', "ss");
      b.simple("float32", "rcp" + m, 's', "s");
      b.simple("float32", "sqrt" + m, 's', "s");
    }
    std::string m = std::string(f) + ".f32";
    b.simple("float32", "add" + m, 's', "ss");
    b.simple("float32", "add.rn" + std::string(f) + ".sat.f32", 's', "ss");
    b.simple("float32", "fma.rn" + std::string(f) + ".sat.f32", 's', "sss");
    b.simple("float32", "neg" + m, 's', "s");
    b.simple("float32", "abs" + m, 's', "s");
    for (const char *op : {"min", "max"}) {
      b.simple("float32", op + m, 's', "ss");
      b.simple("float32", std::string(op) + f + ".NaN.f32", 's', "ss");
    }
    for (const char *c : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu",
                          "ltu", "leu", "gtu", "geu", "num", "nan"})
      b.simple("compare", std::string("setp.") + c + m, 'p', "ss");
    b.simple("special", "ex2.approx" + m, 's', "s", {Tolerance::Ulps, 4, 's'});
    b.simple("special", "lg2.approx" + m, 's', "s",
             {Tolerance::Absolute, 21, 's'});
    b.simple("special", "sin.approx" + m, 's', "s",
             {Tolerance::Absolute, 12, 's'});
    b.simple("special", "cos.approx" + m, 's', "s",
             {Tolerance::Absolute, 12, 's'});
    b.simple("special", "rcp.approx" + m, 's', "s", {Tolerance::Ulps, 2, 's'});
    b.simple("special", "rsqrt.approx" + m, 's', "s",
             {Tolerance::Ulps, 4, 's'});
    b.simple("special", "sqrt.approx" + m, 's', "s",
             {Tolerance::Relative, 22, 's'});
    b.simple("special", "div.approx" + m, 's', "ss", {Tolerance::Ulps, 4, 's'});
    b.simple("special", "div.full" + m, 's', "ss", {Tolerance::Ulps, 4, 's'});
  }
  b.simple("special", "tanh.approx.f32", 's', "s",
           {Tolerance::Relative, 10, 's'});
  b.simple("float32", "copysign.f32", 's', "ss");
  b.simple("float64", "copysign.f64", 'd', "dd");
  for (const char *round : {".rn", ".rz", ".rm", ".rp"}) {
    std::string m = std::string(round) + ".f64";
    for (const char *op : {"add", "sub", "mul", "div"})
      b.simple("float64", op + m, 'd', "dd");
    b.simple("float64", "fma" + m, 'd', "ddd");
    b.simple("float64", "rcp" + m, 'd', "d");
    b.simple("float64", "sqrt" + m, 'd', "d");
  }
  for (const char *op : {"min.f64", "max.f64"})
    b.simple("float64", op, 'd', "dd");
  b.simple("float64", "neg.f64", 'd', "d");
  b.simple("float64", "abs.f64", 'd', "d");
  b.simple("special", "rcp.approx.ftz.f64", 'd', "d",
           {Tolerance::Relative, 19, 'd'});
  b.simple("special", "rsqrt.approx.ftz.f64", 'd', "d",
           {Tolerance::Relative, 19, 'd'});
  for (const char *c : {"eq", "ne", "lt", "gt", "neu", "ltu", "nan"})
    b.simple("compare", std::string("setp.") + c + ".f64", 'p', "dd");
  for (const char *p :
       {"finite", "infinite", "number", "notanumber", "normal", "subnormal"})
    b.simple("float32", std::string("testp.") + p + ".f32", 'p', "s");
  b.custom(
      "compare", "setp with and, second result",
      "  cvt.u32.u64 %r0, %d0;\n  cvt.u32.u64 %r1, %d1;\n"
      "  setp.lt.u32 %p1, %r0, 100;\n"
      "  setp.gt.and.f32 %p2|%p3, %r0, %r1, !%p1;\n"
      "  selp.u64 %d50, 1, 0, %p2;\n  selp.u64 %d51, 1, 0, %p3;\n"
      "  set.gt.u32.f32 %r2, %r0, %r1;\n  set.le.f32.s32 %r3, %r0, %r1;\n"
      "  cvt.u64.u32 %d52, %r2;\n  cvt.u64.u32 %d53, %r3;\n"
      "  slct.f32.s32 %r4, %r0, %r1, %r1;\n  slct.u32.f32 %r5, %r0, %r1, %r1;\n"
      "  cvt.u64.u32 %d54, %r4;\n  cvt.u64.u32 %d55, %r5;\n",
      "ss", 6);
}

void halves(Builder &b) {
  for (const char *op : {"add", "sub", "mul"}) {
    b.simple("half", std::string(op) + ".rn.f16", 'h', "hh");
    b.simple("half", std::string(op) + ".rn.ftz.f16", 'h', "hh");
    b.simple("half", std::string(op) + ".rn.sat.f16", 'h', "hh");
    b.simple("half", std::string(op) + ".rn.f16x2", 'H', "HH");
    b.simple("half", std::string(op) + ".rn.bf16", 'b', "bb", kExact, "sm_90");
    b.simple("half", std::string(op) + ".rn.bf16x2", 'B', "BB", kExact,
             "sm_90");
  }
  for (const char *m : {".rn", ".rn.ftz", ".rn.sat", ".rn.relu"}) {
    b.simple("half", std::string("fma") + m + ".f16", 'h', "hhh");
    b.simple("half", std::string("fma") + m + ".f16x2", 'H', "HHH");
  }
  b.simple("half", "fma.rn.bf16", 'b', "bbb");
  b.simple("half", "fma.rn.bf16x2", 'B', "BBB");
  b.simple("half", "fma.rn.relu.bf16x2", 'B', "BBB");
  for (const char *op : {"min", "max", "min.NaN", "max.NaN"}) {
    b.simple("half", std::string(op) + ".f16", 'h', "hh");
    b.simple("half", std::string(op) + ".f16x2", 'H', "HH");
    b.simple("half", std::string(op) + ".bf16", 'b', "bb");
    b.simple("half", std::string(op) + ".bf16x2", 'B', "BB");
  }
  for (const char *op : {"neg", "abs"}) {
    b.simple("half", std::string(op) + ".f16", 'h', "h");
    b.simple("half", std::string(op) + ".f16x2", 'H', "H");
    b.simple("half", std::string(op) + ".bf16", 'b', "b");
    b.simple("half", std::string(op) + ".bf16x2", 'B', "B");
  }
  b.simple("special", "ex2.approx.f16", 'h', "h", {Tolerance::Ulps, 2, 'h'});
  b.simple("special", "tanh.approx.f16", 'h', "h", {Tolerance::Ulps, 2, 'h'});
  b.simple("special", "tanh.approx.bf16", 'b', "b", {Tolerance::Ulps, 2, 'b'},
           "sm_90");
  for (const char *c : {"eq", "lt", "ge", "neu", "gtu"}) {
    b.simple("compare", std::string("setp.") + c + ".f16", 'p', "hh");
    b.simple("compare", std::string("setp.") + c + ".bf16", 'p', "bb", kExact,
             "sm_90");
  }
}

void conversions(Builder &b) {
  const std::pair<const char *, char> integers[] = {
      {"s8", 'i'},  {"u8", 'i'},  {"s16", 'i'}, {"u16", 'i'},
      {"s32", 'j'}, {"u32", 'j'}, {"s64", 'k'}, {"u64", 'k'}};
  for (auto [to, toKind] : integers)
    for (auto [from, fromKind] : integers) {
      // An 8-bit result needs a wider register: it is in 16 bits here.
      b.simple("convert", std::string("cvt.") + to + "." + from, toKind,
               std::string(1, fromKind));
      // .sat is refused where every value fits.
      auto bits = [](const char *t) { return std::stoi(t + 1); };
      bool fits = bits(to) > bits(from) && (*from == 'u' || *to == 's');
      if (std::string(to) != from && !fits)
        b.simple("convert", std::string("cvt.sat.") + to + "." + from, toKind,
                 std::string(1, fromKind));
    }
  const std::pair<const char *, char> floats[] = {
      {"f16", 'h'}, {"f32", 's'}, {"f64", 'd'}};
  for (auto [type, kind] : floats)
    for (auto [integer, integerKind] : integers) {
      for (const char *round : {"rni", "rzi", "rmi", "rpi"})
        b.simple("convert",
                 std::string("cvt.") + round + "." + integer + "." + type,
                 integerKind, std::string(1, kind));
      for (const char *round : {"rn", "rz", "rm", "rp"})
        b.simple("convert",
                 std::string("cvt.") + round + "." + type + "." + integer, kind,
                 std::string(1, integerKind));
    }
  for (const char *round : {"rn", "rz", "rm", "rp"}) {
    b.simple("convert", std::string("cvt.") + round + ".f32.f64", 's', "d");
    b.simple("convert", std::string("cvt.") + round + ".f16.f32", 'h', "s");
    b.simple("convert", std::string("cvt.") + round + ".f16.f64", 'h', "d");
    b.simple("convert", std::string("cvt.") + round + "i.f32.f32", 's', "s");
    b.simple("convert", std::string("cvt.") + round + "i.f64.f64", 'd', "d");
    b.simple("convert", std::string("cvt.") + round + "i.f16.f16", 'h', "h");
  }
  b.simple("convert", "cvt.f64.f32", 'd', "s");
  b.simple("convert", "cvt.f32.f16", 's', "h");
  b.simple("convert", "cvt.f64.f16", 'd', "h");
  b.simple("convert", "cvt.f32.bf16", 's', "b", kExact, "sm_90");
  b.simple("convert", "cvt.rn.ftz.f32.f64", 's', "d");
  b.simple("convert", "cvt.ftz.f64.f32", 'd', "s");
  b.simple("convert", "cvt.sat.f32.f32", 's', "s");
  b.simple("convert", "cvt.rn.sat.f16.f32", 'h', "s");
  for (const char *m : {"rn", "rz", "rn.relu", "rz.relu"}) {
    b.simple("convert", std::string("cvt.") + m + ".bf16.f32", 'b', "s");
    b.simple("convert", std::string("cvt.") + m + ".bf16x2.f32", 'B', "ss");
    b.simple("convert", std::string("cvt.") + m + ".f16x2.f32", 'H', "ss");
  }
  b.simple("convert", "cvt.rna.tf32.f32", 's', "s");
  b.simple("convert", "cvt.rn.tf32.f32", 's', "s", kExact, "sm_90");
  b.simple("convert", "cvt.rz.tf32.f32", 's', "s", kExact, "sm_90");
  b.simple("convert", "cvt.rn.relu.tf32.f32", 's', "s", kExact, "sm_90");
}

void warps(Builder &b) {
  for (const char *mode : {"up", "down", "bfly", "idx"})
    for (const char *clamp : {"0", "31", "7", "0x1807", "0x181f", "0x1c03"})
      b.custom(
          "warp", std::string("shfl.sync.") + mode + ".b32 " + clamp,
          std::string("  cvt.u32.u64 %r0, %d0;\n  cvt.u32.u64 %r1, %d1;\n"
                      "  shfl.sync.") +
              mode + ".b32 %r2|%p1, %r0, %r1, " + clamp +
              ", -1;\n  cvt.u64.u32 %d50, %r2;\n  selp.u64 %d51, 1, 0, %p1;\n",
          "jn", 2);
  b.custom("warp", "vote.sync",
           "  cvt.u32.u64 %r0, %d0;\n  and.b32 %r1, %r0, 3;\n"
           "  setp.ne.u32 %p1, %r1, 3;\n  vote.sync.all.pred %p2, %p1, -1;\n"
           "  vote.sync.any.pred %p3, !%p1, -1;\n  vote.sync.uni.pred %p4, "
           "%p1, -1;\n"
           "  vote.sync.ballot.b32 %r2, %p1, -1;\n  activemask.b32 %r3;\n"
           "  selp.u64 %d50, 1, 0, %p2;\n  selp.u64 %d51, 1, 0, %p3;\n"
           "  selp.u64 %d52, 1, 0, %p4;\n  cvt.u64.u32 %d53, %r2;\n"
           "  cvt.u64.u32 %d54, %r3;\n",
           "j", 5);
  b.custom("warp", "match.sync",
           "  cvt.u32.u64 %r0, %d0;\n  and.b32 %r0, %r0, 3;\n"
           "  match.any.sync.b32 %r1, %r0, -1;\n"
           "  match.all.sync.b32 %r2|%p1, %r0, -1;\n"
           "  and.b64 %d1, %d0, 1;\n  match.any.sync.b64 %r3, %d1, -1;\n"
           "  cvt.u64.u32 %d50, %r1;\n  cvt.u64.u32 %d51, %r2;\n"
           "  selp.u64 %d52, 1, 0, %p1;\n  cvt.u64.u32 %d53, %r3;\n",
           "j", 4);
  for (const char *op : {"add.s32", "min.s32", "max.s32", "add.u32", "min.u32",
                         "max.u32", "and.b32", "or.b32", "xor.b32"})
    b.custom("warp", std::string("redux.sync.") + op,
             std::string("  cvt.u32.u64 %r0, %d0;\n  redux.sync.") + op +
                 " %r1, %r0, -1;\n  cvt.u64.u32 %d50, %r1;\n",
             "j", 1);
  b.custom("warp", "diverged lanes",
           "  cvt.u32.u64 %r0, %d0;\n  mov.u32 %r1, 0;\n  mov.u32 %r5, 0;\n"
           "  and.b32 %r2, %r0, 15;\n"
           "LOOP:\n  setp.ge.u32 %p1, %r1, %r2;\n  @%p1 bra DONE;\n"
           "  add.u32 %r1, %r1, 1;\n  and.b32 %r3, %r1, 1;\n"
           "  setp.eq.u32 %p2, %r3, 0;\n  @%p2 bra EVEN;\n"
           "  mad.lo.u32 %r5, %r5, 3, %r0;\n  bra.uni LOOP;\n"
           "EVEN:\n  xor.b32 %r5, %r5, %r1;\n  bra.uni LOOP;\n"
           "DONE:\n  cvt.u64.u32 %d50, %r5;\n  shfl.sync.bfly.b32 %r6, %r5, 1, "
           "31, -1;\n"
           "  cvt.u64.u32 %d51, %r6;\n",
           "j", 2);
  b.custom("warp", "brx.idx",
           "  cvt.u32.u64 %r0, %d0;\n  and.b32 %r1, %r0, 3;\n"
           "  bra.uni START;\nTARGETS: .branchtargets L0, L1, L2, L3;\n"
           "START:\n  brx.idx %r1, TARGETS;\n"
           "L0:\n  add.u32 %r2, %r0, 5;\n  bra.uni END;\n"
           "L1:\n  mul.lo.u32 %r2, %r0, 7;\n  bra.uni END;\n"
           "L2:\n  xor.b32 %r2, %r0, 11;\n  bra.uni END;\n"
           "L3:\n  not.b32 %r2, %r0;\n"
           "END:\n  cvt.u64.u32 %d50, %r2;\n",
           "j", 1);
}

const char kTile[] = ".shared .align 1024 .b8 tile[16384];\n";

void memory(Builder &b) {
  // A store of every width, a load of every width, signs and vectors.
  std::string body =
      "  mov.u32 %r0, tile;\n  mad.lo.u32 %r1, %r90, 16, %r0;\n"
      "  mov.b64 {%r2, %r3}, %d0;\n"
      "  st.shared.v2.u64 [%r1], {%d0, %d1};\n  bar.sync 0;\n"
      "  ld.shared.s8 %r10, [%r1+1];\n  ld.shared.u8 %r11, [%r1+2];\n"
      "  ld.shared.s16 %r12, [%r1+2];\n  ld.shared.u16 %r13, [%r1+6];\n"
      "  ld.shared.s32 %d10, [%r1+4];\n  ld.shared.v4.u32 {%r14, %r15, %r16, "
      "%r17}, [%r1];\n"
      "  ld.shared.v2.u16 {%h1, %h2}, [%r1+8];\n"
      "  cvt.s64.s32 %d50, %r10;\n  cvt.u64.u32 %d51, %r11;\n"
      "  cvt.s64.s32 %d52, %r12;\n  cvt.u64.u32 %d53, %r13;\n"
      "  mov.b64 %d54, %d10;\n  mov.b64 %d55, {%r14, %r17};\n"
      "  mov.b64 %d56, {%r15, %r16};\n  mov.b32 %r18, {%h1, %h2};\n"
      "  cvt.u64.u32 %d57, %r18;\n";
  b.custom("memory", "ld and st, shared", body, "kk", 8, kExact, "sm_80",
           kTile);
  b.custom("memory", "st narrow, generic",
           "  mov.u32 %r0, tile;\n  mad.lo.u32 %r1, %r90, 8, %r0;\n"
           "  cvt.u64.u32 %d10, %r1;\n  cvta.shared.u64 %d11, %d10;\n"
           "  mov.b64 {%r2, %r3}, %d0;\n  st.u8 [%d11], %r2;\n"
           "  st.u8 [%d11+1], %r3;\n  st.u16 [%d11+2], %r2;\n"
           "  st.u32 [%d11+4], %d0;\n  ld.u64 %d50, [%d11];\n"
           "  isspacep.shared %p1, %d11;\n  isspacep.global %p2, %d11;\n"
           "  selp.u64 %d51, 1, 0, %p1;\n  selp.u64 %d52, 1, 0, %p2;\n",
           "k", 3, kExact, "sm_80", kTile);
  b.custom(
      "memory", "local",
      "  mov.u32 %r0, frame;\n  cvt.u32.u64 %r1, %d0;\n  and.b32 %r2, %r1, 7;\n"
      "  st.local.u32 [%r0], %r1;\n  st.local.u32 [%r0+4], 17;\n"
      "  mov.u32 %r5, 0;\nL:\n  mad.lo.u32 %r3, %r5, 4, %r0;\n"
      "  mul.lo.u32 %r4, %r5, %r1;\n  st.local.u32 [%r3+8], %r4;\n"
      "  add.u32 %r5, %r5, 1;\n  setp.lt.u32 %p1, %r5, 8;\n  @%p1 bra L;\n"
      "  mad.lo.u32 %r3, %r2, 4, %r0;\n  ld.local.u32 %r6, [%r3+8];\n"
      "  cvt.u64.u32 %d50, %r6;\n",
      "j", 1, kExact, "sm_80", "");
  b.all.back().ptx.insert(b.all.back().ptx.find("  .reg .pred"),
                          "  .local .align 8 .b8 frame[64];\n");
  // One word per warp; what comes out of it does not depend on the order: inc
  // and dec all bring one value.
  for (const char *op : {"add.u32", "min.s32", "max.u32", "and.b32", "or.b32",
                         "xor.b32", "inc.u32", "dec.u32"})
    b.custom(
        "atomic", std::string("red.shared.") + op,
        std::string("  cvt.u32.u64 %r0, %d0;\n  mov.u32 %r1, tile;\n"
                    "  shr.u32 %r2, %r90, 5;\n  mad.lo.u32 %r3, %r2, 4, %r1;\n"
                    "  and.b32 %r4, %r90, 31;\n  setp.eq.u32 %p1, %r4, 0;\n"
                    "  @%p1 st.shared.u32 [%r3], 12345;\n  bar.sync 0;\n"
                    "  mov.u32 %r5, ") +
            (op[2] == 'c' ? "12350" : "%r0") + ";\n  red.shared." + op +
            " [%r3], %r5;\n  bar.sync 0;\n  ld.shared.u32 %r6, [%r3];\n"
            "  cvt.u64.u32 %d50, %r6;\n",
        "j", 1, kExact, "sm_80", kTile);
  b.custom("atomic", "atom.shared exch and cas",
           "  cvt.u32.u64 %r0, %d0;\n  mov.u32 %r1, tile;\n"
           "  mad.lo.u32 %r3, %r90, 8, %r1;\n  st.shared.u64 [%r3], %d1;\n"
           "  atom.shared.exch.b32 %r4, [%r3], %r0;\n"
           "  atom.shared.cas.b32 %r5, [%r3], %r0, 77;\n"
           "  atom.shared.cas.b32 %r6, [%r3], %r0, 78;\n"
           "  atom.shared.add.f32 %r7, [%r3+4], 0f3F800000;\n"
           "  ld.shared.u64 %d50, [%r3];\n  mov.b64 %d51, {%r4, %r5};\n"
           "  mov.b64 %d52, {%r6, %r7};\n",
           "jk", 3, kExact, "sm_80", kTile);
  b.custom("atomic", "atom.global",
           "  cvt.u32.u64 %r0, %d0;\n  st.global.u64 [%d91], %d1;\n"
           "  atom.global.add.u32 %r4, [%d91], %r0;\n"
           "  atom.global.max.s32 %r5, [%d91], %r0;\n"
           "  atom.global.add.u64 %d10, [%d91], %d0;\n"
           "  atom.global.add.f64 %d11, [%d91], 0d3FF0000000000000;\n"
           "  mov.b64 %d50, {%r4, %r5};\n  mov.b64 %d51, %d10;\n  mov.b64 "
           "%d52, %d11;\n",
           "jd", 3);
  b.custom("async", "cp.async with zero fill",
           "  mov.u32 %r0, tile;\n  mad.lo.u32 %r1, %r90, 16, %r0;\n"
           "  cvt.u32.u64 %r2, %d2;\n  rem.u32 %r2, %r2, 17;\n"
           "  cp.async.cg.shared.global [%r1], [%d90], 16, %r2;\n"
           "  cp.async.commit_group;\n  and.b32 %r3, %r2, 7;\n  min.u32 %r3, "
           "%r3, 4;\n"
           "  cp.async.ca.shared.global [%r1+4096], [%d90+4], 4, %r3;\n"
           "  cp.async.commit_group;\n  cp.async.wait_group 1;\n"
           "  ld.shared.v2.u64 {%d50, %d51}, [%r1];\n  cp.async.wait_all;\n"
           "  ld.shared.u32 %r4, [%r1+4096];\n  cvt.u64.u32 %d52, %r4;\n",
           "kkjj", 3, kExact, "sm_80", kTile);
  b.custom("barrier", "bar.red and named barriers",
           "  cvt.u32.u64 %r0, %d0;\n  setp.gt.u32 %p1, %r0, 1000;\n"
           "  bar.red.popc.u32 %r1, 0, %p1;\n  bar.red.and.pred %p2, 0, %p1;\n"
           "  bar.red.or.pred %p3, 0, !%p1;\n  mov.u32 %r2, tile;\n"
           "  shr.u32 %r3, %r90, 7;\n  add.u32 %r4, %r3, 1;\n"
           "  mad.lo.u32 %r5, %r90, 4, %r2;\n  st.shared.u32 [%r5], %r0;\n"
           "  barrier.sync %r4, 128;\n  xor.b32 %r6, %r90, 127;\n"
           "  mad.lo.u32 %r6, %r6, 4, %r2;\n  ld.shared.u32 %r7, [%r6];\n"
           "  cvt.u64.u32 %d50, %r1;\n  selp.u64 %d51, 1, 0, %p2;\n"
           "  selp.u64 %d52, 1, 0, %p3;\n  cvt.u64.u32 %d53, %r7;\n",
           "j", 4, kExact, "sm_80", kTile);
}

void matrices(Builder &b) {
  // Each warp has 2048 bytes of the tile.
  const std::string place =
      "  mov.u32 %r0, tile;\n  mad.lo.u32 %r1, %r90, 16, %r0;\n";
  for (const char *trans : {"", ".trans"}) {
    const std::pair<const char *, unsigned> counts[] = {
        {"x1", 1}, {"x2", 2}, {"x4", 4}};
    for (auto [x, count] : counts) {
      std::string list = "%r10";
      for (unsigned k = 1; k < count; ++k)
        list += ", %r1" + number(k);
      std::string out;
      for (unsigned k = 0; k < count; ++k)
        out += "  cvt.u64.u32 %d5" + number(k) + ", %r1" + number(k) + ";\n";
      b.custom(
          "matrix", std::string("ldmatrix.") + x + trans,
          place +
              "  st.shared.v2.u64 [%r1], {%d0, %d1};\n  bar.warp.sync -1;\n"
              "  ldmatrix.sync.aligned.m8n8." +
              x + trans + ".shared.b16 {" + list + "}, [%r1];\n" + out,
          "kk", count, kExact, "sm_80", kTile);
      std::string fill;
      for (unsigned k = 0; k < count; ++k)
        fill += "  cvt.u32.u64 %r1" + number(k) + ", %d" + number(k) + ";\n";
      b.custom(
          "matrix", std::string("stmatrix.") + x + trans,
          place +
              "  st.shared.v2.u64 [%r1], {%d0, %d1};\n  bar.warp.sync -1;\n" +
              fill + "  stmatrix.sync.aligned.m8n8." + x + trans +
              ".shared.b16 [%r1], {" + list +
              "};\n  bar.warp.sync -1;\n"
              "  ld.shared.v2.u64 {%d50, %d51}, [%r1];\n",
          "kkkk", 2, kExact, "sm_90", kTile);
    }
  }
  struct Shape {
    const char *name;
    unsigned a, b, c;
    char operand, accumulator;
  };
  const Shape shapes[] = {
      {"m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, 'T', 'T'},
      {"m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, 'T', 'T'},
      {"m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, 'Q', 'T'},
      {"m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, 'Q', 'T'},
      {"m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 4, 'P', 'T'},
      {"m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, 'P', 'T'},
      {"m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, 'P', 'P'},
      {"m16n8k16.row.col.f16.f16.f16.f16", 4, 2, 2, 'P', 'P'},
      {"m16n8k16.row.col.s32.s8.s8.s32", 2, 1, 4, 'j', 'j'},
      {"m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, 'j', 'j'},
      {"m16n8k32.row.col.s32.u8.u8.s32", 4, 2, 4, 'j', 'j'},
  };
  for (const Shape &s : shapes) {
    std::string body, lists[4], kinds;
    unsigned in = 0;
    auto group = [&](unsigned which, unsigned count, char kind) {
      for (unsigned k = 0; k < count; ++k, ++in) {
        body += "  cvt.u32.u64 %r" + number(in) + ", %d" + number(in) + ";\n";
        lists[which] += (k ? ", %r" : "%r") + number(in);
        kinds += kind;
      }
    };
    group(1, s.a, s.operand);
    group(2, s.b, s.operand);
    group(3, s.c, s.accumulator);
    for (unsigned k = 0; k < s.c; ++k)
      lists[0] += (k ? ", %r7" : "%r7") + number(k);
    body += std::string("  mma.sync.aligned.") + s.name + " {" + lists[0] +
            "}, {" + lists[1] + "}, {" + lists[2] + "}, {" + lists[3] + "};\n";
    for (unsigned k = 0; k < s.c; ++k)
      body += "  cvt.u64.u32 %d5" + number(k) + ", %r7" + number(k) + ";\n";
    b.custom("matrix", std::string("mma.") + s.name, body, kinds, s.c);
  }
  b.custom("matrix", "mma.m8n8k4.row.col.f64.f64.f64.f64",
           "  mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d50, %d51}, "
           "{%d0}, {%d1}, {%d2, %d3};\n",
           "DDDD", 2, {Tolerance::Ulps, 16, 'd'});
}

} // namespace

const std::vector<Case> &cases() {
  static const std::vector<Case> all = [] {
    Builder b;
    integers(b);
    floats(b);
    halves(b);
    conversions(b);
    warps(b);
    memory(b);
    matrices(b);
    hopper(b);
    return b.all;
  }();
  return all;
}

std::string digestOf(const Case &c) {
  std::string text = c.ptx;
  text.append(reinterpret_cast<const char *>(c.in.data()), c.in.size() * 8);
  for (const Map &m : c.maps) {
    text += "|" + std::to_string(m.onOut) + " " + std::to_string(m.type) + " " +
            std::to_string(m.swizzle) + " " + std::to_string(m.fill) + " " +
            std::to_string(m.offset);
    for (const auto *list : {&m.sizes, &m.strides, &m.box, &m.elementStrides})
      for (uint64_t v : *list)
        text += "," + std::to_string(v);
  }
  return nova::sha256Hex(text).substr(0, 16);
}

} // namespace micro
