/* The maximum number of threads of a kernel. */
#ifndef TILEFARM_COMPILER_RUNTIME_THREADS_H_
#define TILEFARM_COMPILER_RUNTIME_THREADS_H_

#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"

/* TILEFARM_NUM_THREADS if it is a positive number, otherwise 0. */
static inline int32_t ThreadsWanted(void) {
  const char* text = getenv("TILEFARM_NUM_THREADS");
  int32_t value = 0;
  if (text == NULL) return 0;
  for (; *text >= '0' && *text <= '9' && value < 100000; ++text) {
    value = value * 10 + (*text - '0');
  }
  return *text == 0 ? value : 0;
}

static inline int32_t CpusAllowed(void) {
  unsigned long mask[128] = {0};
  int32_t count = 0;
  if (sched_getaffinity(0, sizeof(mask), mask) != 0) return 1;
  for (int i = 0; i < 128; ++i) {
    for (unsigned long word = mask[i]; word != 0; word &= word - 1) ++count;
  }
  return count > 0 ? count : 1;
}

/* min(cores, affinity mask, TILEFARM_NUM_THREADS). */
static inline int32_t ThreadsWithoutLimits(int32_t cores) {
  int32_t threads = CpusAllowed();
  const int32_t wanted = ThreadsWanted();
  if (threads > cores) threads = cores;
  if (wanted > 0 && threads > wanted) threads = wanted;
  return threads;
}

/* The same, and at most what the calling thread's limits permit. */
static inline int32_t ThreadsFor(int32_t cores) {
  const struct tf_rt_limits* limits = tf_rt_limits();
  if (limits != NULL && limits->threads > 0 && cores > limits->threads) {
    cores = limits->threads;
  }
  return ThreadsWithoutLimits(cores);
}

#endif /* TILEFARM_COMPILER_RUNTIME_THREADS_H_ */
