// Flushing moves bytes and never changes them.
#include "base/cache_flush.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace tilefarm {
namespace {

TEST(FlushFromCaches, KeepsContents) {
  std::vector<unsigned char> bytes(100000);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  const std::vector<unsigned char> before = bytes;
  for (const size_t begin : {0u, 1u, 63u, 64u, 4095u}) {
    for (const size_t size : {0u, 1u, 64u, 65u, 90000u}) {
      FlushFromCaches(bytes.data() + begin, size);
      EXPECT_EQ(bytes, before) << begin << ", " << size;
    }
  }
}

// Data written before and after, also by another core, stays visible.
TEST(FlushFromCaches, WritesBackWhatWasWritten) {
  std::vector<int> numbers(1 << 16);
  for (int round = 1; round <= 10; ++round) {
    for (int& number : numbers) number += round;
    FlushFromCaches(numbers.data(), numbers.size() * sizeof(int));
    EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), int64_t{0}),
              int64_t{1 << 16} * round * (round + 1) / 2);
  }
}

}  // namespace
}  // namespace tilefarm
