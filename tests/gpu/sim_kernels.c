/* Kernels as the emitter makes them for simulated targets, for sim_test.cc. */
#include "compiler/runtime/gpu.h"

#define KERNEL(name) \
  void name(const struct tf_sim_thread* thread, void* const* buffers)
#define X (thread->thread[0])

/* The order in which threads run: buffer 0 has a counter, then the thread
 * numbers in the order of two intervals. */
KERNEL(order) {
  uint32_t* out = buffers[0];
  out[1 + out[0]++] = X;
  tf_rt_sim_barrier(thread, 1);
  out[1 + out[0]++] = X;
}

/* out[block, x] = in[block, last - x], through shared memory. */
KERNEL(reverse) {
  const float* in = buffers[0];
  float* out = buffers[1];
  float* shared = thread->shared;
  const uint32_t* bytes = buffers[2]; /* the block's number of threads */
  const uint32_t first = thread->block[0] * bytes[0];
  shared[X] = in[first + X];
  tf_rt_sim_barrier(thread, 1);
  out[first + X] = shared[bytes[0] - 1 - X];
}

/* What shared memory and a workspace have at first; writes both. */
KERNEL(initial) {
  uint32_t* out = buffers[0];
  uint32_t* workspace = buffers[1];
  uint32_t* shared = thread->shared;
  out[2 * thread->block[0]] = shared[0];
  out[2 * thread->block[0] + 1] = workspace[thread->block[0]];
  shared[0] = 1;
  workspace[thread->block[0]] = 1;
}

/* Thread 3 does not come to the barrier. */
KERNEL(ends_early) {
  (void)buffers;
  if (thread->block[1] == 1 && X == 3) return;
  tf_rt_sim_barrier(thread, 1);
}

KERNEL(two_barriers) {
  (void)buffers;
  tf_rt_sim_barrier(thread, X < 8 ? 1 : 2);
}

KERNEL(coordinates) {
  uint32_t* out = buffers[0];
  const uint32_t block =
      (thread->block[2] * 3 + thread->block[1]) * 2 + thread->block[0];
  const uint32_t number =
      (thread->thread[2] * 4 + thread->thread[1]) * 5 + thread->thread[0];
  out[block * 120 + number] += block * 1000 + number;
}

/* A sum over each warp by a butterfly of shuffles. */
KERNEL(warp_sum) {
  const uint32_t* in = buffers[0];
  uint32_t* out = buffers[1];
  uint32_t sum = in[X];
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    sum += tf_rt_sim_shuffle(thread, sum, X % 32 ^ mask, 32, 7);
  }
  out[X] = sum;
}

/* The upper half of each warp is not there. */
KERNEL(half_warp_shuffles) {
  uint32_t* out = buffers[0];
  if (X % 32 < 16) out[X] = tf_rt_sim_shuffle(thread, X, 0, 32, 1);
}

KERNEL(two_shuffles) {
  uint32_t* out = buffers[0];
  out[X] = X < 5 ? tf_rt_sim_shuffle(thread, X, 0, 32, 1)
                 : tf_rt_sim_shuffle(thread, X, 0, 32, 2);
}

/* Quads of lanes exchange, some of which another time; or with other quads. */
KERNEL(quads) {
  const uint32_t* in = buffers[0];
  uint32_t* out = buffers[1];
  const uint32_t* distance = buffers[2];
  for (uint32_t i = 0; i < 1 + X / 4 % 3; ++i) {
    out[X] = tf_rt_sim_shuffle(thread, in[X], X % 32 ^ distance[0], 4, 1);
  }
}

KERNEL(missing_lane) {
  uint32_t* out = buffers[0];
  out[X] = tf_rt_sim_shuffle(thread, X, 31, 32, 1);
}

/* Two groups of copies: what the target has after the copies, after a wait for
 * the first, and after a wait for all. The source changes before the waits. */
KERNEL(copies) {
  uint32_t* in = buffers[0];
  uint32_t* out = buffers[1];
  uint32_t* shared = thread->shared;
  tf_rt_sim_copy_async(thread, shared, in, 16, 16);
  tf_rt_sim_commit(thread);
  tf_rt_sim_copy_async(thread, shared + 4, in + 4, 16, 8);
  tf_rt_sim_commit(thread);
  in[0] = 100;
  for (int i = 0; i < 8; ++i) out[i] = shared[i];
  tf_rt_sim_wait(thread, 1);
  for (int i = 0; i < 8; ++i) out[8 + i] = shared[i];
  tf_rt_sim_wait(thread, 0);
  for (int i = 0; i < 8; ++i) out[16 + i] = shared[i];
}

