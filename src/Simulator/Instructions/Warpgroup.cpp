//===- Warpgroup.cpp - wgmma ----------------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.15: wgmma.mma_async of 64 rows, of which each warp of the
// warpgroup computes its 16, fence, commit_group, wait_group. A product is done
// when it is issued. Its registers, and the shared memory it reads, are its own
// until its group has been waited for.
//
// Matrix descriptors (9.7.15.5.1): bits 0-13 the address, 16-29 the leading and
// 32-45 the stride dimension's byte offset, all in units of 16 bytes; 49-51 the
// base offset, 62-63 the swizzle. Rows of 8 by 16 bytes are what everything is
// made of. With k inside, rows follow at the swizzle's span, groups of 8 rows
// at the stride offset, and without a swizzle the next 16 bytes of k at the
// leading one. With k outside (16-bit types), 8 steps of k make a group; groups
// follow at the stride offset and the next span of the other side at the
// leading one; without a swizzle it is the other way round.
//
//===----------------------------------------------------------------------===//
#include "../Access.h"
#include "../Lanes.h"
#include "../Numbers.h"
#include "../TensorBox.h"
#include "ProductSums.h"

using namespace nova::sim;
using nova::sim::ptx::Operand;

namespace {

enum class Element : uint32_t { Tf32, Bf16, F16 };

/// Rows of a warp, bytes of k that an instruction takes, and of a piece.
constexpr unsigned kRows = 16, kDepthBytes = 32, kPiece = 16, kPieces = 2;
constexpr unsigned kMostColumns = 256;

/// Inst::immediate.
constexpr int64_t kLeftInRegisters = 1, kNegateLeft = 2, kNegateRight = 4,
                  kTurnLeft = 8, kTurnRight = 16, kHalfSums = 32,
                  kAlwaysScale = 64, kNotScale = 128, kScaleNegated = 256;

struct MatrixDescriptor {
  explicit MatrixDescriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4),
        stride((bits >> 32 & 0x3fff) << 4), turned(bits >> 49 & 7) {
    static constexpr unsigned spans[] = {0, 128, 64, 32};
    span = spans[bits >> 62];
  }
  uint64_t start, leading, stride;
  unsigned turned, span;

  /// Piece `j` of row `r`, k inside.
  uint64_t inner(unsigned r, unsigned j) const {
    uint64_t group = start + r / 8 * stride;
    return span ? swizzledAddress(group + r % 8 * span + j * kPiece, span,
                                  turned)
                : group + r % 8 * kPiece + j * leading;
  }
  /// Elements 8 c to 8 c + 7 of the side at step `k`, k outside.
  uint64_t outer(unsigned c, unsigned k) const {
    if (!span)
      return start + c * stride + k / 8 * leading + k % 8 * kPiece;
    unsigned pieces = span / kPiece;
    return swizzledAddress(start + c / pieces * leading + c % pieces * kPiece +
                               k / 8 * stride + k % 8 * span,
                           span, turned);
  }
};

/// Reads operands in shared memory for a warp's part of a product.
class OperandReader {
public:
  explicit OperandReader(Warp &w)
      : w(w), memory(w.block->shared), clocks(w.block->cluster.clocks),
        by(w.accessor(kWholeWarp)) {
    by.agent = clocks.engineOf(w.agent);
  }

  const uint8_t *piece(uint64_t address) {
    uint64_t offset = address - kSharedBase;
    if (offset >= memory.size() || memory.size() - offset < kPiece)
      throw FaultFound{FaultKind::OutOfBounds,
                       "reads 16 bytes at offset " +
                           std::to_string(static_cast<int64_t>(offset)) +
                           " of shared memory, which has " +
                           std::to_string(memory.size()) +
                           ": what the descriptor says leads there",
                       {},
                       address,
                       "shared"};
    Conflict found = memory.readAsync(clocks, by, offset, kPiece, true);
    if (found.kind != Conflict::None)
      faultConflict(w, *w.block, 0, address, false, found, true);
    return memory.data() + offset;
  }

private:
  Warp &w;
  SharedMemory &memory;
  const Clocks &clocks;
  Accessor by;
};

