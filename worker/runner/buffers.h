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
  bool Allocate(size_t bytes);
  // The same in huge pages, as the headers of artifacts advise for constants:
  // where the system has them, and `bytes` are kHugePageBytes or more.
  bool AllocateHuge(size_t bytes);
  // The same where an allocator puts large blocks: kAllocatorOffset bytes into
  // a page, whatever their size, so that an access little past the end need not
  // fault. Loads and stores at one place of different pages hinder each other,
  // and a user's buffers all begin at the same place. Of the addresses that are
  // free it takes one by `random`.
  bool AllocateAsUsersDo(size_t bytes, uint64_t random);
  static constexpr size_t kAllocatorOffset = 64;
  // MovePages, without the inaccessible pages. False: it stays as it is.
  bool Move(uint64_t random);
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  // Of `room` bytes up to the second page, the first `bytes`; that page is
  // followed by `skip` bytes more that are as inaccessible, and the pages of
  // the room begin at a multiple of `align`.
  bool Map(size_t room, size_t bytes, size_t skip, size_t align);

  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Moves the pages that hold the bytes, with what is in them, to addresses
// chosen by `random`, and returns where the bytes are now; null where the
// system cannot, and they are where they were. Nobody else may use the pages.
void* MovePages(void* data, size_t bytes, uint64_t random);

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
