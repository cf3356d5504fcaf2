// Memory for weights that are packed ahead of time, for Tilefarm and peers.
#ifndef TILEFARM_TESTS_PERF_HUGE_MEMORY_H_
#define TILEFARM_TESTS_PERF_HUGE_MEMORY_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace tilefarm::perf {

// In huge pages for more than a megabyte or two, if the system has them, as the
// headers of artifacts advise. Null: out of memory. Release with std::free.
inline void* AllocateConstants(size_t bytes) {
  constexpr size_t kHugePageBytes = size_t{2} << 20;
  if (bytes < kHugePageBytes) {
    return std::aligned_alloc(64, std::max<size_t>((bytes + 63) / 64 * 64, 64));
  }
  const size_t whole =
      (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* data = std::aligned_alloc(kHugePageBytes, whole);
  if (data != nullptr) madvise(data, whole, MADV_HUGEPAGE);
  return data;
}

}  // namespace tilefarm::perf

#endif  // TILEFARM_TESTS_PERF_HUGE_MEMORY_H_