/* A pipeline of three stages, each thread with 4 bytes of a stage. */
KERNEL(pipeline) {
  const uint32_t* in = buffers[0];
  uint32_t* out = buffers[1];
  uint32_t* shared = thread->shared;
  enum { kThreads = 64, kStages = 3, kSteps = 50 };
  for (uint32_t i = 0; i < kStages - 1; ++i) {
    tf_rt_sim_copy_async(thread, shared + i * kThreads + X,
                         in + i * kThreads + X, 4, 4);
    tf_rt_sim_commit(thread);
  }
  uint32_t sum = 0;
  for (uint32_t i = 0; i < kSteps; ++i) {
    tf_rt_sim_wait(thread, kStages - 2);
    tf_rt_sim_barrier(thread, 1);
    const uint32_t next = i + kStages - 1;
    if (next < kSteps) {
      tf_rt_sim_copy_async(thread, shared + next % kStages * kThreads + X,
                           in + next * kThreads + X, 4, 4);
    }
    tf_rt_sim_commit(thread);
    const uint32_t* from = shared + i % kStages * kThreads + X / 2;
    tf_rt_sim_access(thread, from, 4, 0);
    sum += *from;
  }
  out[X] = sum;
}

/* Reads the stage before its copy was waited for. */
KERNEL(early_read) {
  uint32_t* shared = thread->shared;
  uint32_t* out = buffers[1];
  if (X == 1) {
    tf_rt_sim_copy_async(thread, shared, buffers[0], 16, 16);
    tf_rt_sim_commit(thread);
  }
  tf_rt_sim_barrier(thread, 1);
  if (X == 2) {
    tf_rt_sim_access(thread, shared + 2, 4, 0);
    out[0] = shared[2];
  }
}

/* Thread x + 1's number without a barrier. */
KERNEL(races) {
  uint32_t* out = buffers[0];
  uint32_t* shared = thread->shared;
  tf_rt_sim_access(thread, shared + X, 4, 1);
  shared[X] = X;
  const uint32_t next = (X + 1) % 8;
  tf_rt_sim_access(thread, shared + next, 4, 0);
  out[X] = shared[next];
}

/* Races in the second interval: a write after another thread's read. */
KERNEL(late_race) {
  (void)buffers;
  uint32_t* shared = thread->shared;
  tf_rt_sim_access(thread, shared + X, 4, 1);
  tf_rt_sim_barrier(thread, 1);
  tf_rt_sim_access(thread, shared, 4, 0);
  if (X == 4) tf_rt_sim_access(thread, shared, 4, 1);
}

/* The right one: all read what one thread has written. */
KERNEL(no_race) {
  uint32_t* out = buffers[0];
  uint32_t* shared = thread->shared;
  for (uint32_t i = 0; i < 8; ++i) {
    if (X == i) {
      tf_rt_sim_access(thread, shared, 4, 0);
      tf_rt_sim_access(thread, shared, 4, 1);
      shared[0] = i;
    }
    tf_rt_sim_barrier(thread, 1);
    tf_rt_sim_access(thread, shared, 4, 0);
    out[X] = shared[0];
    tf_rt_sim_barrier(thread, 2);
  }
}

/* All threads store their value to one element and read it after a barrier. */
KERNEL(same_stores) {
  const uint32_t* in = buffers[0];
  uint32_t* out = buffers[1];
  uint32_t* shared = thread->shared;
  tf_rt_sim_access(thread, shared, 4, 1);
  shared[0] = in[X];
  tf_rt_sim_barrier(thread, 1);
  tf_rt_sim_access(thread, shared, 4, 0);
  out[X] = shared[0];
}

/* The last statement of a kernel. */
KERNEL(last_stores) {
  const uint32_t* in = buffers[0];
  uint32_t* shared = thread->shared;
  tf_rt_sim_access(thread, shared, 4, 1);
  shared[0] = in[X];
}

KERNEL(out_of_bounds) {
  (void)buffers;
  tf_rt_sim_access(thread, (char*)thread->shared + 62 + X, 2, 0);
}

/* The number of the block along x. */
#define BLOCK(size) (thread->block[0] * (size) + thread->rank)

/* Thread x's load from block `rank` of what is there at `shared`. */
static uint32_t Load(const struct tf_sim_thread* thread, const uint32_t* shared,
                     uint32_t rank) {
  const uint32_t* address = tf_rt_sim_cluster_address(thread, shared, rank);
  tf_rt_sim_cluster_read(thread, address, 4);
  return *address;
}

static void Store(const struct tf_sim_thread* thread, uint32_t value) {
  uint32_t* shared = (uint32_t*)thread->shared + X;
  tf_rt_sim_access(thread, shared, 4, 1);
  *shared = value;
}

/* out[block, x] = sum over the blocks of the cluster of in[block, last - x], of
 * clusters and blocks of the given sizes, with some of the barriers. */
static inline void AddBlocks(const struct tf_sim_thread* thread,
                             void* const* buffers, int32_t first,
                             int32_t last) {
  const uint32_t* in = buffers[0];
  uint32_t* out = buffers[1];
  const uint32_t* sizes = buffers[2];
  const uint32_t* mirrored =
      (const uint32_t*)thread->shared + (sizes[1] - 1 - X);
  tf_rt_sim_cluster_barrier(thread, 1);
  for (int32_t i = 0; i < 3; ++i) {
    Store(thread, in[BLOCK(sizes[0]) * sizes[1] + X] + (uint32_t)i);
    if (first) tf_rt_sim_cluster_barrier(thread, 2);
    uint32_t sum = 0;
    for (uint32_t rank = 0; rank < sizes[0]; ++rank) {
      sum += Load(thread, mirrored, rank);
    }
    out[BLOCK(sizes[0]) * sizes[1] + X] = sum;
    if (last || i < 2) tf_rt_sim_cluster_barrier(thread, 3);
  }
}