template <Element T> struct Format {
  static constexpr unsigned kBytes = T == Element::Tf32 ? 4 : 2;
  static constexpr unsigned kDepth = kDepthBytes / kBytes;
  static constexpr unsigned kInPiece = kPiece / kBytes;
  static constexpr int32_t kLeast = T == Element::F16 ? -14 : -126;

  static float value(const uint8_t *from) {
    if constexpr (T == Element::Tf32) {
      uint32_t bits;
      std::memcpy(&bits, from, 4);
      // The unit does not read the low 13 bits.
      return std::bit_cast<float>(bits & ~uint32_t(0x1fff));
    } else {
      uint16_t bits;
      std::memcpy(&bits, from, 2);
      return T == Element::Bf16 ? fromBfloat(bits) : fromHalf(bits);
    }
  }
};

/// `side` positions from `first` on, by k: to[position * atPosition + k * atK].
template <Element T>
void readOperand(OperandReader &reader, const MatrixDescriptor &matrix,
                 bool turned, unsigned first, unsigned side, float *to,
                 unsigned atPosition, unsigned atK) {
  using F = Format<T>;
  if (!turned) {
    for (unsigned r = 0; r < side; ++r)
      for (unsigned j = 0; j < kPieces; ++j) {
        const uint8_t *piece = reader.piece(matrix.inner(first + r, j));
        float *out = to + r * atPosition + j * F::kInPiece * atK;
        for (unsigned e = 0; e < F::kInPiece; ++e)
          out[e * atK] = F::value(piece + e * F::kBytes);
      }
    return;
  }
  for (unsigned k = 0; k < F::kDepth; ++k)
    for (unsigned c = 0; c < side / F::kInPiece; ++c) {
      const uint8_t *piece =
          reader.piece(matrix.outer(first / F::kInPiece + c, k));
      float *out = to + c * F::kInPiece * atPosition + k * atK;
      for (unsigned e = 0; e < F::kInPiece; ++e)
        out[e * atPosition] = F::value(piece + e * F::kBytes);
    }
}

/// A's fragment, as mma.sync has it (figures of 9.7.15.5): part p of register r
/// of lane 4 g + t is (g + 8 (r % 2), P t + p + 4 P (r / 2)).
template <Element T>
void readFragment(Warp &w, const uint32_t *rows, float *to) {
  using F = Format<T>;
  constexpr unsigned P = 4 / F::kBytes;
  for (unsigned r = 0; r < 4; ++r) {
    const uint32_t *bits = w.row<uint32_t>(rows[r]);
    for (unsigned l = 0; l < kLanes; ++l)
      for (unsigned p = 0; p < P; ++p) {
        uint32_t part = bits[l] >> (16 * p);
        uint8_t bytes[4];
        std::memcpy(bytes, &part, 4);
        to[(l / 4 + 8 * (r % 2)) * F::kDepth + P * (l % 4) + p +
           4 * P * (r / 2)] = F::value(bytes);
      }
  }
}

/// Elements of the sums: register r of lane 4 g + t has (g + 8 (r / 2 % 2),
/// 8 (r / 4) + 2 t + r % 2); in pairs (g + 8 (r % 2), 8 (r / 2) + 2 t + p).
void readSums(Warp &w, const uint32_t *rows, unsigned columns, bool half,
              float *to) {
  for (unsigned r = 0; r < columns / (half ? 4 : 2); ++r) {
    const uint32_t *bits = w.row<uint32_t>(rows[r]);
    for (unsigned l = 0; l < kLanes; ++l)
      if (half)
        for (unsigned p = 0; p < 2; ++p)
          to[(l / 4 + 8 * (r % 2)) * columns + 8 * (r / 2) + 2 * (l % 4) + p] =
              fromHalf(static_cast<uint16_t>(bits[l] >> (16 * p)));
      else
        to[(l / 4 + 8 * (r / 2 % 2)) * columns + 8 * (r / 4) + 2 * (l % 4) +
           r % 2] = std::bit_cast<float>(bits[l]);
  }
}

