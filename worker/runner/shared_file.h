// Memory that is shared with a process that was started before it was made.
#ifndef TILEFARM_WORKER_RUNNER_SHARED_FILE_H_
#define TILEFARM_WORKER_RUNNER_SHARED_FILE_H_

#include <cstddef>

namespace tilefarm::worker {

// A file in memory, mapped into this process. The other process gets its
// descriptor (descriptors.h). Its size is fixed, so that nobody can cut off
// memory that we access.
class SharedFile {
 public:
  SharedFile() = default;
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // Zero-filled, and touched, so that it does not count for the control group
  // of a child. False: out of memory, or the system has no such files.
  bool Make(size_t bytes);
  // Ends our mapping; nobody can write to it from now on.
  bool Freeze();

  int fd() const { return fd_; }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  int fd_ = -1;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// A mapping of somebody else's file.
class MappedFile {
 public:
  // `bytes` as its owner says; not touched beyond the file's size.
  MappedFile(int fd, size_t bytes, bool writable);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  char* data() const { return data_; }  // null: it cannot be mapped

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tilefarm::worker

#endif  // TILEFARM_WORKER_RUNNER_SHARED_FILE_H_
