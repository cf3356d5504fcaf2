/* The weights of a model in a file of their own (driver/weights_file.h), mapped
 * read-only: all processes that use the file share its pages in memory. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"

enum { kHeaderBytes = 64, kPathBytes = 4096 };

static const char kMagic[8] = {'T', 'F', 'W', 'E', 'I', 'G', 'H', 'T'};
static const uint32_t kVersion = 1;

/* All numbers are little-endian, as every triple is. */
struct Header {
  char magic[8];
  uint32_t version, header_bytes;
  uint64_t bytes; /* that follow */
  uint8_t digest[32];
  uint8_t reserved[8];
};
_Static_assert(sizeof(struct Header) == kHeaderBytes, "the header has a gap");

/* The mapping that all instances of this library share. */
static _Atomic(int32_t) locked;
static void* mapped;
static int32_t users;

static void Lock(void) {
  while (__c11_atomic_exchange(&locked, 1, __ATOMIC_ACQUIRE)) TF_PAUSE();
}
static void Unlock(void) { __c11_atomic_store(&locked, 0, __ATOMIC_RELEASE); }

static size_t MappedBytes(const struct tf_rt_weights_file* file) {
  return (size_t)file->bytes + kHeaderBytes;
}

/* Describes an error; the result is null. */
static const char* Error(char* error, const char* path, const char* problem) {
  snprintf(error, TF_RT_ERROR_BYTES, "create: the weights file %s %s", path,
           problem);
  return NULL;
}

/* A file of this name in the library's folder. 0 if its path is not known. */
static int32_t PathBesideLibrary(const char* name, char* path) {
  struct tf_dl_info library;
  if (dladdr(&users, &library) == 0 || library.file == NULL) return 0;
  const char* folder_end = library.file;
  for (const char* c = library.file; *c != 0; ++c) {
    if (*c == '/') folder_end = c + 1;
  }
  const int length =
      snprintf(path, kPathBytes, "%.*s%s", (int)(folder_end - library.file),
               library.file, name);
  return length > 0 && length < kPathBytes;
}

/* Whether the open file is what the library was compiled with. */
static int32_t CheckFile(int fd, const struct tf_rt_weights_file* file,
                         const char* path, char* error) {
  struct Header header;
  const long count = pread(fd, &header, kHeaderBytes, 0);
  if (count < 0) {
    snprintf(error, TF_RT_ERROR_BYTES,
             "create: the weights file %s cannot be read: %s", path,
             strerror(*__errno_location()));
    return 0;
  }
  if (count < kHeaderBytes ||
      memcmp(header.magic, kMagic, sizeof(kMagic)) != 0) {
    Error(error, path, "is not a weights file that tunec wrote");
    return 0;
  }
  if (header.version != kVersion || header.header_bytes != kHeaderBytes) {
    Error(error, path,
          "has another version than this library reads: build both by one call"
          " of tunec");
    return 0;
  }
  if (header.bytes != (uint64_t)file->bytes ||
      memcmp(header.digest, file->digest, sizeof(header.digest)) != 0) {
    Error(error, path,
          "belongs to another library: build both by one call of tunec");
    return 0;
  }
  if (lseek(fd, 0, TF_SEEK_END) != (long)MappedBytes(file)) {
    Error(error, path,
          "is truncated or has bytes after its end: copy it again");
    return 0;
  }
  return 1;
}

const char* tf_rt_weights_open(const struct tf_rt_weights_file* file,
                               const char* path, char* error) {
  char beside[kPathBytes];
  if (path == NULL) {
    if (!PathBesideLibrary(file->name, beside)) {
      return Error(error, file->name,
                   "is not found, since the library's folder is not known: set"
                   " options.weights");
    }
    path = beside;
  }
  /* Without TF_O_NONBLOCK, a pipe would wait for its other end. */
  const int fd = open(path, TF_O_RDONLY | TF_O_NONBLOCK | TF_O_CLOEXEC);
  if (fd < 0) {
    snprintf(error, TF_RT_ERROR_BYTES,
             "create: the weights file %s cannot be opened: %s;"
             " options.weights names another place",
             path, strerror(*__errno_location()));
    return NULL;
  }
  void* mine = (void*)-1;
  if (CheckFile(fd, file, path, error)) {
    mine = mmap(NULL, MappedBytes(file), TF_PROT_READ, TF_MAP_SHARED, fd, 0);
    if (mine == (void*)-1) {
      Error(error, path, "cannot be mapped into memory");
    }
  }
  close(fd);
  if (mine == (void*)-1) return NULL;
  /* Every file that passes has the same bytes: the first mapping serves all. */
  Lock();
  if (users++ == 0) {
    mapped = mine;
    mine = NULL;
  }
  const char* weights = (const char*)mapped + kHeaderBytes;
  Unlock();
  if (mine != NULL) munmap(mine, MappedBytes(file));
  return weights;
}

void tf_rt_weights_close(const struct tf_rt_weights_file* file) {
  void* unused = NULL;
  Lock();
  if (--users == 0) unused = mapped;
  Unlock();
  if (unused != NULL) munmap(unused, MappedBytes(file));
}
