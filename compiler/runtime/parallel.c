/* One lazy thread pool per artifact. It has as many threads as the widest loop
 * so far asked for.
 *
 * A loop is published by giving `state` a new generation; a worker that sees
 * it in time joins (counts itself into `state`), takes chunks until none is
 * left, and counts itself out. When the caller finds no more chunks it closes
 * the generation and waits only for workers that joined, so a worker that wakes
 * up late causes no delay.
 *
 *   state:  63......32 31      30....0
 *           generation closed  active workers
 *
 * A sleeping worker is bound to a cpu, its home: each to another one, none to
 * the caller's, until it is awake again. Otherwise the system may wake it on
 * the caller's cpu, because a guest's halted cpus look as if they were taken
 * away; there it would not run before the caller has done all the work.
 *
 * The pool is in a page that the kernel zeroes in a forked child, where its
 * threads do not exist; the child makes its own. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"
#include "compiler/runtime/threads.h"

enum {
  kMaxWorkers = 1023,
  kPoolBytes = 32768,
  kMaskWords = 128,
  kStackBytes = 1 << 20,
  kSpins = 2000, /* before a waiting thread sleeps: some 50 us */
  kChunksPerThread = 4,
  kSpinsPerLook = 32, /* at the clock */
};

#define TF_CLOSED ((uint64_t)1 << 31)
#define TF_ACTIVE (TF_CLOSED - 1)

struct Pool {
  _Atomic(uint64_t) state;
  _Atomic(uint32_t) generation; /* what idle workers sleep on */
  _Atomic(int32_t) sleepers;
  _Atomic(int32_t) caller_sleeps;
  _Atomic(int32_t) busy; /* a caller owns the pool */
  _Atomic(int32_t) stop;
  _Atomic(int32_t) arrived; /* workers that have begun */
  int32_t started;
  int32_t workers;
  int32_t cores;  /* the threads of an unlimited loop; 0: not known yet */
  int32_t widest; /* the most threads that a loop asked for */
  /* Idle workers spin that long; 0: kSpins. Of the last loop. */
  _Atomic(int32_t) spin_us;
  /* The loop, constant while its generation is open. */
  _Atomic(int32_t) helpers; /* workers that may be active at once */
  tf_rt_body body;
  void* context;
  int64_t n, chunk;
  _Atomic(int64_t) next;
  _Atomic(int32_t) status;
  unsigned long threads[kMaxWorkers];
  _Atomic(int32_t) tids[kMaxWorkers]; /* 0: not there yet */
  /* The caller's at 0, worker i's home at i + 1. */
  _Atomic(int32_t) cpus[kMaxWorkers + 1];
};
_Static_assert(sizeof(struct Pool) <= kPoolBytes, "the mapping is too small");

static _Atomic(struct Pool*) pool_page;

