#include "worker/runner/buffers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace tilefarm::worker {

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

bool GuardedBuffer::Allocate(size_t bytes, bool shared) {
  return Map(bytes, bytes, shared);
}

bool GuardedBuffer::AllocateAsUsersDo(size_t bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t usable = (kAllocatorOffset + bytes + page - 1) / page * page;
  return Map(usable - kAllocatorOffset, bytes, /*shared=*/false);
}

bool GuardedBuffer::Map(size_t room, size_t bytes, bool shared) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t usable = (room + page - 1) / page * page;
  const size_t total = usable + 2 * page;
  void* mapping =
      mmap(nullptr, total, PROT_NONE,
           (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE,
           -1, 0);
  if (mapping == MAP_FAILED) return false;
  char* first = static_cast<char*>(mapping) + page;
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
  // A page counts as memory of the control group whose process touches it
  // first, for as long as it exists: a shared one shall be ours, not a child's.
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
