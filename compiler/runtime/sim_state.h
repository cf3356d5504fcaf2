/* The state of a simulated launch, for sim.c, sim_cluster.c and
 * sim_warpgroup.c. */
#ifndef TILEFARM_COMPILER_RUNTIME_SIM_STATE_H_
#define TILEFARM_COMPILER_RUNTIME_SIM_STATE_H_

#include "compiler/runtime/gpu.h"
#include "compiler/runtime/platform.h"

enum State { kReady, kAtBarrier, kAtClusterBarrier, kAtShuffle, kEnded };

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

static const uint32_t kInFlight = UINT32_MAX; /* of Shadow::written */

/* The accesses to one byte of shared memory. */
struct Shadow {
  /* The last intervals, counted over all blocks that use this memory; 0 is
   * none. */
  uint32_t written, read;
  /* In those intervals: the writer, and two readers, which are different if
   * several threads have read. */
  uint16_t writer, reader, other_reader;
};

/* Threads that wait for each other. */
struct Meeting {
  uint32_t waiting, times; /* how often all have met */
};

/* A thread of another block that has read shared memory. */
struct Reader {
  uint32_t epoch; /* 0 is none */
  uint16_t thread, rank;
};

/* The accesses to one byte of shared memory in epochs of a cluster. */
struct ClusterShadow {
  struct Reader reader; /* the last one */
  uint32_t written;     /* the last epoch; 0 is none */
  uint16_t writer;      /* a thread of the block that has the memory */
};

/* Blocks that run together. */
struct Cluster {
  struct Launch* blocks;
  uint32_t size;
  /* The time between two barriers of the cluster, counted over all clusters of
   * a launch. */
  uint32_t epoch;
};

/* The block of a launch that runs, or one block of the cluster that runs. */
struct Launch {
  const struct tf_gpu_kernel* kernel;
  void* const* buffers;
  struct Fiber* fibers;
  uint32_t threads;
  char* stacks;            /* of the fibers */
  struct Cluster* cluster; /* null if blocks run alone; then the next too */
  struct ClusterShadow* cluster_shadow;
  struct Reader last_reader; /* of any byte */
  char* shared;
  struct Shadow* shadow;             /* null until it is needed */
  uint32_t interval, first_interval; /* now, and when the block began */
  uint32_t ready;                    /* the number of fibers in this state */
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

/* The arguments for "block (%u,%u,%u)". */
#define TF_BLOCK(launch)                                            \
  (launch)->fibers[0].thread.block[0] * (launch)->kernel->cluster + \
      (launch)->fibers[0].thread.rank,                              \
      (launch)->fibers[0].thread.block[1], (launch)->fibers[0].thread.block[2]
/* The arguments for "%s, block (%u,%u,%u)". */
#define TF_PLACE(launch) (launch)->kernel->name, TF_BLOCK(launch)

static inline struct Fiber* FiberOf(const struct tf_sim_thread* thread) {
  return (struct Fiber*)(uintptr_t)thread;
}

/* sim.c */
void tf_rt_sim_switch(void** from, void* to, void* argument);
uint64_t tf_rt_sim_random(struct Launch* launch);
/* The order in which `count` things run the time `number`. */
void tf_rt_sim_choose_order(struct Launch* launch, uint32_t number,
                            uint32_t count, uint16_t* order);
/* Runs a block: begins, and ends it after its last epoch or a failure. */
void tf_rt_sim_begin_block(struct Launch* launch, const uint32_t* block,
                           uint32_t rank);
/* Runs the block until all of its threads wait at a barrier of the cluster or
 * have ended, which the state of the first tells, or until the launch fails. */
void tf_rt_sim_run_epoch(struct Launch* launch);
void tf_rt_sim_end_block(struct Launch* launch);

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

/* sim_cluster.c: */

/* The status. */
int32_t tf_rt_sim_run_cluster(struct Cluster* cluster, const uint32_t* block);
/* Notes a write to the memory of the fiber's own block, which is in a cluster.
 * 0 if the launch failed. */
int32_t tf_rt_sim_cluster_write(struct Fiber* fiber, const char* address,
                                uint32_t bytes);
/* Notes that a copy has landed whose begin was noted as a write. */
void tf_rt_sim_cluster_landing(struct Launch* launch, const char* address,
                               uint32_t bytes);

/* sim_warpgroup.c: */

/* Whether one of the boxes lands on some of these bytes. */
int32_t tf_rt_sim_expects_box(const struct Launch* launch, const char* address,
                              uint32_t bytes);

/* Lands one of the boxes, if there are any. */
void tf_rt_sim_land_box(struct Launch* launch);
/* Forgets boxes that have not landed and products that were not waited for. */
void tf_rt_sim_drop_boxes(struct Launch* launch);
/* Whether the thread has waited for all of its stores; forgets the others. */
int32_t tf_rt_sim_drop_stores(struct Fiber* fiber);
void tf_rt_sim_drop_products(struct Fiber* fiber);

#endif /* TILEFARM_COMPILER_RUNTIME_SIM_STATE_H_ */
