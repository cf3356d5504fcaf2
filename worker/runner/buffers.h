// Memory that kernels run on.
#ifndef TILEFARM_WORKER_RUNNER_BUFFERS_H_
#define TILEFARM_WORKER_RUNNER_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tilefarm::worker {

// Bytes between two inaccessible pages that end exactly at the second one: an
// access past the end faults. Aligned as the end allows, which for a whole
// number of elements is the element's size.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  // False where the system has no room; zero-filled otherwise, not touched.
  // `shared`: with processes forked later, which then write to the same pages.
  bool Allocate(size_t bytes, bool shared = false);
  // The same where an allocator puts large blocks: kAllocatorOffset bytes into
  // a page, whatever their size, so that an access little past the end need not
  // fault. Loads and stores at one place of different pages hinder each other,
  // and a user's buffers all begin at the same place.
  bool AllocateAsUsersDo(size_t bytes);
  static constexpr size_t kAllocatorOffset = 64;
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  // Of `room` bytes up to the second page, the first `bytes`.
  bool Map(size_t room, size_t bytes, bool shared);

  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Zeroed anonymous memory; `shared` with processes forked later, or private.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept { *this = std::move(other); }
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  bool Allocate(size_t bytes, bool shared);
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// Fills with the pattern that outputs start with: NaN for floats, an unlikely
// value for integers, neither 0 nor 1 for bools.
void Poison(bool is_float, void* data, size_t bytes);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_BUFFERS_H_
