//===- BulkCopy.cpp - cp.async.bulk ---------------------------------------===//
//
// Part of novac, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA 9.7.9.25.4 and 9.7.9.27: cp.async.bulk, cp.async.bulk.tensor in tile
// mode, prefetches, commit_group, wait_group. A copy is done when it is begun.
// What it writes in shared memory is pending until the phase of its mbarrier
// ends, and comes before those who have waited for that; what it reads there is
// held until its bulk group is waited for.
//
//===----------------------------------------------------------------------===//
#include "../Access.h"
#include "../Lanes.h"
#include "../TensorBox.h"

using namespace nova::sim;
using nova::sim::ptx::Operand;

namespace {

/// Words of the list: three of each address (row, whether of 32 bits, offset),
/// then the rest.
enum : unsigned { kTo = 0, kFrom = 3, kBarrier = 6, kRest = 9 };
/// Of the rest.
enum : unsigned { kSize = kRest, kMask = kRest + 1, kCoordinates = kRest + 2 };
/// Inst::aux.
constexpr uint32_t kRank = 7, kRead = 8;

/// ISA 9.7.9.25.4: addresses and sizes of bulk copies, and where a tensor's box
/// begins in shared memory.
constexpr unsigned kUnit = 16, kBoxAlignment = 128;

uint64_t addressIn(Warp &w, const uint32_t *words, unsigned lane) {
  uint64_t base = words[1] ? w.row<uint32_t>(words[0])[lane]
                           : w.row<uint64_t>(words[0])[lane];
  return base + static_cast<uint64_t>(static_cast<int32_t>(words[2]));
}

/// In shared memory; a generic address is made one of it.
uint64_t sharedIn(Warp &w, const uint32_t *words, unsigned lane) {
  uint64_t address = addressIn(w, words, lane);
  return address >= kSharedWindow && address < kLocalWindow
             ? address - kSharedWindow
             : address;
}

const TensorMap &mapAt(Warp &w, unsigned lane, uint64_t address,
                       unsigned rank) {
  for (const MapParameter &p : w.block->launch.maps)
    if (address == kParameterWindow + kParameterBase + p.offset) {
      if (p.map->sizes.size() != rank)
        throw FaultFound{FaultKind::Undefined,
                         "a box of " + std::to_string(rank) +
                             " dimensions, the tensor map has " +
                             std::to_string(p.map->sizes.size()),
                         lane, address, "parameters"};
      return *p.map;
    }
  throw FaultFound{FaultKind::Undefined,
                   "no tensor map is at this address: it must be one of the "
                   "kernel's parameters, made generic by cvta.param",
                   lane, address, "parameters"};
}

std::array<int32_t, 5> coordinatesOf(Warp &w, const Inst &i, unsigned lane,
                                     const TensorBox &box) {
  std::array<int32_t, 5> at{};
  for (unsigned d = 0; d < box.rank; ++d)
    at[d] = static_cast<int32_t>(
        w.row<uint32_t>(w.list(i)[kCoordinates + d])[lane]);
  // Hardware answers with an illegal instruction (tests/Device).
  if (int64_t(at[0]) * box.elementBytes % kUnit)
    throw FaultFound{FaultKind::Misaligned,
                     "a box that begins at element " + std::to_string(at[0]) +
                         " of " + std::to_string(box.elementBytes) +
                         " bytes, expected a multiple of " +
                         std::to_string(kUnit) + " bytes",
                     lane,
                     {},
                     box.map.memory.name};
  return at;
}

/// Where a copy to shared memory goes: in one block, or at the same place in
/// several.
struct Destination {
  SharedPlace to, barrier;
};

std::vector<Destination> destinationsOf(Warp &w, const Inst &i, unsigned lane,
                                        unsigned bytes, unsigned alignment) {
  const uint32_t *words = w.list(i);
  SharedPlace to =
      sharedPlace(w, lane, sharedIn(w, words + kTo, lane), bytes, alignment);
  SharedPlace barrier =
      sharedPlace(w, lane, sharedIn(w, words + kBarrier, lane), 8);
  if (to.block != barrier.block)
    throw FaultFound{
        FaultKind::Undefined,
        "copies to the cluster's block " + std::to_string(to.block->rank) +
            " and counts on an mbarrier of block " +
            std::to_string(barrier.block->rank) + ", expected the same",
        lane,
        {},
        "shared"};
  std::vector<Block> &blocks = w.block->cluster.blocks;
  if (words[kMask] == kNone)
    return {{to, barrier}};
  uint32_t mask = w.row<uint32_t>(words[kMask])[lane] & 0xffff;
  if (mask >> blocks.size())
    throw FaultFound{FaultKind::Undefined,
                     "a copy for the blocks of mask " + std::to_string(mask) +
                         ", the cluster has " + std::to_string(blocks.size()),
                     lane,
                     {},
                     "shared"};
  std::vector<Destination> all;
  for (uint32_t left = mask; left; left &= left - 1) {
    Block &b = blocks[static_cast<size_t>(std::countr_zero(left))];
    // Also says whether that block has ended.
    auto in = [&](uint64_t offset, unsigned size) {
      return sharedPlace(w, lane, b.sharedBase + offset, size, 8);
    };
    all.push_back({in(to.offset, bytes), in(barrier.offset, 8)});
  }
  return all;
}

/// `content` is written and its bytes counted.
void deliver(Warp &w, unsigned lane, const Destination &at,
             const std::vector<uint8_t> &content, unsigned span) {
  Block &owner = *at.to.block;
  Mbarrier &b = useMbarrier(w, lane, owner, at.barrier.offset);
  if (!b.forAsync)
    throw FaultFound{
        FaultKind::ProxyFence,
        mbarrierName(owner, at.barrier.offset) + ", initialised at " +
            describeInst(*w.code, b.initInst) +
            ", counts the bytes of a copy, and no fence.mbarrier_init or "
            "fence.proxy.async shows it to the asynchronous proxy",
        lane,
        {},
        "shared"};
  auto bytes = static_cast<unsigned>(content.size());
  Accessor by = w.accessor(static_cast<uint8_t>(lane));
  by.agent = b.agent;
  Conflict found = owner.shared.beginAsync(w.block->cluster.clocks, by,
                                           at.to.offset, bytes, true);
  if (found.kind != Conflict::None)
    faultConflict(w, owner, lane, kSharedBase + at.to.offset, true, found,
                  true);
  uint8_t *memory = owner.shared.data();
  if (!span) {
    std::memcpy(memory + at.to.offset, content.data(), bytes);
  } else {
    // kSharedBase is a multiple of every pattern.
    for (unsigned k = 0; k < bytes; k += kUnit)
      std::memcpy(memory + swizzledAddress(at.to.offset + k, span),
                  content.data() + k, kUnit);
  }
  b.copies.push_back({at.to.offset, bytes});
  completeBytes(w, lane, owner, b, bytes);
}

void checkInitialised(Warp &w, unsigned lane, const Memory &m, uint64_t from,
                      uint64_t bytes) {
  if (!m.written)
    return;
  const void *gap = std::memchr(m.written + from, 0, bytes);
  if (!gap)
    return;
  uint64_t at =
      static_cast<uint64_t>(static_cast<const uint8_t *>(gap) - m.written);
  throw FaultFound{FaultKind::Uninitialised,
                   "copies " + std::to_string(bytes) + " bytes at offset " +
                       std::to_string(from) + " of " + m.name +
                       ", of which offset " + std::to_string(at) +
                       " was never written",
                   lane,
                   {},
                   m.name};
}

void loadTensor(Warp &w, const Inst &i, uint32_t mask) {
  std::vector<uint8_t> content;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    TensorBox box(
        mapAt(w, l, addressIn(w, w.list(i) + kFrom, l), i.aux & kRank));
    const Memory &m = box.map.memory;
    content.resize(box.bytes);
    for (const BoxRow &row : box.rows(coordinatesOf(w, i, l, box))) {
      if (row.first < row.end) {
        auto from =
            static_cast<uint64_t>(row.memory + row.first * box.elementBytes);
        auto bytes =
            static_cast<uint64_t>(row.end - row.first) * box.elementBytes;
        if (from + bytes > m.size)
          throw FaultFound{FaultKind::OutOfBounds,
                           "copies " + std::to_string(bytes) +
                               " bytes at offset " + std::to_string(from) +
                               " of " + m.name + ", which has " +
                               std::to_string(m.size),
                           l,
                           {},
                           m.name};
        checkInitialised(w, l, m, from, bytes);
      }
      box.load(row, m.data + row.memory, content.data() + row.place);
    }
    for (const Destination &at : destinationsOf(
             w, i, l, static_cast<unsigned>(box.bytes), kBoxAlignment))
      deliver(w, l, at, content, box.span);
  }
}

