#include "worker/runner/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace tilefarm::worker {

SharedFile::~SharedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
  if (fd_ >= 0) close(fd_);
}

bool SharedFile::Make(size_t bytes) {
  bytes_ = std::max<size_t>(bytes, 1);
  fd_ = memfd_create("tilefarm-device", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes_)) != 0 ||
      fcntl(fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    return false;
  }
  void* data = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE, fd_, 0);
  if (data == MAP_FAILED) return false;
  data_ = data;
  return true;
}

bool SharedFile::Freeze() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
  return fcntl(fd_, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) == 0;
}

MappedFile::MappedFile(int fd, size_t bytes, bool writable)
    : bytes_(std::max<size_t>(bytes, 1)) {
  void* data = mmap(nullptr, bytes_, PROT_READ | (writable ? PROT_WRITE : 0),
                    MAP_SHARED, fd, 0);
  if (data != MAP_FAILED) data_ = static_cast<char*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace tilefarm::worker
