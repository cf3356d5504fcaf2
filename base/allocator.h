// Settings of the C library's allocator for a daemon with many connections.
#ifndef TILEFARM_BASE_ALLOCATOR_H_
#define TILEFARM_BASE_ALLOCATOR_H_

namespace tilefarm {

// For programs that make and free many small blocks beside buffers of some
// kilobytes, as gRPC does for every message: glibc would merge all small free
// blocks with every such buffer, and give memory back to the system only to
// ask for it again. To be called first; elsewhere than on glibc it does
// nothing.
void TuneAllocatorForMessages();

}  // namespace tilefarm

#endif  // TILEFARM_BASE_ALLOCATOR_H_
