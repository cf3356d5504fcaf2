/* LD_PRELOAD: the wall clock as if somebody had set it. The file that
 * CLOCK_SHIM_FILE names holds, as eight bytes, by how many seconds it is off;
 * it may change at any moment. Waits until a wall clock time end when that
 * clock, as shifted then, reaches it. Monotonic clocks stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* A wait looks at the clock again after this. */
enum { kSliceNs = 50 * 1000 * 1000, kSecondNs = 1000 * 1000 * 1000 };

static int64_t OffsetSeconds(void) {
  static const volatile int64_t* file;
  if (file == NULL) {
    const char* path = getenv("CLOCK_SHIM_FILE");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    void* map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED) return 0;
    file = map;
  }
  return *file;
}

static long Raw(long number, long a, long b, long c, long d, long e, long f) {
  static long (*real)(long, ...);
  if (real == NULL) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return real(number, a, b, c, d, e, f);
}

static void RealNow(struct timespec* now) {
  Raw(SYS_clock_gettime, CLOCK_REALTIME, (long)now, 0, 0, 0, 0);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  int result = (int)Raw(SYS_clock_gettime, clock, (long)now, 0, 0, 0, 0);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    now->tv_sec += OffsetSeconds();
  }
  return result;
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  struct timespec real;
  RealNow(&real);
  now->tv_sec = real.tv_sec + OffsetSeconds();
  now->tv_usec = real.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec real;
  RealNow(&real);
  real.tv_sec += OffsetSeconds();
  if (out != NULL) *out = real.tv_sec;
  return real.tv_sec;
}

/* Whether the shifted clock has reached `until`; if not, `slice` is when to
 * look again, by the real one. */
static int Reached(const struct timespec* until, struct timespec* slice) {
  struct timespec real;
  RealNow(&real);
  int64_t left = (until->tv_sec - real.tv_sec - OffsetSeconds()) * kSecondNs +
                 (until->tv_nsec - real.tv_nsec);
  if (left <= 0) return 1;
  if (left > kSliceNs) left = kSliceNs;
  *slice = real;
  slice->tv_nsec += left;
  if (slice->tv_nsec >= kSecondNs) {
    slice->tv_nsec -= kSecondNs;
    ++slice->tv_sec;
  }
  return 0;
}

int pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                           const struct timespec* until) {
  static int (*real)(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                     const struct timespec*);
  if (real == NULL) real = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  for (;;) {
    struct timespec slice;
    if (Reached(until, &slice)) return ETIMEDOUT;
    int result = real(cond, mutex, CLOCK_REALTIME, &slice);
    if (result != ETIMEDOUT) return result;
  }
}

/* Abseil waits on futexes directly. */
long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long v[6];
  for (int i = 0; i < 6; ++i) v[i] = va_arg(arguments, long);
  va_end(arguments);
  struct timespec slice;
  if (number == SYS_futex && (v[1] & FUTEX_CLOCK_REALTIME) != 0 && v[3] != 0) {
    if (Reached((const struct timespec*)v[3], &slice)) {
      errno = ETIMEDOUT;
      return -1;
    }
    const long result = Raw(number, v[0], v[1], v[2], (long)&slice, v[4], v[5]);
    /* Its caller looks at the value and waits on. */
    if (result < 0 && errno == ETIMEDOUT) errno = EINTR;
    return result;
  }
  return Raw(number, v[0], v[1], v[2], v[3], v[4], v[5]);
}
