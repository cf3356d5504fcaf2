#include "base/allocator.h"

#include <malloc.h>

namespace tilefarm {

void TuneAllocatorForMessages() {
#ifdef __GLIBC__
  mallopt(M_MXFAST, 0);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 4 << 20);
#endif
}

}  // namespace tilefarm