void writeSums(Warp &w, const uint32_t *rows, unsigned columns, bool half,
               const float *from) {
  for (unsigned r = 0; r < columns / (half ? 4 : 2); ++r) {
    uint32_t *bits = w.row<uint32_t>(rows[r]);
    for (unsigned l = 0; l < kLanes; ++l) {
      if (half) {
        const float *pair =
            from + (l / 4 + 8 * (r % 2)) * columns + 8 * (r / 2) + 2 * (l % 4);
        bits[l] = toHalf(pair[0]) | uint32_t(toHalf(pair[1])) << 16;
      } else {
        bits[l] =
            std::bit_cast<uint32_t>(from[(l / 4 + 8 * (r / 2 % 2)) * columns +
                                         8 * (r / 4) + 2 * (l % 4) + r % 2]);
      }
    }
  }
}

uint64_t descriptorIn(Warp &w, uint32_t row, const char *which) {
  const uint64_t *bits = w.row<uint64_t>(row);
  for (unsigned l = 1; l < kLanes; ++l)
    if (bits[l] != bits[0])
      throw FaultFound{FaultKind::Undefined,
                       std::string("lanes have different descriptors of the ") +
                           which + " operand",
                       l,
                       {},
                       {}};
  return bits[0];
}

/// All warps of a warpgroup execute the same products in the same order.
void joinWarpgroup(Warp &w, uint64_t left, uint64_t right) {
  Block &b = *w.block;
  uint32_t group = w.index / 4;
  uint32_t warps =
      std::min<uint32_t>(4, static_cast<uint32_t>(b.warps.size()) - 4 * group);
  if (warps < 4 || w.launched != kAllLanes)
    throw FaultFound{FaultKind::Undefined,
                     "a product by warp " + std::to_string(w.index) +
                         ", whose warpgroup is not whole: a block of " +
                         std::to_string(b.launch.threads) + " threads",
                     {},
                     {},
                     {}};
  WarpgroupOrder &order = b.warpgroups[group];
  uint64_t number = w.products.issued++ - order.first;
  uint32_t inst = w.indexOf(*w.current);
  if (number == order.issues.size())
    order.issues.push_back({inst, left, right, 0});
  WarpgroupOrder::Issue &issue = order.issues[number];
  if (issue.inst != inst || issue.left != left || issue.right != right)
    throw FaultFound{
        FaultKind::Divergence,
        "warp " + std::to_string(w.index) +
            " executes a product other than the one at " +
            describeInst(*w.code, issue.inst) +
            (issue.inst == inst ? ", with other descriptors," : "") +
            " that another warp of its warpgroup does: all four "
            "execute the same",
        {},
        {},
        {}};
  if (++issue.warps == warps) {
    order.issues.pop_front();
    ++order.first;
  }
}

