// Putting memory out of the processor's caches. Knows the C++ library only:
// tune-runner, which links nothing else, compiles it too.
#ifndef TILEFARM_BASE_CACHE_FLUSH_H_
#define TILEFARM_BASE_CACHE_FLUSH_H_

#include <cstddef>

namespace tilefarm {

// Whether programs may do so line by line: x86-64 and aarch64.
bool CanFlushFromCaches();

// Writes back what the caches of all cores hold of these bytes, and forgets it:
// the next access goes to memory. Contents stay; takes a millisecond or two for
// 64 MiB. Nothing happens unless CanFlushFromCaches().
void FlushFromCaches(const void* data, size_t bytes);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_CACHE_FLUSH_H_