void loadBytes(Warp &w, const Inst &i, uint32_t mask) {
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    const uint32_t *words = w.list(i);
    uint32_t bytes = w.row<uint32_t>(words[kSize])[l];
    if (bytes % kUnit)
      throw FaultFound{FaultKind::Misaligned,
                       "a bulk copy of " + std::to_string(bytes) +
                           " bytes, expected a multiple of " +
                           std::to_string(kUnit),
                       l,
                       {},
                       "shared"};
    if (!bytes)
      continue;
    std::vector<uint8_t> content(bytes);
    if (i.aux & kRead) { // From shared memory, to another block's.
      uint64_t from = sharedIn(w, words + kFrom, l);
      SharedPlace at = sharedPlace(w, l, from, bytes, kUnit);
      Conflict found = at.block->shared.readAsync(
          w.block->cluster.clocks, w.accessor(static_cast<uint8_t>(l)),
          at.offset, bytes, true);
      if (found.kind != Conflict::None)
        faultConflict(w, *at.block, l, from, false, found, true);
      std::memcpy(content.data(), at.block->shared.data() + at.offset, bytes);
    } else {
      uint64_t from = addressIn(w, words + kFrom, l), offset;
      const Memory *m = findGlobal(w, from, kUnit, bytes, offset);
      if (!m) {
        faultGlobal(w, l, (from & (kUnit - 1)) ? from : from + bytes - kUnit,
                    kUnit, false);
      }
      checkInitialised(w, l, *m, offset, bytes);
      std::memcpy(content.data(), m->data + offset, bytes);
    }
    for (const Destination &at : destinationsOf(w, i, l, bytes, kUnit))
      deliver(w, l, at, content, 0);
  }
}