/// aux: columns | element << 16. The list, after its registers (sums, then the
/// left operand's): left descriptor or kNone, right one, scale's predicate.
template <Element T> void multiply(Warp &w, const Inst &i, uint32_t mask) {
  using F = Format<T>;
  const unsigned columns = i.aux & 0xffff;
  const bool half = i.immediate & kHalfSums;
  const bool leftHeld = i.immediate & kLeftInRegisters;
  const uint32_t *list = w.list(i), *rows = list + kProductRows;
  const uint32_t *more = rows + list[kProductCount];
  if (mask != w.launched)
    throw FaultFound{
        FaultKind::Divergence,
        "a product that not all threads of the warp execute",
        static_cast<uint32_t>(std::countr_zero(w.launched & ~mask)),
        {},
        {}};
  uint64_t left = leftHeld ? 0 : descriptorIn(w, more[0], "left");
  uint64_t right = descriptorIn(w, more[1], "right");
  joinWarpgroup(w, left, right);
  if (!w.products.fenced)
    throw FaultFound{FaultKind::ProductPending,
                     "the warp's first product, with no wgmma.fence before it",
                     {},
                     {},
                     {}};
  const uint32_t *watched = w.code->watches.data() + i.target;
  const unsigned sums = columns / (half ? 4 : 2);
  for (unsigned k = 0; k < list[kProductCount]; ++k)
    w.useInProduct(watched[k], k < sums ? i.aux + 1 : 0);
  w.products.any = true;

  uint32_t scale = kAllLanes;
  if (i.immediate & kNotScale)
    scale = 0;
  else if (!(i.immediate & kAlwaysScale))
    scale = (i.immediate & kScaleNegated) ? ~w.predicate(more[2])
                                          : w.predicate(more[2]);
  if (scale != 0 && scale != kAllLanes)
    throw FaultFound{FaultKind::Undefined,
                     "lanes disagree on whether there is a sum to add to",
                     static_cast<uint32_t>(std::countr_zero(scale)),
                     {},
                     {}};
  alignas(64) float a[kRows * F::kDepth], b[F::kDepth * kMostColumns],
      c[kRows * kMostColumns];
  OperandReader reader(w);
  if (leftHeld)
    readFragment<T>(w, rows + sums, a);
  else
    readOperand<T>(reader, MatrixDescriptor(left), i.immediate & kTurnLeft,
                   kRows * (w.index % 4), kRows, a, F::kDepth, 1);
  readOperand<T>(reader, MatrixDescriptor(right), i.immediate & kTurnRight, 0,
                 columns, b, 1, columns);
  if (((i.immediate & kNegateLeft) != 0) != ((i.immediate & kNegateRight) != 0))
    for (float &v : a)
      v = -v;
  if (scale)
    readSums(w, rows, columns, half, c);
  else
    std::memset(c, 0, kRows * columns * sizeof(float));
  addProducts(kRows, columns, F::kDepth, a, b, c, F::kLeast, half);
  writeSums(w, rows, columns, half, c);
}

void fence(Warp &w, const Inst &, uint32_t) {
  w.products.fenced = true;
  for (WatchedRegister &r : w.products.registers)
    r.written = false;
}

void commit(Warp &w, const Inst &, uint32_t) {
  WarpProducts &p = w.products;
  // What the warp reads from now on is of another group.
  p.counts.push_back(w.block->cluster.clocks.now++);
  ++p.open;
  p.any = false;
}

void wait(Warp &w, const Inst &i, uint32_t) {
  WarpProducts &p = w.products;
  Clocks &clocks = w.block->cluster.clocks;
  int64_t done = int64_t(p.open) - 1 - i.immediate;
  while (int64_t(p.done) < done) {
    clocks.learn(w.agent, clocks.engineOf(w.agent), p.counts.front());
    p.counts.pop_front();
    ++p.done;
  }
}

void takeAligned(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned"))
    d.fail("no .sync.aligned");
}

/// 1 or -1, or 0 or 1.
bool takeChoice(Decoder &d, size_t k, int64_t no, int64_t yes) {
  const Operand &o = d.operand(k);
  if (o.kind != Operand::Integer || (o.value != no && o.value != yes))
    d.fail("operand " + std::to_string(k + 1) + " is neither " +
           std::to_string(no) + " nor " + std::to_string(yes));
  return o.value == yes;
}

