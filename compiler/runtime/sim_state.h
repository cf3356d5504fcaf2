/* The state of a simulated launch, for sim.c and sim_warpgroup.c. */
#ifndef TILEFARM_COMPILER_RUNTIME_SIM_STATE_H_
#define TILEFARM_COMPILER_RUNTIME_SIM_STATE_H_

#include "compiler/runtime/gpu.h"
#include "compiler/runtime/platform.h"

enum State { kReady, kAtBarrier, kAtShuffle, kEnded };

struct Copy {
  char* to;
  const char* from;
  uint32_t bytes, valid_bytes;
  uint32_t group;
};

struct MatrixCall; /* sim.c */

struct Fiber {
  struct tf_sim_thread thread; /* what the kernel sees; must be first */
  struct Launch* launch;
  void* stack_pointer; /* while the fiber does not run */
  uint32_t number;     /* linear, in its block */
  enum State state;
  int32_t site;              /* where it waits */
  uint32_t value, source;    /* of a shuffle; `value` is also its result */
  struct MatrixCall* matrix; /* waits for it instead of a shuffle; or null */
  uint32_t group;            /* the number of committed groups */
  /* Copies that have not landed: [first, last). */
  struct Copy* copies;
  uint32_t first, last, capacity;
  struct Products* products; /* sim_warpgroup.c; null until there are any */
  const uint32_t* fragment;  /* of the product that the warp computes */
  struct Box* stores;        /* of boxes, oldest first */
  uint32_t store_group;      /* the number of committed groups of them */
  /* What another thread wrote in this interval where this one writes next: it
   * must write the same. Of `again_bytes`, 0 is none. */
  const char* again;
  uint32_t again_bytes;
  uint32_t again_other; /* that thread */
  char again_was[64];
};

/* The accesses to one byte of shared memory. */
struct Shadow {
  /* The last intervals, counted over all blocks of a launch; 0 is none. */
  uint32_t written, read;
  /* In those intervals: the writer, and two readers, which are different if
   * several threads have read. */
  uint16_t writer, reader, other_reader;
};

/* Threads that wait for each other. */
struct Meeting {
  uint32_t waiting, times; /* how often all have met */
};

struct Launch {
  const struct tf_gpu_kernel* kernel;
  void* const* buffers;
  struct Fiber* fibers;
  uint32_t threads;
  char* shared;
  struct Shadow* shadow; /* null until it is needed */
  uint32_t interval;
  uint32_t ready; /* the number of fibers in this state */
  /* Fibers that are ready, but only to look whether others have arrived; and
   * what changes whenever one of them need not look again. */
  uint32_t looking;
  uint64_t progress;
  /* Of each warpgroup and each warp. */
  struct Meeting groups[TF_GPU_MAX_THREADS / 128];
  struct Meeting warps[TF_GPU_MAX_THREADS / TF_GPU_WARP_LANES];
  struct Box* boxes; /* copies that have not landed, oldest first */
  int32_t status;
  void* stack_pointer; /* of the scheduler, while a fiber runs */
  int32_t seeded;
  uint64_t random;
  uint16_t order[TF_GPU_MAX_THREADS];
  /* The lanes of each warp that wait at a shuffle or a matrix instruction. */
  uint32_t arrived[TF_GPU_MAX_THREADS / TF_GPU_WARP_LANES];
};

/* The arguments for "%s, block (%u,%u,%u)". */
#define TF_PLACE(launch)                                       \
  (launch)->kernel->name, (launch)->fibers[0].thread.block[0], \
      (launch)->fibers[0].thread.block[1], (launch)->fibers[0].thread.block[2]

static inline struct Fiber* FiberOf(const struct tf_sim_thread* thread) {
  return (struct Fiber*)(uintptr_t)thread;
}

/* sim.c */
void tf_rt_sim_switch(void** from, void* to, void* argument);
uint64_t tf_rt_sim_random(struct Launch* launch);

/* Fails the launch if the last store, of which `again` tells, changed what was
 * there. To be called before any other thread runs. */
void tf_rt_sim_check_again(struct Fiber* fiber);

static inline void Yield(struct Fiber* fiber) {
  if (fiber->again_bytes > 0) tf_rt_sim_check_again(fiber);
  tf_rt_sim_switch(&fiber->stack_pointer, fiber->launch->stack_pointer, NULL);
}

/* Ends the fiber that runs; its launch failed. */
static inline void Abandon(struct Fiber* fiber) {
  for (;;) Yield(fiber);
}

/* sim_warpgroup.c: */

/* Lands one of the boxes, if there are any. */
void tf_rt_sim_land_box(struct Launch* launch);
/* Forgets boxes that have not landed and products that were not waited for. */
void tf_rt_sim_drop_boxes(struct Launch* launch);
/* Whether the thread has waited for all of its stores; forgets the others. */
int32_t tf_rt_sim_drop_stores(struct Fiber* fiber);
void tf_rt_sim_drop_products(struct Fiber* fiber);

#endif /* TILEFARM_COMPILER_RUNTIME_SIM_STATE_H_ */
