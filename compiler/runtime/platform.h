/* The part of the C library and of Linux that the runtime uses, declared by
 * hand so that it compiles for every triple without that triple's headers.
 * codegen/c_library.cc lists the same names for the linker. */
#ifndef TILEFARM_COMPILER_RUNTIME_PLATFORM_H_
#define TILEFARM_COMPILER_RUNTIME_PLATFORM_H_

#include <stddef.h>
#include <stdint.h>

void* aligned_alloc(size_t alignment, size_t bytes);
void free(void* block);
void* memset(void* to, int byte, size_t bytes);
void* memcpy(void* to, const void* from, size_t bytes);
int memcmp(const void* a, const void* b, size_t bytes);
int snprintf(char* to, size_t bytes, const char* format, ...);
int vsnprintf(char* to, size_t bytes, const char* format,
              __builtin_va_list arguments);
char* strerror(int number);
int* __errno_location(void);
int open(const char* path, int flags, ...);
int close(int fd);
long pread(int fd, void* to, size_t bytes, long offset);
long lseek(int fd, long offset, int whence);
struct tf_dl_info { /* Dl_info */
  const char* file;
  void* base;
  const char* symbol;
  void* address;
};
int dladdr(const void* address, struct tf_dl_info* info);
void* dlopen(const char* path, int mode);
void* dlsym(void* library, const char* name);
char* dlerror(void);
int dlclose(void* library);
char* getenv(const char* name);
/* exit() calls `function`, and so does __cxa_finalize, which forgets it: all
 * those with the same `owner`. */
int __cxa_atexit(void (*function)(void*), void* argument, void* owner);
void __cxa_finalize(void* owner);
void* mmap(void* at, size_t bytes, int protection, int flags, int fd,
           long offset);
int munmap(void* at, size_t bytes);
int mprotect(void* at, size_t bytes, int protection);
int madvise(void* at, size_t bytes, int advice);
long syscall(long number, ...);
struct tf_timespec { /* struct timespec, whose fields are one word each */
  long seconds, nanoseconds;
};
int clock_gettime(int clock, struct tf_timespec* time);
int sched_getaffinity(int pid, size_t bytes, void* mask);
int sched_setaffinity(int pid, size_t bytes, const void* mask);
int sched_getcpu(void);
int pthread_create(unsigned long* thread, const void* attributes,
                   void* (*start)(void*), void* argument);
int pthread_join(unsigned long thread, void** result);
int pthread_attr_init(void* attributes);
int pthread_attr_setstacksize(void* attributes, size_t bytes);
int pthread_attr_destroy(void* attributes);
int pthread_key_create(uint32_t* key, void (*destructor)(void*));
int pthread_key_delete(uint32_t key);
void* pthread_getspecific(uint32_t key);
int pthread_setspecific(uint32_t key, const void* value);
struct tf_mutex { /* pthread_mutex_t, and more; all zero at first */
  long words[16];
};
int pthread_mutex_lock(struct tf_mutex* mutex);
int pthread_mutex_unlock(struct tf_mutex* mutex);
int pthread_sigmask(int how, const void* set, void* old_set);

/* Linux's numbers, the same on every architecture we build for. */
enum {
  TF_O_RDONLY = 0,
  TF_O_NONBLOCK = 04000,
  TF_O_CLOEXEC = 02000000,
  TF_SEEK_END = 2,
  TF_PROT_NONE = 0,
  TF_PROT_READ = 1,
  TF_PROT_READ_WRITE = 3,
  TF_MAP_SHARED = 1,
  TF_MAP_PRIVATE_ANONYMOUS = 0x22,
  TF_RTLD_NOW = 2,
  TF_RTLD_NODELETE = 0x1000,
  TF_MADV_WIPEONFORK = 18,
  TF_SIG_SETMASK = 2,
  TF_CLOCK_MONOTONIC = 1,
  TF_FUTEX_WAIT_PRIVATE = 128,
  TF_FUTEX_WAKE_PRIVATE = 129,
};

#if defined(__x86_64__)
enum { TF_SYS_FUTEX = 202, TF_SYS_GETTID = 186 };
#define TF_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__) || defined(__riscv)
enum { TF_SYS_FUTEX = 98, TF_SYS_GETTID = 178 };
#if defined(__aarch64__)
#define TF_PAUSE() __asm__ volatile("yield")
#else
#define TF_PAUSE() ((void)0)
#endif
#elif defined(__arm__)
enum { TF_SYS_FUTEX = 240, TF_SYS_GETTID = 224 };
#define TF_PAUSE() __asm__ volatile("yield")
#elif defined(__wasm__) /* wasm.c has one thread */
#define TF_PAUSE() ((void)0)
#else
#error "give this architecture its numbers and pause instruction"
#endif

#endif /* TILEFARM_COMPILER_RUNTIME_PLATFORM_H_ */
