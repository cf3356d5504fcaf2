/* Simulated clusters: blocks that run together and read each other's shared
 * memory. Between two barriers of the cluster, each block runs as far as it can
 * before the next one does:
 *
 *   cluster:  epoch | cluster barrier | epoch | ... all blocks have ended
 *   epoch:    the blocks in the epoch's order, each with its own intervals
 *
 * The order is as that of threads in an interval (sim.c). Only barriers of the
 * cluster order a read of another block's memory, so that in an epoch a read
 * and a write of one byte race, whichever is simulated first. */
#include "compiler/runtime/sim_state.h"

/* Addresses ---------------------------------------------------------------- */

void tf_rt_sim_cluster_barrier(const struct tf_sim_thread* thread,
                               int32_t site) {
  struct Fiber* fiber = FiberOf(thread);
  fiber->state = kAtClusterBarrier;
  fiber->site = site;
  --fiber->launch->ready;
  Yield(fiber);
}

/* Whether all of the bytes are in the block's shared memory. */
static int32_t HasBytes(const struct Launch* launch, const char* address,
                        uint32_t bytes) {
  const uint32_t size = launch->kernel->shared_bytes;
  const uint64_t at = (uintptr_t)address - (uintptr_t)launch->shared;
  return at <= size && bytes <= size - at;
}

void* tf_rt_sim_cluster_address(const struct tf_sim_thread* thread,
                                const void* shared, uint32_t rank) {
  struct Fiber* fiber = FiberOf(thread);
  struct Launch* launch = fiber->launch;
  if (rank >= launch->kernel->cluster) {
    launch->status = tf_rt_gpu_fail(
        TF_GPU_FAULT,
        "%s, block (%u,%u,%u), thread %u: an address in block %u of a cluster"
        " of %u",
        TF_PLACE(launch), fiber->number, rank, launch->kernel->cluster);
    Abandon(fiber);
  }
  if (!HasBytes(launch, shared, 1)) {
    launch->status = tf_rt_gpu_fail(
        TF_GPU_FAULT,
        "%s, block (%u,%u,%u), thread %u: the address of other blocks' memory"
        " for one outside of its block's",
        TF_PLACE(launch), fiber->number);
    Abandon(fiber);
  }
  if (launch->cluster == NULL) return (void*)(uintptr_t)shared;
  return launch->cluster->blocks[rank].shared +
         ((const char*)shared - launch->shared);
}

/* Accesses ----------------------------------------------------------------- */

/* A race between a thread of the block that has the byte and a reader of
 * another one. Fails the launch of `fails`, one of the two. */
static void FailRace(struct Launch* fails, const struct Launch* owner,
                     uint32_t byte, uint32_t owners_thread,
                     const struct Reader* reader, const char* how) {
  const struct Launch* other = &owner->cluster->blocks[reader->rank];
  fails->status = tf_rt_gpu_fail(
      TF_GPU_FAULT,
      "race on shared memory of %s, block (%u,%u,%u), at byte %u between"
      " its thread %u and thread %u of block (%u,%u,%u)%s",
      TF_PLACE(owner), byte, owners_thread, reader->thread, TF_BLOCK(other),
      how);
}

/* A read of the block's memory at a time at which it need not be there. */
static void FailAbsent(struct Launch* fails, const struct Launch* owner,
                       const struct Reader* reader, const char* what) {
  const struct Launch* other = &owner->cluster->blocks[reader->rank];
  fails->status = tf_rt_gpu_fail(
      TF_GPU_FAULT,
      "%s, block (%u,%u,%u), thread %u reads shared memory of another block:"
      " block %u of the cluster %s",
      TF_PLACE(other), reader->thread, owner->fibers[0].thread.rank, what);
}

static const char kMayHaveEnded[] = "may have ended";

int32_t tf_rt_sim_cluster_write(struct Fiber* fiber, const char* address,
                                uint32_t bytes) {
  struct Launch* launch = fiber->launch;
  const uint32_t first = (uint32_t)(address - launch->shared);
  const uint32_t epoch = launch->cluster->epoch;
  for (uint32_t byte = first; byte < first + bytes; ++byte) {
    struct ClusterShadow* shadow = &launch->cluster_shadow[byte];
    if (shadow->reader.epoch == epoch) {
      FailRace(launch, launch, byte, fiber->number, &shadow->reader,
               " (the former writes)");
      return 0;
    }
    shadow->written = epoch;
    shadow->writer = (uint16_t)fiber->number;
  }
  return 1;
}

void tf_rt_sim_cluster_landing(struct Launch* launch, const char* address,
                               uint32_t bytes) {
  struct ClusterShadow* shadow =
      launch->cluster_shadow + (address - launch->shared);
  for (uint32_t i = 0; i < bytes; ++i) {
    shadow[i].written = launch->cluster->epoch;
  }
}

/* The block of the fiber's cluster that has all of the bytes. Null: none; the
 * launch has failed. */
static struct Launch* FindOwner(struct Fiber* fiber, const char* address,
                                uint32_t bytes) {
  struct Launch* launch = fiber->launch;
  struct Cluster* cluster = launch->cluster;
  for (uint32_t rank = 0; rank < launch->kernel->cluster; ++rank) {
    struct Launch* block = cluster == NULL ? launch : &cluster->blocks[rank];
    if (HasBytes(block, address, bytes)) return block;
  }
  launch->status = tf_rt_gpu_fail(
      TF_GPU_FAULT,
      "%s, block (%u,%u,%u), thread %u: a load outside of the shared memory of"
      " the cluster's blocks",
      TF_PLACE(launch), fiber->number);
  return NULL;
}