KERNEL(cluster_sums) { AddBlocks(thread, buffers, 1, 1); }
KERNEL(cluster_without_first) { AddBlocks(thread, buffers, 0, 1); }
KERNEL(cluster_without_last) { AddBlocks(thread, buffers, 1, 0); }

/* The others load what block 1 writes in the same epoch. */
KERNEL(cluster_late_write) {
  uint32_t* out = buffers[0];
  Store(thread, 1);
  tf_rt_sim_cluster_barrier(thread, 1);
  if (thread->rank == 1 && X == 2) Store(thread, 2);
  if (thread->rank != 1) {
    out[X] = Load(thread, (const uint32_t*)thread->shared + 2, 1);
  }
  tf_rt_sim_cluster_barrier(thread, 2);
}

/* Loads from a block without a barrier after its start. */
KERNEL(cluster_early_load) {
  uint32_t* out = buffers[0];
  out[X] = Load(thread, thread->shared, thread->rank ^ 1);
  tf_rt_sim_cluster_barrier(thread, 1);
}

KERNEL(cluster_end) {
  (void)buffers;
  tf_rt_sim_cluster_barrier(thread, 1);
  if (thread->rank == 2) return;
  tf_rt_sim_cluster_barrier(thread, 2);
}

KERNEL(cluster_two_barriers) {
  (void)buffers;
  tf_rt_sim_cluster_barrier(thread, thread->rank < 3 ? 1 : 2);
}

KERNEL(cluster_mixed_barriers) {
  (void)buffers;
  if (X == 1) tf_rt_sim_barrier(thread, 1);
  if (X != 1) tf_rt_sim_cluster_barrier(thread, 2);
}

/* Addresses in a block and at an offset. */
KERNEL(cluster_address) {
  const uint32_t* at = buffers[0]; /* rank, offset; then another offset */
  tf_rt_sim_cluster_barrier(thread, 1);
  const char* address = tf_rt_sim_cluster_address(
      thread, (const char*)thread->shared + at[1], at[0]);
  tf_rt_sim_cluster_read(thread, address + at[2], 4);
  tf_rt_sim_cluster_barrier(thread, 2);
}

/* Races in the thread's own block. */
KERNEL(cluster_own_race) {
  uint32_t* out = buffers[0];
  Store(thread, X);
  const uint32_t* next = (const uint32_t*)thread->shared + (X + 1) % 8;
  out[X] = Load(thread, next, thread->rank);
}

/* Block 0 loads what has not landed, or landed in this epoch. */
KERNEL(cluster_copy) {
  const uint32_t* in = buffers[0];
  uint32_t* out = buffers[1];
  const uint32_t* epoch = buffers[2]; /* of the wait */
  for (uint32_t i = 0; i < 3; ++i) {
    if (thread->rank == 1 && i == 0) {
      tf_rt_sim_copy_async(thread, thread->shared, in, 16, 16);
    }
    if (thread->rank == 1 && i == epoch[0]) tf_rt_sim_wait(thread, -1);
    if (thread->rank == 0 && i == 2) out[0] = Load(thread, thread->shared, 1);
    tf_rt_sim_cluster_barrier(thread, 1);
  }
}

/* Likewise of a box of 128 bytes. */
KERNEL(cluster_box) {
  uint32_t* out = buffers[1];
  const uint32_t* epoch = buffers[2];
  void* barrier = (char*)thread->shared + 1024;
  for (uint32_t i = 0; i < 3; ++i) {
    if (thread->rank == 1 && i == 0) {
      tf_rt_sim_barrier_init(thread, barrier, 1);
      tf_rt_sim_barrier_expect(thread, barrier, 128);
      tf_rt_sim_copy_box(thread, thread->shared, buffers[3], barrier, 0, 0, 0,
                         0, 0);
    }
    if (thread->rank == 1 && i == epoch[0]) {
      tf_rt_sim_barrier_wait(thread, barrier, 0);
    }
    if (thread->rank == 0 && i == 1) out[0] = Load(thread, thread->shared, 1);
    tf_rt_sim_cluster_barrier(thread, 1);
  }
}

KERNEL(many_barriers) {
  uint32_t* out = buffers[0];
  for (int i = 0; i < 100; ++i) tf_rt_sim_barrier(thread, 1);
  ++out[thread->block[0]];
}

/* Uses 48 KB of stack and vector registers across a barrier. */
KERNEL(deep_stack) {
  float* out = buffers[0];
  volatile float large[12 << 10];
  for (int i = 0; i < 12 << 10; ++i) large[i] = (float)(X + (uint32_t)i % 7);
  tf_rt_sim_barrier(thread, 1);
  float sum = 0;
  for (int i = 0; i < 12 << 10; ++i) sum += large[i];
  out[X] = sum;
}