void decodeProduct(Decoder &d) {
  takeAligned(d);
  std::string shape(d.takeAny());
  TypeMod td = d.type(), ta = d.type(), tb = d.type();
  unsigned columns = 0;
  size_t k = shape.find('k');
  if (shape.starts_with("m64n") && k != std::string::npos)
    columns =
        static_cast<unsigned>(std::strtoul(shape.c_str() + 4, nullptr, 10));
  bool tf32 = ta.kind == 't';
  bool half = td.kind == 'f' && td.bits == 16;
  bool single = td.kind == 'f' && td.bits == 32;
  bool known = ta.name == tb.name &&
               (tf32 || (ta.bits == 16 && !ta.packed && ta.kind != 'b' &&
                         ta.kind != 'u' && ta.kind != 's')) &&
               (single || (half && ta.kind == 'f'));
  if (!known || !columns || columns % 8 || columns > kMostColumns ||
      shape.substr(std::min(k, shape.size())) != (tf32 ? "k8" : "k16"))
    d.fail("no shape and types that the simulator knows: tf32, bf16 and f16 of "
           "m64nNk8 or m64nNk16 are");
  bool held = d.count() > 1 && d.operand(1).kind == Operand::List;
  // Before the choices of turning: sums, two operands, scale-d, two signs.
  size_t turns = tf32 ? 0 : held ? 1 : 2;
  d.expectCount(6 + turns, 6 + turns);
  std::vector<uint32_t> rows;
  auto takeRows = [&](const Operand &o, size_t count, bool results) {
    if (o.kind != Operand::List || o.items.size() != count)
      d.fail("expected " + std::to_string(count) + " registers");
    for (const Operand &item : o.items)
      rows.push_back(results ? d.target(item, 32)
                             : d.source(item, {'b', 32, false, "b32"}));
  };
  takeRows(d.operand(0), columns / (half ? 4 : 2), true);
  if (held)
    takeRows(d.operand(1), 4, false);
  d.names.code.watched.insert(d.names.code.watched.end(), rows.begin(),
                              rows.end());
  TypeMod b64{'b', 64, false, "b64"};
  std::vector<uint32_t> list{static_cast<uint32_t>(rows.size())};
  list.insert(list.end(), rows.begin(), rows.end());
  list.push_back(held ? kNone : d.source(1, b64));
  list.push_back(d.source(2, b64));
  int64_t how = (held ? kLeftInRegisters : 0) | (half ? kHalfSums : 0);
  bool negated = false;
  if (d.operand(3).kind == Operand::Integer) {
    how |= d.operand(3).value ? kAlwaysScale : kNotScale;
    list.push_back(kNone);
  } else {
    list.push_back(d.predicate(d.operand(3), negated));
    how |= negated ? kScaleNegated : 0;
  }
  how |= takeChoice(d, 4, 1, -1) ? kNegateLeft : 0;
  how |= takeChoice(d, 5, 1, -1) ? kNegateRight : 0;
  if (turns == 2)
    how |= takeChoice(d, 6, 0, 1) ? kTurnLeft : 0;
  if (turns)
    how |= takeChoice(d, 5 + turns, 0, 1) ? kTurnRight : 0;
  d.out.immediate = how;
  d.out.list = d.addList(list);
  Element element = tf32             ? Element::Tf32
                    : ta.kind == 'h' ? Element::Bf16
                                     : Element::F16;
  d.out.aux = columns | static_cast<uint32_t>(element) << 16;
  d.out.run = tf32             ? multiply<Element::Tf32>
              : ta.kind == 'h' ? multiply<Element::Bf16>
                               : multiply<Element::F16>;
  d.sharedAccess(kPiece);
}

bool decode(Decoder &d) {
  d.names.code.hasProducts = true;
  d.out.kind = Kind::Aligned;
  if (d.take("mma_async")) {
    decodeProduct(d);
    return true;
  }
  if (d.take("fence")) {
    d.expectCount(0, 0);
    d.out.run = fence;
  } else if (d.take("commit_group")) {
    d.expectCount(0, 0);
    d.out.run = commit;
  } else if (d.take("wait_group")) {
    d.expectCount(1, 1);
    if (d.operand(0).kind != Operand::Integer || d.operand(0).value < 0)
      d.fail("a number of groups that is no constant");
    d.out.immediate = d.operand(0).value;
    d.out.run = wait;
  } else {
    d.fail("no operation that the simulator knows");
  }
  takeAligned(d);
  return true;
}

} // namespace

bool nova::sim::isProduct(const Inst &inst) {
  return inst.kind == Kind::Aligned && (inst.run == multiply<Element::Tf32> ||
                                        inst.run == multiply<Element::Bf16> ||
                                        inst.run == multiply<Element::F16>);
}

void nova::sim::addWarpgroupInstructions(InstructionTable &table) {
  table.add("wgmma", decode);
}