/* Notes that `reader`, whose block is `launch`, reads a byte of the memory of
 * `owner`. 0 if the launch failed. */
static int32_t NoteRead(struct Launch* launch, struct Launch* owner,
                        uint32_t byte, struct Reader reader) {
  struct ClusterShadow* shadow = &owner->cluster_shadow[byte];
  if ((owner->shadow != NULL && owner->shadow[byte].written == kInFlight) ||
      (owner->boxes != NULL &&
       tf_rt_sim_expects_box(owner, owner->shared + byte, 1))) {
    FailRace(launch, owner, byte, shadow->writer, &reader,
             " (a copy of the former has not landed)");
    return 0;
  }
  if (shadow->written == reader.epoch) {
    FailRace(launch, owner, byte, shadow->writer, &reader,
             " (the former writes)");
    return 0;
  }
  shadow->reader = owner->last_reader = reader;
  return 1;
}

void tf_rt_sim_cluster_read(const struct tf_sim_thread* thread,
                            const void* address, uint32_t bytes) {
  struct Fiber* fiber = FiberOf(thread);
  struct Launch* launch = fiber->launch;
  struct Launch* owner = FindOwner(fiber, address, bytes);
  if (owner == NULL) Abandon(fiber);
  if (owner == launch) {
    tf_rt_sim_access(thread, address, bytes, /*is_write=*/0);
    return;
  }
  if (fiber->again_bytes > 0) tf_rt_sim_check_again(fiber);
  const struct Reader reader = {launch->cluster->epoch, (uint16_t)fiber->number,
                                (uint16_t)thread->rank};
  if (launch->status == 0 && owner->fibers[0].state == kEnded) {
    FailAbsent(launch, owner, &reader, kMayHaveEnded);
  }
  const uint32_t first = (uint32_t)((const char*)address - owner->shared);
  for (uint32_t i = 0; i < bytes && launch->status == 0; ++i) {
    NoteRead(launch, owner, first + i, reader);
  }
  if (launch->status != 0) Abandon(fiber);
}

/* Blocks ------------------------------------------------------------------- */

/* After an epoch: whether all blocks wait at one barrier of the cluster (1),
 * have ended (0), or the launch failed (-1). */
static int32_t EndEpoch(struct Cluster* cluster, int32_t is_first) {
  const struct Fiber* a = &cluster->blocks[0].fibers[0];
  for (uint32_t rank = 0; rank < cluster->size; ++rank) {
    struct Launch* block = &cluster->blocks[rank];
    const struct Fiber* b = &block->fibers[0];
    if (is_first && block->last_reader.epoch == cluster->epoch) {
      FailAbsent(block, block, &block->last_reader, "may not have started");
      return -1;
    }
    if (b->state == a->state && (b->state == kEnded || b->site == a->site)) {
      continue;
    }
    char does[2][40] = {"has ended", "has ended"};
    for (int i = 0; i < 2; ++i) {
      const struct Fiber* fiber = i == 0 ? a : b;
      if (fiber->state == kEnded) continue;
      snprintf(does[i], sizeof(does[i]), "waits at cluster barrier %d",
               fiber->site);
    }
    block->status = tf_rt_gpu_fail(
        TF_GPU_FAULT,
        "cluster barrier divergence in %s: block (%u,%u,%u) %s, block"
        " (%u,%u,%u) %s",
        TF_PLACE(a->launch), does[0], TF_BLOCK(block), does[1]);
    return -1;
  }
  return a->state != kEnded;
}

/* Runs each block to its end or its next barrier of the cluster. 0 if the
 * launch failed. */
static int32_t RunEpoch(struct Cluster* cluster, uint32_t number) {
  uint16_t order[TF_GPU_MAX_CLUSTER];
  tf_rt_sim_choose_order(&cluster->blocks[0], number, cluster->size, order);
  for (uint32_t i = 0; i < cluster->size; ++i) {
    struct Launch* block = &cluster->blocks[order[i]];
    tf_rt_sim_run_epoch(block);
    if (block->status == 0 && block->fibers[0].state == kEnded &&
        block->last_reader.epoch == cluster->epoch) {
      FailAbsent(block, block, &block->last_reader, kMayHaveEnded);
    }
    if (block->status != 0) return 0;
  }
  return 1;
}

static int32_t StatusOf(const struct Cluster* cluster) {
  int32_t status = 0;
  for (uint32_t rank = 0; rank < cluster->size && status == 0; ++rank) {
    status = cluster->blocks[rank].status;
  }
  return status;
}

int32_t tf_rt_sim_run_cluster(struct Cluster* cluster, const uint32_t* block) {
  for (uint32_t rank = 0; rank < cluster->size; ++rank) {
    tf_rt_sim_begin_block(&cluster->blocks[rank], block, rank);
  }
  for (uint32_t number = 0;; ++number) {
    ++cluster->epoch;
    if (!RunEpoch(cluster, number) || EndEpoch(cluster, number == 0) <= 0) {
      break;
    }
  }
  /* A block that fails is the only one that does. */
  for (uint32_t rank = 0; rank < cluster->size; ++rank) {
    cluster->blocks[rank].status = StatusOf(cluster);
    tf_rt_sim_end_block(&cluster->blocks[rank]);
  }
  return StatusOf(cluster);
}