/// What a copy from shared memory reads, held until its group is waited for.
const uint8_t *readHeld(Warp &w, unsigned lane, uint64_t address,
                        unsigned bytes, unsigned alignment) {
  SharedPlace at = sharedPlace(w, lane, address, bytes, alignment);
  if (at.block != w.block)
    throw FaultFound{FaultKind::Undefined,
                     "copies from another block's shared memory, expected its "
                     "own",
                     lane, address, "shared"};
  Accessor by = w.accessor(static_cast<uint8_t>(lane));
  Conflict found = at.block->shared.readAsync(w.block->cluster.clocks, by,
                                              at.offset, bytes, false);
  if (found.kind != Conflict::None)
    faultConflict(w, *at.block, lane, address, false, found, true);
  w.bulkReads.push_back({static_cast<uint8_t>(lane), w.bulkGroups[lane],
                         by.inst, at.block->shared.hold(at.offset, bytes, by)});
  return at.block->shared.data() + at.offset;
}

uint8_t *writeRange(Warp &w, unsigned lane, const Memory &m, uint64_t to,
                    uint64_t bytes) {
  std::string what = "copies " + std::to_string(bytes) + " bytes to offset " +
                     std::to_string(to) + " of " + m.name;
  if (to + bytes > m.size)
    throw FaultFound{FaultKind::OutOfBounds,
                     what + ", which has " + std::to_string(m.size),
                     lane,
                     {},
                     m.name};
  if (!m.writable)
    throw FaultFound{FaultKind::NotWritable,
                     what + ", which is not among the outputs of the launch",
                     lane,
                     {},
                     m.name};
  if (m.written)
    std::memset(m.written + to, 1, bytes);
  return m.data + to;
}

