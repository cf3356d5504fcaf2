// Memory for the buffers of kernels.
#ifndef TILEFARM_WORKER_RUNNER_BUFFERS_H_
#define TILEFARM_WORKER_RUNNER_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tilefarm::worker {

// Bytes between two inaccessible pages. They end exactly at the second one, so
// that an access past the end faults. Their alignment follows from the end; for
// a whole number of elements it is the element's size.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  GuardedBuffer(GuardedBuffer&& other) noexcept { *this = std::move(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept;
  ~GuardedBuffer();

  // Zero-filled and not touched. False: out of memory.
  bool Allocate(size_t bytes);
  // The same in huge pages, as the headers of artifacts advise for constants,
  // if the system has them and `bytes` are kHugePageBytes or more.
  bool AllocateHuge(size_t bytes);
  // The same at an address that an allocator would choose for large blocks:
  // kAllocatorOffset bytes into a page for all sizes, so that an access just
  // past the end may not fault. Loads and stores at the same offset of
  // different pages slow each other down, and a user's buffers all begin at
  // this offset. `random` chooses among the free addresses.
  bool AllocateAsUsersDo(size_t bytes, uint64_t random);
  static constexpr size_t kAllocatorOffset = 64;
  // MovePages for all but the inaccessible pages. False: nothing has moved.
  bool Move(uint64_t random);
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  // The first `bytes` of the `room` bytes before the second inaccessible page.
  // Another `skip` bytes after that page are inaccessible as well, and the
  // pages of the room begin at a multiple of `align`.
  bool Map(size_t room, size_t bytes, size_t skip, size_t align);

  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

// Moves the pages that hold the bytes, with their content, to an address chosen
// by `random`, and returns the new address of the bytes. Null: the system
// cannot, and nothing has moved. Nobody else may use the pages.
void* MovePages(void* data, size_t bytes, uint64_t random);

// Zeroed anonymous memory, `shared` with processes forked later, or private.
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

// Fills with the initial pattern of outputs: NaN for floats, an unlikely value
// for integers, neither 0 nor 1 for bools.
void Poison(bool is_float, void* data, size_t bytes);

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_BUFFERS_H_
