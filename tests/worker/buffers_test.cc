// The memory that kernels use, and its addresses.
#include "worker/runner/buffers.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

namespace tilefarm::worker {
namespace {

uintptr_t Page() { return static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)); }

uintptr_t Address(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

// Whether the page of the address is mapped.
bool IsMapped(uintptr_t address) {
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(address / Page() * Page()), 1,
                 &resident) == 0;
}

void FillWithIndex(GuardedBuffer& buffer) {
  auto* bytes = static_cast<unsigned char*>(buffer.data());
  for (size_t i = 0; i < buffer.bytes(); ++i) {
    bytes[i] = static_cast<unsigned char>(i % 251);
  }
}

bool HoldsIndex(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != i % 251) return false;
  }
  return true;
}

TEST(GuardedBuffer, EndsWhereAPageEnds) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, kHugePageBytes + 100}) {
    GuardedBuffer buffer;
    ASSERT_TRUE(buffer.Allocate(bytes));
    EXPECT_EQ((Address(buffer.data()) + bytes) % Page(), 0u);
    GuardedBuffer huge;
    ASSERT_TRUE(huge.AllocateHuge(bytes));
    EXPECT_EQ((Address(huge.data()) + bytes) % Page(), 0u);
    FillWithIndex(huge);
    EXPECT_TRUE(HoldsIndex(huge.data(), bytes));
  }
}

TEST(GuardedBuffer, HugeOnesBeginWhereAHugePageDoes) {
  GuardedBuffer buffer;
  ASSERT_TRUE(buffer.AllocateHuge(3 * kHugePageBytes + 100));
  EXPECT_LT(Address(buffer.data()) % kHugePageBytes, Page());
}

TEST(GuardedBuffer, WhereUsersHaveThemAddressesDiffer) {
  std::set<uintptr_t> places;
  for (uint64_t random = 0; random < 8; ++random) {
    GuardedBuffer buffer;
    ASSERT_TRUE(buffer.AllocateAsUsersDo(5000, random));
    EXPECT_EQ(Address(buffer.data()) % Page(), GuardedBuffer::kAllocatorOffset);
    FillWithIndex(buffer);
    EXPECT_TRUE(HoldsIndex(buffer.data(), buffer.bytes()));
    places.insert(Address(buffer.data()));
  }
  EXPECT_GT(places.size(), 4u);
}

TEST(GuardedBuffer, MovesWithItsContents) {
  for (const size_t bytes : {size_t{5000}, 2 * kHugePageBytes + 5000}) {
    GuardedBuffer buffer;
    ASSERT_TRUE(buffer.AllocateHuge(bytes));
    FillWithIndex(buffer);
    std::set<uintptr_t> places;
    for (uint64_t random = 1; random < 6; ++random) {
      const uintptr_t before = Address(buffer.data());
      ASSERT_TRUE(buffer.Move(7 * random));
      EXPECT_NE(Address(buffer.data()), before);
      // The offset in the page does not change, since the caller chose it.
      EXPECT_EQ(Address(buffer.data()) % Page(), before % Page());
      EXPECT_EQ(buffer.bytes(), bytes);
      EXPECT_TRUE(HoldsIndex(buffer.data(), bytes));
      places.insert(Address(buffer.data()));
    }
    EXPECT_GT(places.size(), 2u);
    const uintptr_t last = Address(buffer.data());
    { const GuardedBuffer gone = std::move(buffer); }
    EXPECT_FALSE(IsMapped(last));
  }
}

TEST(MovePages, TakesPartOfAMapping) {
  // Four pages; the middle two move.
  const size_t page = Page();
  char* all = static_cast<char*>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(all, MAP_FAILED);
  for (size_t i = 0; i < 4; ++i) memset(all + i * page, 'a' + i, page);
  char* moved = static_cast<char*>(MovePages(all + page + 10, page, 3));
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(Address(moved) % page, 10u);
  EXPECT_EQ(moved[0], 'b');
  EXPECT_EQ(moved[page - 1], 'c');
  EXPECT_EQ(all[0], 'a');
  EXPECT_EQ(all[3 * page], 'd');
  munmap(all, page);
  munmap(all + 3 * page, page);
  munmap(moved - 10, 2 * page);
}

TEST(MovePages, WhatIsNotMappedStays) {
  EXPECT_EQ(MovePages(reinterpret_cast<void*>(Page()), Page(), 1), nullptr);
}

}  // namespace
}  // namespace tilefarm::worker