void storeTensor(Warp &w, const Inst &i, uint32_t mask) {
  std::vector<uint8_t> content;
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    const uint32_t *words = w.list(i);
    TensorBox box(mapAt(w, l, addressIn(w, words + kTo, l), i.aux & kRank));
    uint64_t from = sharedIn(w, words + kFrom, l);
    const uint8_t *memory =
        readHeld(w, l, from, static_cast<unsigned>(box.bytes), kBoxAlignment);
    uint64_t start = from - w.block->sharedBase;
    content.resize(box.bytes);
    for (uint64_t k = 0; k < box.bytes; k += kUnit)
      std::memcpy(content.data() + k,
                  memory + swizzledAddress(start + k, box.span) - start, kUnit);
    for (const BoxRow &row : box.rows(coordinatesOf(w, i, l, box))) {
      if (row.first >= row.end)
        continue;
      auto skip = static_cast<uint64_t>(row.first) * box.elementBytes;
      uint64_t bytes =
          static_cast<uint64_t>(row.end - row.first) * box.elementBytes;
      uint8_t *to = writeRange(w, l, box.map.memory,
                               static_cast<uint64_t>(row.memory) + skip, bytes);
      std::memcpy(to, content.data() + row.place + skip, bytes);
    }
  }
}

void storeBytes(Warp &w, const Inst &i, uint32_t mask) {
  for (uint32_t left = mask; left; left &= left - 1) {
    auto l = static_cast<unsigned>(std::countr_zero(left));
    const uint32_t *words = w.list(i);
    uint32_t bytes = w.row<uint32_t>(words[kSize])[l];
    uint64_t to = addressIn(w, words + kTo, l), offset;
    if (bytes % kUnit || to % kUnit)
      throw FaultFound{FaultKind::Misaligned,
                       "a bulk copy of " + std::to_string(bytes) +
                           " bytes, expected multiples of " +
                           std::to_string(kUnit) + " of size and address",
                       l, to, "global"};
    if (!bytes)
      continue;
    const uint8_t *from =
        readHeld(w, l, sharedIn(w, words + kFrom, l), bytes, kUnit);
    const Memory *m = findGlobal(w, to, kUnit, bytes, offset);
    if (!m)
      faultGlobal(w, l, to + bytes - kUnit, kUnit, true);
    std::memcpy(writeRange(w, l, *m, offset, bytes), from, bytes);
  }
}

void commit(Warp &w, const Inst &, uint32_t mask) {
  for (unsigned l = 0; l < kLanes; ++l)
    w.bulkGroups[l] += mask >> l & 1;
}

void wait(Warp &w, const Inst &i, uint32_t mask) {
  std::erase_if(w.bulkReads, [&](const BulkRead &r) {
    if (!(mask >> r.lane & 1) ||
        int64_t(r.group) >= int64_t(w.bulkGroups[r.lane]) - i.immediate)
      return false;
    w.block->shared.release(r.held);
    return true;
  });
}

// --- decoding ---------------------------------------------------------------

void addAddress(Decoder &d, const Operand &o, std::vector<uint32_t> &words) {
  Operand plain = o;
  if (plain.kind == Operand::Address)
    plain.items.resize(1); // Coordinates are taken apart from it.
  d.out.small &= 0x7fff;
  d.address(plain, 0);
  words.push_back(d.out.op[0]);
  words.push_back((d.out.small & 0x8000) != 0);
  words.push_back(static_cast<uint32_t>(d.out.immediate));
  d.out.immediate = 0;
}

void addCoordinates(Decoder &d, const Operand &o, unsigned rank,
                    std::vector<uint32_t> &words) {
  TypeMod b32{'b', 32, false, "b32"};
  if (o.kind != Operand::Address || o.items.size() != 2)
    d.fail("no [map, {coordinates}]");
  const Operand &list = o.items[1];
  size_t given = list.kind == Operand::List ? list.items.size() : 1;
  if (given != rank)
    d.fail(std::to_string(given) + " coordinates, expected " +
           std::to_string(rank));
  for (unsigned k = 0; k < rank; ++k)
    words.push_back(
        d.source(list.kind == Operand::List ? list.items[k] : list, b32));
}

