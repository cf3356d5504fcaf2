// Evicts memory from the processor's caches. Uses the C++ library only, because
// tune-runner compiles it and links nothing else.
#ifndef TILEFARM_BASE_CACHE_FLUSH_H_
#define TILEFARM_BASE_CACHE_FLUSH_H_

#include <cstddef>

namespace tilefarm {

// Whether this processor lets programs evict cache lines: x86-64 and aarch64.
bool CanFlushFromCaches();

// Writes the cached lines of these bytes back to memory and evicts them from
// the caches of all cores, so that the next access goes to memory. The contents
// do not change. Takes one to two milliseconds for 64 MiB. Does nothing unless
// CanFlushFromCaches().
void FlushFromCaches(const void* data, size_t bytes);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_CACHE_FLUSH_H_
