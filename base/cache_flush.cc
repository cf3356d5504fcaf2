#include "base/cache_flush.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tilefarm {
namespace {

#if defined(__x86_64__)

constexpr size_t kLineBytes = 64;

// Unlike CLFLUSH, CLFLUSHOPT instructions are not ordered among each other, so
// only the memory bandwidth is the limit.
__attribute__((target("clflushopt"))) void FlushUnordered(const char* line,
                                                          const char* end) {
  for (; line < end; line += kLineBytes) {
    _mm_clflushopt(const_cast<char*>(line));
  }
}

bool HasUnorderedFlush() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (b & bit_CLFLUSHOPT) != 0;
}

void FlushLines(const char* begin, const char* end) {
  const char* line = begin - reinterpret_cast<uintptr_t>(begin) % kLineBytes;
  static const bool unordered = HasUnorderedFlush();
  if (unordered) {
    FlushUnordered(line, end);
  } else {
    for (; line < end; line += kLineBytes) _mm_clflush(line);
  }
  _mm_mfence();
}

#elif defined(__aarch64__)

void FlushLines(const char* begin, const char* end) {
  // Log2 of the number of words in the smallest line of all data caches.
  uint64_t type = 0;
  asm("mrs %0, ctr_el0" : "=r"(type));
  const size_t line_bytes = size_t{4} << ((type >> 16) & 15);
  const char* line = begin - reinterpret_cast<uintptr_t>(begin) % line_bytes;
  for (; line < end; line += line_bytes) {
    asm volatile("dc civac, %0" : : "r"(line) : "memory");
  }
  asm volatile("dsb ish" : : : "memory");
}

#else

void FlushLines(const char*, const char*) {}

#endif

}  // namespace

bool CanFlushFromCaches() {
#if defined(__x86_64__) || defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

void FlushFromCaches(const void* data, size_t bytes) {
  const char* begin = static_cast<const char*>(data);
  FlushLines(begin, begin + bytes);
}

}  // namespace tilefarm