unsigned takeRank(Decoder &d) {
  for (unsigned rank = 1; rank <= 5; ++rank)
    if (d.take(std::to_string(rank) + "d"))
      return rank;
  d.fail("no .1d to .5d");
}

bool decode(Decoder &d) {
  TypeMod b16{'b', 16, false, "b16"}, b32{'b', 32, false, "b32"},
      b64{'b', 64, false, "b64"};
  if (!d.take("async"))
    return false;
  if (!d.take("bulk"))
    return false;
  if (d.take("commit_group")) {
    d.expectCount(0, 0);
    d.out.run = commit;
    return true;
  }
  if (d.take("wait_group")) {
    d.take("read");
    d.expectCount(1, 1);
    d.out.immediate = d.operand(0).value;
    d.out.run = wait;
    return true;
  }
  bool prefetch = d.take("prefetch"), tensor = d.take("tensor");
  unsigned rank = tensor ? takeRank(d) : 0;
  bool fromGlobal = d.nextIs("shared::cluster") || prefetch;
  bool hasHint = false;
  if (tensor)
    d.take("tile");
  hasHint = d.take("L2::cache_hint");
  if (prefetch) { // Changes no value.
    d.take("L2");
    d.take("global");
    std::vector<uint32_t> words;
    addAddress(d, d.operand(0), words);
    if (tensor)
      addCoordinates(d, d.operand(0), rank, words);
    d.out.small &= 0x7fff;
    d.out.run = [](Warp &, const Inst &, uint32_t) {};
    return true;
  }
  std::vector<uint32_t> words;
  if (!fromGlobal && d.nextIs("shared::cta")) {
    // PTX ISA 8.6: the block's own memory as destination.
    fromGlobal = true;
  }
  d.out.aux = rank;
  if (fromGlobal) {
    d.names.code.hasMbarriers = true;
    bool cluster = d.take("shared::cluster");
    bool fromShared = false;
    if (!cluster)
      d.take("shared::cta");
    else if (!tensor && d.take("shared::cta"))
      fromShared = true;
    if (!fromShared && !d.take("global"))
      d.fail("no source that the simulator knows, expected .global");
    if (!d.take("mbarrier::complete_tx::bytes"))
      d.fail("no .mbarrier::complete_tx::bytes");
    bool multicast = d.take("multicast::cluster");
    size_t first = tensor ? 3 : 4;
    d.expectCount(first + multicast + hasHint, first + multicast + hasHint);
    addAddress(d, d.operand(0), words);
    addAddress(d, d.operand(1), words);
    addAddress(d, d.operand(first - 1), words);
    words.push_back(tensor ? kNone : d.source(2, b32));
    words.push_back(multicast ? d.source(first, b16) : kNone);
    if (hasHint)
      d.source(first + multicast, b64);
    if (tensor)
      addCoordinates(d, d.operand(1), rank, words);
    d.sharedAccess(8);
    d.out.aux |= fromShared ? kRead : 0;
    d.out.run = tensor ? loadTensor : loadBytes;
  } else {
    if (!d.take("global") || !d.take("shared::cta") || !d.take("bulk_group"))
      d.fail("no direction that the simulator knows");
    size_t first = tensor ? 2 : 3;
    d.expectCount(first + hasHint, first + hasHint);
    addAddress(d, d.operand(0), words);
    addAddress(d, d.operand(1), words);
    words.insert(words.end(), {kNone, 0, 0});
    words.push_back(tensor ? kNone : d.source(2, b32));
    words.push_back(kNone);
    if (hasHint)
      d.source(first, b64);
    if (tensor)
      addCoordinates(d, d.operand(0), rank, words);
    d.sharedAccess(16);
    d.names.code.hasMbarriers = true; // There are proxies.
    d.out.run = tensor ? storeTensor : storeBytes;
  }
  d.out.small &= 0x7fff;
  d.out.list = d.addList(words);
  return true;
}

} // namespace

void nova::sim::addBulkCopyInstructions(InstructionTable &table) {
  table.add("cp", decode);
}