static void FutexWait(void* word, uint32_t seen) {
  syscall(TF_SYS_FUTEX, word, TF_FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
static void FutexWake(void* word, int32_t threads) {
  syscall(TF_SYS_FUTEX, word, TF_FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}
static void FutexWakeAll(void* word) { FutexWake(word, 0x7fffffff); }

static void TakeChunks(struct Pool* pool) {
  for (;;) {
    const int64_t begin =
        __c11_atomic_fetch_add(&pool->next, pool->chunk, __ATOMIC_RELAXED);
    if (begin >= pool->n) return;
    int64_t end = begin + pool->chunk;
    if (end > pool->n) end = pool->n;
    const int32_t status = pool->body(begin, end, pool->context);
    if (status != 0) {
      __c11_atomic_store(&pool->status, status, __ATOMIC_RELAXED);
    }
  }
}

static void BindTo(int32_t tid, int32_t cpu) {
  unsigned long mask[kMaskWords] = {0};
  const int32_t bits = 8 * (int32_t)sizeof(mask[0]);
  if (cpu < 0 || cpu >= kMaskWords * bits) return;
  mask[cpu / bits] = 1ul << (cpu % bits);
  sched_setaffinity(tid, sizeof(mask), mask);
}

/* Assigns homes to the workers: the allowed cpus after the caller's, cyclically
 * if there are fewer cpus than workers. */
static void ChooseHomes(struct Pool* pool, int32_t threads) {
  unsigned long mask[kMaskWords] = {0};
  const int32_t bits = 8 * (int32_t)sizeof(mask[0]), all = kMaskWords * bits;
  int32_t cpu = sched_getcpu();
  if (cpu < 0 || cpu >= all) cpu = 0;
  for (int32_t i = 0; i < threads; ++i) {
    __c11_atomic_store(&pool->cpus[i], i == 0 ? cpu : -1, __ATOMIC_RELAXED);
  }
  if (sched_getaffinity(0, sizeof(mask), mask) < 0) return;
  for (int32_t i = 1; i < threads; ++i) {
    do {
      cpu = cpu + 1 < all ? cpu + 1 : 0;
    } while (!(mask[cpu / bits] >> (cpu % bits) & 1));
    __c11_atomic_store(&pool->cpus[i], cpu, __ATOMIC_RELAXED);
  }
}

/* If the caller has moved to a sleeping worker's home, they swap cpus. */
static void LeaveHomesAlone(struct Pool* pool) {
  const int32_t now = sched_getcpu();
  const int32_t before = __c11_atomic_load(&pool->cpus[0], __ATOMIC_RELAXED);
  if (now < 0 || now == before) return;
  __c11_atomic_store(&pool->cpus[0], now, __ATOMIC_RELAXED);
  for (int32_t i = 0; i < pool->workers; ++i) {
    if (__c11_atomic_load(&pool->cpus[i + 1], __ATOMIC_RELAXED) != now) {
      continue;
    }
    __c11_atomic_store(&pool->cpus[i + 1], before, __ATOMIC_RELAXED);
    const int32_t tid = __c11_atomic_load(&pool->tids[i], __ATOMIC_RELAXED);
    if (tid != 0) BindTo(tid, before);
  }
}

static void SleepAtHome(struct Pool* pool, int32_t worker, uint32_t seen,
                        const unsigned long* awake, int known) {
  BindTo(0, __c11_atomic_load(&pool->cpus[worker + 1], __ATOMIC_RELAXED));
  __c11_atomic_fetch_add(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
  FutexWait(&pool->generation, seen);
  __c11_atomic_fetch_sub(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
  if (known >= 0) sched_setaffinity(0, kMaskWords * sizeof(*awake), awake);
}

static int64_t Microseconds(void) {
  struct tf_timespec now = {0, 0};
  clock_gettime(TF_CLOCK_MONOTONIC, &now);
  return (int64_t)now.seconds * 1000000 + now.nanoseconds / 1000;
}

/* Returns when there is a generation other than `seen`, or after the time. */
static void SpinIdle(struct Pool* pool, uint32_t seen) {
  const int32_t spin_us = __c11_atomic_load(&pool->spin_us, __ATOMIC_RELAXED);
  const int64_t end = spin_us > 0 ? Microseconds() + spin_us : 0;
  const int32_t spins = spin_us > 0 ? kSpinsPerLook : kSpins;
  do {
    for (int i = 0; i < spins; ++i) {
      if (__c11_atomic_load(&pool->generation, __ATOMIC_ACQUIRE) != seen) {
        return;
      }
      TF_PAUSE();
    }
  } while (spin_us > 0 && Microseconds() < end);
}

static void* WorkerMain(void* argument) {
  struct Pool* pool = argument;
  /* Read the affinity once, before other threads know this one: later, a caller
   * that considers it asleep may bind it although it is awake. */
  unsigned long awake[kMaskWords] = {0};
  const int known = sched_getaffinity(0, sizeof(awake), awake);
  const int32_t worker =
      __c11_atomic_fetch_add(&pool->arrived, 1, __ATOMIC_RELAXED);
  __c11_atomic_store(&pool->tids[worker], (int32_t)syscall(TF_SYS_GETTID),
                     __ATOMIC_RELAXED);
  uint32_t seen = 0;
  for (;;) {
    SpinIdle(pool, seen);
    while (__c11_atomic_load(&pool->generation, __ATOMIC_SEQ_CST) == seen) {
      SleepAtHome(pool, worker, seen, awake, known);
    }
    /* In this order, a thread that sees the last generation also sees the stop.
     */
    seen = __c11_atomic_load(&pool->generation, __ATOMIC_ACQUIRE);
    if (__c11_atomic_load(&pool->stop, __ATOMIC_ACQUIRE)) return NULL;
    uint64_t state = __c11_atomic_load(&pool->state, __ATOMIC_ACQUIRE);
    int joined = 0;
    while (!(state & TF_CLOSED) && !joined &&
           (int64_t)(state & TF_ACTIVE) <
               __c11_atomic_load(&pool->helpers, __ATOMIC_RELAXED)) {
      joined = __c11_atomic_compare_exchange_weak(
          &pool->state, &state, state + 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    }
    if (!joined) continue;
    TakeChunks(pool);
    state = __c11_atomic_fetch_sub(&pool->state, 1, __ATOMIC_SEQ_CST);
    if ((state & TF_CLOSED) && (state & TF_ACTIVE) == 1 &&
        __c11_atomic_load(&pool->caller_sleeps, __ATOMIC_SEQ_CST)) {
      FutexWakeAll(&pool->state);
    }
  }
}

/* Creates workers until the pool has `threads` threads, the caller included. */
static void Grow(struct Pool* pool, int32_t threads) {
  pool->widest = threads;
  /* pthread_attr_t has at most 64 bytes on Linux. */
  _Alignas(16) char attributes[128];
  uint64_t all_signals[16], old_signals[16]; /* glibc's sigset_t */
  for (int i = 0; i < 16; ++i) all_signals[i] = ~(uint64_t)0;
  pthread_attr_init(attributes);
  pthread_attr_setstacksize(attributes, kStackBytes);
  /* Only threads of the program that loaded the artifact handle signals. */
  pthread_sigmask(TF_SIG_SETMASK, all_signals, old_signals);
  while (pool->workers < threads - 1 &&
         pthread_create(&pool->threads[pool->workers], attributes, WorkerMain,
                        pool) == 0) {
    ++pool->workers;
  }
  pthread_sigmask(TF_SIG_SETMASK, old_signals, NULL);
  pthread_attr_destroy(attributes);
}

static void Start(struct Pool* pool, int32_t cores) {
  int32_t threads = ThreadsWithoutLimits(cores);
  if (threads > kMaxWorkers) threads = kMaxWorkers;
  pool->started = 1;
  pool->cores = threads;
  ChooseHomes(pool, threads);
  __c11_atomic_store(&pool->state, TF_CLOSED, __ATOMIC_RELAXED);
}

static struct Pool* GetPool(void) {
  struct Pool* pool = __c11_atomic_load(&pool_page, __ATOMIC_ACQUIRE);
  if (pool != NULL) return pool;
  void* page = mmap(NULL, kPoolBytes, TF_PROT_READ_WRITE,
                    TF_MAP_PRIVATE_ANONYMOUS, -1, 0);
  if (page == (void*)-1) return NULL;
  madvise(page, kPoolBytes, TF_MADV_WIPEONFORK);
  if (__c11_atomic_compare_exchange_strong(
          &pool_page, &pool, page, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    return page;
  }
  munmap(page, kPoolBytes);
  return pool;
}

static void WaitForWorkers(struct Pool* pool) {
  uint64_t state =
      __c11_atomic_fetch_or(&pool->state, TF_CLOSED, __ATOMIC_SEQ_CST) |
      TF_CLOSED;
  for (int i = 0; i < kSpins && (state & TF_ACTIVE); ++i) {
    TF_PAUSE();
    state = __c11_atomic_load(&pool->state, __ATOMIC_ACQUIRE);
  }
  if (!(state & TF_ACTIVE)) return;
  /* For the same reason, the caller is bound to its cpu while it sleeps. */
  unsigned long mask[kMaskWords] = {0};
  const int known = sched_getaffinity(0, sizeof(mask), mask);
  if (known >= 0) BindTo(0, sched_getcpu());
  __c11_atomic_store(&pool->caller_sleeps, 1, __ATOMIC_SEQ_CST);
  for (;;) {
    state = __c11_atomic_load(&pool->state, __ATOMIC_SEQ_CST);
    if (!(state & TF_ACTIVE)) break;
    /* The low half, which is first in memory: every triple is little-endian. */
    FutexWait(&pool->state, (uint32_t)state);
  }
  __c11_atomic_store(&pool->caller_sleeps, 0, __ATOMIC_SEQ_CST);
  if (known >= 0) sched_setaffinity(0, sizeof(mask), mask);
}

int32_t tf_rt_parallel_for(tf_rt_body body, void* context, int64_t n,
                           int32_t cores) {
  if (n <= 0) return 0;
  const struct tf_rt_limits* limits = n > 1 ? tf_rt_limits() : NULL;
  if (limits != NULL && limits->threads == 1) return body(0, n, context);
  struct Pool* pool = n > 1 ? GetPool() : NULL;
  if (pool == NULL || __c11_atomic_exchange(&pool->busy, 1, __ATOMIC_ACQUIRE)) {
    return body(0, n, context);
  }
  if (!pool->started) Start(pool, cores);
  int32_t threads = pool->cores;
  if (limits != NULL && limits->threads > 0 && threads > limits->threads) {
    threads = limits->threads;
  }
  if (threads > pool->widest) Grow(pool, threads);
  /* Fewer if threads could not be created. */
  if (threads > pool->workers + 1) threads = pool->workers + 1;
  if (threads == 1) {
    __c11_atomic_store(&pool->busy, 0, __ATOMIC_RELEASE);
    return body(0, n, context);
  }
  __c11_atomic_store(&pool->spin_us, limits != NULL ? limits->spin_us : 0,
                     __ATOMIC_RELAXED);
  __c11_atomic_store(&pool->helpers, threads - 1, __ATOMIC_RELAXED);
  pool->body = body;
  pool->context = context;
  pool->n = n;
  pool->chunk = n / ((int64_t)threads * kChunksPerThread);
  if (pool->chunk < 1) pool->chunk = 1;
  __c11_atomic_store(&pool->next, 0, __ATOMIC_RELAXED);
  __c11_atomic_store(&pool->status, 0, __ATOMIC_RELAXED);
  const uint32_t generation =
      __c11_atomic_load(&pool->generation, __ATOMIC_RELAXED) + 1;
  __c11_atomic_store(&pool->state, (uint64_t)generation << 32,
                     __ATOMIC_RELEASE);
  __c11_atomic_store(&pool->generation, generation, __ATOMIC_SEQ_CST);
  if (__c11_atomic_load(&pool->sleepers, __ATOMIC_SEQ_CST) != 0) {
    LeaveHomesAlone(pool);
    FutexWake(&pool->generation, threads - 1);
  }
  TakeChunks(pool);
  WaitForWorkers(pool);
  const int32_t status = __c11_atomic_load(&pool->status, __ATOMIC_RELAXED);
  __c11_atomic_store(&pool->busy, 0, __ATOMIC_RELEASE);
  return status;
}

void tf_rt_parallel_shutdown(void) {
  struct Pool* pool = __c11_atomic_load(&pool_page, __ATOMIC_ACQUIRE);
  if (pool == NULL) return;
  if (pool->started) {
    __c11_atomic_store(&pool->stop, 1, __ATOMIC_RELEASE);
    __c11_atomic_fetch_add(&pool->generation, 1, __ATOMIC_SEQ_CST);
    FutexWakeAll(&pool->generation);
    for (int32_t i = 0; i < pool->workers; ++i) {
      pthread_join(pool->threads[i], NULL);
    }
  }
  __c11_atomic_store(&pool_page, NULL, __ATOMIC_RELEASE);
  munmap(pool, kPoolBytes);
}
