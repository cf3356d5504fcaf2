#include "worker/runner/buffers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace tilefarm::worker {
namespace {

// Number of addresses that a buffer may get, in pages or huge pages.
constexpr size_t kPlaces = 31;

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

uintptr_t RoundUp(uintptr_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

GuardedBuffer& GuardedBuffer::operator=(GuardedBuffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

GuardedBuffer::~GuardedBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

bool GuardedBuffer::Allocate(size_t bytes) {
  return Map(bytes, bytes, /*skip=*/0, PageBytes());
}

bool GuardedBuffer::AllocateHuge(size_t bytes) {
  if (bytes < kHugePageBytes) return Allocate(bytes);
  if (!Map(bytes, bytes, /*skip=*/0, kHugePageBytes)) return false;
  const size_t usable = RoundUp(bytes, PageBytes());
  // Small pages work as well, but are slower.
  madvise(static_cast<char*>(data_) + bytes - usable, usable, MADV_HUGEPAGE);
  return true;
}

bool GuardedBuffer::AllocateAsUsersDo(size_t bytes, uint64_t random) {
  const size_t usable = RoundUp(kAllocatorOffset + bytes, PageBytes());
  return Map(usable - kAllocatorOffset, bytes, random % kPlaces * PageBytes(),
             PageBytes());
}

bool GuardedBuffer::Move(uint64_t random) {
  const auto before = reinterpret_cast<uintptr_t>(data_);
  void* moved = MovePages(data_, bytes_, random);
  if (moved == nullptr) return false;
  const size_t page = PageBytes();
  const uintptr_t first = before / page * page;
  const uintptr_t last = RoundUp(before + bytes_, page);
  const auto begin = reinterpret_cast<uintptr_t>(mapping_);
  if (first > begin) munmap(mapping_, first - begin);
  if (last < begin + mapping_bytes_) {
    munmap(reinterpret_cast<void*>(last), begin + mapping_bytes_ - last);
  }
  data_ = moved;
  mapping_ =
      reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(moved) / page * page);
  mapping_bytes_ = last - first;
  return true;
}

bool GuardedBuffer::Map(size_t room, size_t bytes, size_t skip, size_t align) {
  const size_t page = PageBytes();
  const size_t usable = RoundUp(room, page);
  const size_t total = align + usable + page + skip;
  void* mapping = mmap(nullptr, total, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return false;
  char* first = reinterpret_cast<char*>(
      RoundUp(reinterpret_cast<uintptr_t>(mapping) + page, align));
  if (usable > 0 && mprotect(first, usable, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, total);
    return false;
  }
  GuardedBuffer made;
  made.mapping_ = mapping;
  made.mapping_bytes_ = total;
  made.data_ = first + usable - room;
  made.bytes_ = bytes;
  *this = std::move(made);
  return true;
}

void* MovePages(void* data, size_t bytes, uint64_t random) {
  const size_t page = PageBytes();
  const auto start = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = start / page * page;
  const size_t size = RoundUp(start + bytes, page) - first;
  // Huge pages stay whole if both addresses have the same offset in one.
  const size_t step = size < kHugePageBytes ? page : kHugePageBytes;
  const size_t total = size + (kPlaces + 1) * step;
  void* hole = mmap(nullptr, total, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (hole == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<uintptr_t>(hole);
  const uintptr_t target =
      RoundUp(begin, step) + first % step + random % kPlaces * step;
  void* moved =
      mremap(reinterpret_cast<void*>(first), size, size,
             MREMAP_MAYMOVE | MREMAP_FIXED, reinterpret_cast<void*>(target));
  if (moved == MAP_FAILED) {
    munmap(hole, total);
    return nullptr;
  }
  if (target > begin) munmap(hole, target - begin);
  const uintptr_t after = target + size;
  if (after < begin + total) {
    munmap(reinterpret_cast<void*>(after), begin + total - after);
  }
  return static_cast<char*>(moved) + (start - first);
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

bool Mapping::Allocate(size_t bytes, bool shared) {
  const size_t size = bytes == 0 ? 1 : bytes;
  // A page counts for the control group whose process touches it first, as long
  // as it exists. Shared pages are touched here, so that they do not count for
  // a child.
  const int flags =
      (shared ? MAP_SHARED | MAP_POPULATE : MAP_PRIVATE) | MAP_ANONYMOUS;
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (data == MAP_FAILED) return false;
  Mapping made;
  made.data_ = data;
  made.bytes_ = size;
  *this = std::move(made);
  return true;
}

void Poison(bool is_float, void* data, size_t bytes) {
  std::memset(data, is_float ? 0xff : 0xa5, bytes);
}

}  // namespace tilefarm::worker
