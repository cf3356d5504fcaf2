/* Simulated GPU: runs kernels block by block in the calling thread, or cluster
 * by cluster (sim_cluster.c). The threads of a block are fibers, each with a
 * stack of its own. A fiber runs until it waits, so that every order of threads
 * between two barriers can be chosen:
 *
 *   block:     interval | barrier | interval | barrier | ... all have ended
 *   interval:  every fiber that can run does so, in the interval's order,
 *              again and again while shuffles let some go on
 *
 * The order is ascending in even intervals and descending in odd ones, or with
 * TILEFARM_SIM_SEED=n a pseudo-random one for each interval. Memory that the
 * kernel must write first (shared memory, workspaces, targets of copies that
 * have not landed) has bytes 0xff, NaN in every float type. */
#include "compiler/runtime/sim_state.h"

enum {
  /* Local buffers of one thread (lower/split_kernels.cc), and 64 KB for the
   * rest. */
  kStackBytes = (128 + 64) << 10,
#if defined(__aarch64__)
  kGuardBytes = 64 << 10, /* the largest page */
#else
  kGuardBytes = 4 << 10,
#endif
  kSlotBytes = kGuardBytes + kStackBytes,
  /* Stacks begin at several offsets, as otherwise the used parts of all would
   * compete for the same lines of a cache. */
  kStackOffsets = 32,
  kStackOffsetBytes = 128,
  kSharedAlignment = 1024,
  kWorkspaceAlignment = 256,
  kFirstCopies = 16,
};

/* Saves the registers that a call preserves and the stack pointer, continues
 * where `to` was saved, and passes `argument` to a fiber that starts. */
__attribute__((naked, noinline)) void tf_rt_sim_switch(void** from, void* to,
                                                       void* argument) {
#if defined(__x86_64__)
  __asm__ volatile(
      "pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\t"
      "pushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq %rsi, %rsp\n\t"
      "movq %rdx, %rdi\n\t"
      "popq %r15\n\tpopq %r14\n\tpopq %r13\n\t"
      "popq %r12\n\tpopq %rbx\n\tpopq %rbp\n\t"
      "retq");
#elif defined(__aarch64__)
  __asm__ volatile(
      "sub sp, sp, #160\n\t"
      "stp x19, x20, [sp, #0]\n\tstp x21, x22, [sp, #16]\n\t"
      "stp x23, x24, [sp, #32]\n\tstp x25, x26, [sp, #48]\n\t"
      "stp x27, x28, [sp, #64]\n\tstp x29, x30, [sp, #80]\n\t"
      "stp d8, d9, [sp, #96]\n\tstp d10, d11, [sp, #112]\n\t"
      "stp d12, d13, [sp, #128]\n\tstp d14, d15, [sp, #144]\n\t"
      "mov x9, sp\n\tstr x9, [x0]\n\t"
      "mov sp, x1\n\tmov x0, x2\n\t"
      "ldp x19, x20, [sp, #0]\n\tldp x21, x22, [sp, #16]\n\t"
      "ldp x23, x24, [sp, #32]\n\tldp x25, x26, [sp, #48]\n\t"
      "ldp x27, x28, [sp, #64]\n\tldp x29, x30, [sp, #80]\n\t"
      "ldp d8, d9, [sp, #96]\n\tldp d10, d11, [sp, #112]\n\t"
      "ldp d12, d13, [sp, #128]\n\tldp d14, d15, [sp, #144]\n\t"
      "add sp, sp, #160\n\t"
      "ret");
#else
#error "give this architecture its switch of stacks"
#endif
}

/* The first function of a fiber; never returns. */
static void RunFiber(struct Fiber* fiber) {
  struct Launch* launch = fiber->launch;
  launch->kernel->simulated(&fiber->thread, launch->buffers);
  if (fiber->again_bytes > 0) tf_rt_sim_check_again(fiber);
  fiber->state = kEnded;
  --launch->ready;
  for (;;) Yield(fiber);
}

/* A stack from which a switch calls RunFiber. */
static void* NewStack(char* end) {
  uintptr_t* top = (uintptr_t*)(void*)end;
#if defined(__x86_64__)
  top[-1] = 0; /* the return address of RunFiber */
  top[-2] = (uintptr_t)&RunFiber;
  for (int i = 3; i <= 8; ++i) top[-i] = 0;
  return top - 8;
#else
  for (int i = 1; i <= 20; ++i) top[-i] = 0;
  top[-20 + 11] = (uintptr_t)&RunFiber; /* x30 */
  return top - 20;
#endif
}

/* Stacks ------------------------------------------------------------------- */

struct Stacks {
  char* base;
  uint32_t threads;
};

/* Kept for the next call. */
static _Atomic(struct Stacks*) kept;

static void FreeStacks(struct Stacks* stacks) {
  if (stacks == NULL) return;
  munmap(stacks->base, (size_t)stacks->threads * kSlotBytes);
  free(stacks);
}

/* Null if there is no memory. */
static struct Stacks* MakeStacks(uint32_t threads) {
  struct Stacks* stacks = __c11_atomic_exchange(&kept, NULL, __ATOMIC_ACQ_REL);
  if (stacks != NULL && stacks->threads >= threads) return stacks;
  FreeStacks(stacks);
  stacks = aligned_alloc(64, 64);
  if (stacks == NULL) return NULL;
  stacks->threads = threads;
  stacks->base = mmap(NULL, (size_t)threads * kSlotBytes, TF_PROT_READ_WRITE,
                      TF_MAP_PRIVATE_ANONYMOUS, -1, 0);
  if (stacks->base == (void*)-1) {
    free(stacks);
    return NULL;
  }
  for (uint32_t i = 0; i < threads; ++i) {
    /* A stack that overflows meets its guard. */
    mprotect(stacks->base + (size_t)i * kSlotBytes, kGuardBytes, TF_PROT_NONE);
  }
  return stacks;
}

static void KeepStacks(struct Stacks* stacks) {
  FreeStacks(__c11_atomic_exchange(&kept, stacks, __ATOMIC_ACQ_REL));
}

/* Accesses ----------------------------------------------------------------- */

/* Whether the bytes are in shared memory and can be checked. Otherwise the
 * launch has failed. */
static int32_t FindBytes(struct Fiber* fiber, const char* address,
                         uint32_t bytes, uint32_t* first) {
  struct Launch* launch = fiber->launch;
  const uint32_t size = launch->kernel->shared_bytes;
  const int64_t at = (int64_t)((uintptr_t)address - (uintptr_t)launch->shared);
  if (at < 0 || at > (int64_t)size || bytes > size - (uint32_t)at) {
    launch->status = tf_rt_gpu_fail(
        TF_GPU_FAULT,
        "access outside of shared memory of %s, block (%u,%u,%u): thread %u at"
        " bytes %lld to %lld of %u",
        TF_PLACE(launch), fiber->number, (long long)at,
        (long long)at + bytes - 1, size);
    return 0;
  }
  if (launch->shadow == NULL) {
    const size_t shadow_bytes = (size_t)size * sizeof(struct Shadow);
    launch->shadow = aligned_alloc(64, (shadow_bytes + 127) / 64 * 64);
    if (launch->shadow == NULL) {
      launch->status =
          tf_rt_gpu_fail(TF_GPU_FAILED, "no memory to check accesses");
      return 0;
    }
    memset(launch->shadow, 0, shadow_bytes);
  }
  *first = (uint32_t)at;
  return 1;
}

static int32_t Race(struct Fiber* fiber, uint32_t byte, uint32_t other,
                    const char* how) {
  struct Launch* launch = fiber->launch;
  launch->status = tf_rt_gpu_fail(
      TF_GPU_FAULT,
      "race on shared memory of %s at byte %u between threads %u and %u%s,"
      " block (%u,%u,%u)",
      launch->kernel->name, byte, other, fiber->number, how, TF_BLOCK(launch));
  return 0;
}

void tf_rt_sim_check_again(struct Fiber* fiber) {
  const char* now = fiber->again;
  const uint32_t bytes = fiber->again_bytes;
  fiber->again_bytes = 0;
  for (uint32_t i = 0; i < bytes; ++i) {
    if (now[i] == fiber->again_was[i]) continue;
    Race(fiber, (uint32_t)(now - fiber->launch->shared) + i, fiber->again_other,
         " (both write)");
    return;
  }
}

/* A store is done before the thread's next call, a copy lands at any time. */
enum Access { kLoad, kStore, kCopy };

/* Notes the access. 0 if the launch failed. */
static int32_t CheckAccess(struct Fiber* fiber, const char* address,
                           uint32_t bytes, enum Access access) {
  uint32_t first = 0;
  if (fiber->again_bytes > 0) {
    tf_rt_sim_check_again(fiber);
    if (fiber->launch->status != 0) return 0;
  }
  if (!FindBytes(fiber, address, bytes, &first)) return 0;
  if (access != kLoad && fiber->launch->cluster != NULL &&
      !tf_rt_sim_cluster_write(fiber, address, bytes)) {
    return 0;
  }
  const uint32_t interval = fiber->launch->interval;
  const uint16_t me = (uint16_t)fiber->number;
  for (uint32_t byte = first; byte < first + bytes; ++byte) {
    struct Shadow* shadow = &fiber->launch->shadow[byte];
    if (shadow->written == kInFlight) {
      return Race(fiber, byte, shadow->writer,
                  " (a copy of the former has not landed)");
    }
    if (shadow->written == interval && shadow->writer != me) {
      if (access != kStore || bytes > sizeof(fiber->again_was)) {
        return Race(fiber, byte, shadow->writer,
                    access == kLoad ? " (the former writes)" : " (both write)");
      }
      fiber->again_bytes = bytes;
      fiber->again_other = shadow->writer;
    }
    if (access != kLoad) {
      if (shadow->read == interval &&
          (shadow->reader != me || shadow->other_reader != me)) {
        return Race(
            fiber, byte,
            shadow->reader != me ? shadow->reader : shadow->other_reader,
            " (the latter writes)");
      }
      shadow->written = interval;
      shadow->writer = me;
    } else if (shadow->read != interval) {
      shadow->read = interval;
      shadow->reader = shadow->other_reader = me;
    } else if (shadow->reader != me) {
      shadow->other_reader = me;
    }
  }
  if (fiber->again_bytes > 0) {
    fiber->again = address;
    memcpy(fiber->again_was, address, bytes);
  }
  return 1;
}

/* Marks the target of a copy, which was checked. */
static void MarkCopy(struct Fiber* fiber, const char* to, uint32_t bytes,
                     uint32_t written) {
  struct Launch* launch = fiber->launch;
  struct Shadow* shadow = launch->shadow + (to - launch->shared);
  for (uint32_t i = 0; i < bytes; ++i) {
    shadow[i].written = written;
    shadow[i].writer = (uint16_t)fiber->number;
  }
}

void tf_rt_sim_access(const struct tf_sim_thread* thread, const void* address,
                      uint32_t bytes, int32_t is_write) {
  struct Fiber* fiber = FiberOf(thread);
  if (!CheckAccess(fiber, address, bytes, is_write ? kStore : kLoad)) {
    Abandon(fiber);
  }
}

/* An instruction on matrices as one lane gives it. */
struct MatrixCall {
  const void* row; /* of a load; null: a product */
  uint32_t matrices, transposed;
  uint32_t a_element, b_element;
  const uint32_t *a, *b;
  uint32_t* result;
};

/* Barriers and shuffles ---------------------------------------------------- */

void tf_rt_sim_barrier(const struct tf_sim_thread* thread, int32_t site) {
  struct Fiber* fiber = FiberOf(thread);
  fiber->state = kAtBarrier;
  fiber->site = site;
  --fiber->launch->ready;
  Yield(fiber);
}

/* The number of lanes of a warp, whose last may be incomplete. */
static uint32_t Lanes(const struct Launch* launch, uint32_t warp) {
  const uint32_t left = launch->threads - warp * TF_GPU_WARP_LANES;
  return left < TF_GPU_WARP_LANES ? left : TF_GPU_WARP_LANES;
}

/* Bits [first, last) of a warp's lanes. */
static uint32_t Bits(uint32_t first, uint32_t last) {
  return (uint32_t)(((uint64_t)1 << last) - ((uint64_t)1 << first));
}

/* Lanes [first, last) of the warp wait at a shuffle: gives each its result. 0
 * if the launch failed. */
static int32_t Shuffle(struct Launch* launch, uint32_t warp, uint32_t first,
                       uint32_t last) {
  struct Fiber* lane = &launch->fibers[warp * TF_GPU_WARP_LANES];
  uint32_t results[TF_GPU_WARP_LANES];
  for (uint32_t i = first; i < last; ++i) {
    const uint32_t source = lane[i].source % TF_GPU_WARP_LANES;
    if (lane[i].site != lane[first].site) {
      launch->status = tf_rt_gpu_fail(
          TF_GPU_FAULT,
          "shuffle divergence in %s, block (%u,%u,%u): threads %u and %u are"
          " at shuffles %d and %d",
          TF_PLACE(launch), lane[first].number, lane[i].number,
          lane[first].site, lane[i].site);
      return 0;
    }
    if (source < first || source >= last) {
      launch->status = tf_rt_gpu_fail(
          TF_GPU_FAULT,
          "shuffle in %s, block (%u,%u,%u): thread %u reads lane %u, but only"
          " lanes %u to %u take part",
          TF_PLACE(launch), lane[i].number, source, first, last - 1);
      return 0;
    }
    results[i] = lane[source].value;
  }
  for (uint32_t i = first; i < last; ++i) {
    lane[i].value = results[i];
    lane[i].state = kReady;
  }
  launch->ready += last - first;
  launch->arrived[warp] &= ~Bits(first, last);
  return 1;
}

uint32_t tf_rt_sim_shuffle(const struct tf_sim_thread* thread, uint32_t value,
                           uint32_t source_lane, uint32_t width, int32_t site) {
  struct Fiber* fiber = FiberOf(thread);
  struct Launch* launch = fiber->launch;
  const uint32_t warp = fiber->number / TF_GPU_WARP_LANES;
  const uint32_t lane = fiber->number % TF_GPU_WARP_LANES;
  const uint32_t first = lane / width * width;
  const uint32_t lanes = Lanes(launch, warp);
  const uint32_t last = first + width < lanes ? first + width : lanes;
  fiber->state = kAtShuffle;
  fiber->value = value;
  fiber->source = source_lane;
  fiber->site = site;
  --launch->ready;
  launch->arrived[warp] |= Bits(lane, lane + 1);
  if ((launch->arrived[warp] & Bits(first, last)) != Bits(first, last)) {
    Yield(fiber);
  } else if (!Shuffle(launch, warp, first, last)) {
    Abandon(fiber);
  }
  return fiber->value;
}

/* Matrices ----------------------------------------------------------------- */

static const uint32_t kElementBytes[] = {2, 2, 4, 1, 1}; /* tf_sim_element */

static double AsDouble(uint32_t float_bits) {
  float value;
  memcpy(&value, &float_bits, sizeof(value));
  return value;
}

static double HalfAsDouble(uint32_t bits) {
  const int32_t exponent = (int32_t)(bits >> 10 & 0x1f);
  double value = bits & 0x3ff; /* in units of 2^-24 if subnormal */
  if (exponent == 0x1f) {
    return AsDouble((bits & 0x8000u) << 16 | 0x7f800000u |
                    (bits & 0x3ffu) << 13);
  }
  if (exponent > 0) value += 1024;
  for (int32_t i = 1; i < exponent; ++i) value *= 2;
  value /= 16777216.0;
  return bits & 0x8000 ? -value : value;
}

/* The element of 32 bytes of registers at byte `at`. */
static double Element(const uint32_t* chunk, uint32_t at, uint32_t element) {
  const uint32_t word = chunk[at / 4] >> at % 4 * 8;
  switch (element) {
    case TF_SIM_F16:
      return HalfAsDouble(word & 0xffff);
    case TF_SIM_BF16:
      return AsDouble(word << 16);
    case TF_SIM_TF32:
      return AsDouble(word & 0xffffe000u);
    case TF_SIM_S8:
      return (int8_t)(word & 0xff);
    default:
      return word & 0xff;
  }
}

/* All lanes wait at a product. Terms of row r of a are in the registers of
 * lanes 4 * (r % 8) to + 3, those of column c of b in lanes 4 * c to + 3; of
 * each, the first chunk of 16 bytes is one register of four lanes. */
static void Product(struct Fiber* lane) {
  uint32_t a[16][8], b[8][8];
  for (uint32_t row = 0; row < 16; ++row) {
    for (uint32_t word = 0; word < 8; ++word) {
      const struct MatrixCall* call = lane[row % 8 * 4 + word % 4].matrix;
      a[row][word] = call->a[row / 8 + word / 4 * 2];
    }
  }
  for (uint32_t column = 0; column < 8; ++column) {
    for (uint32_t word = 0; word < 8; ++word) {
      b[column][word] = lane[column * 4 + word % 4].matrix->b[word / 4];
    }
  }
  for (uint32_t l = 0; l < TF_GPU_WARP_LANES; ++l) {
    const struct MatrixCall* call = lane[l].matrix;
    const uint32_t a_bytes = kElementBytes[call->a_element];
    const uint32_t b_bytes = kElementBytes[call->b_element];
    const int32_t is_float = a_bytes > 1;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = l / 4 + i / 2 * 8, column = l % 4 * 2 + i % 2;
      /* Exact for bytes; the unit's order of floats is not specified. */
      double sum =
          is_float ? AsDouble(call->result[i]) : (int32_t)call->result[i];
      for (uint32_t k = 0; k < 32 / a_bytes; ++k) {
        sum += Element(a[row], k * a_bytes, call->a_element) *
               Element(b[column], k * b_bytes, call->b_element);
      }
      if (is_float) {
        const float rounded = (float)sum;
        memcpy(&call->result[i], &rounded, sizeof(rounded));
      } else {
        call->result[i] = (uint32_t)(int64_t)sum;
      }
    }
  }
}

/* All lanes wait at a load. */
static void LoadMatrices(struct Fiber* lane) {
  for (uint32_t l = 0; l < TF_GPU_WARP_LANES; ++l) {
    const struct MatrixCall* call = lane[l].matrix;
    for (uint32_t m = 0; m < call->matrices; ++m) {
      const struct Fiber* rows = &lane[m * 8];
      char* to = (char*)&call->result[m];
      if (call->transposed) {
        const char* first = rows[l % 4 * 2].matrix->row;
        const char* second = rows[l % 4 * 2 + 1].matrix->row;
        memcpy(to, first + l / 4 * 2, 2);
        memcpy(to + 2, second + l / 4 * 2, 2);
      } else {
        const char* row = rows[l / 4].matrix->row;
        memcpy(to, row + l % 4 * 4, 4);
      }
    }
  }
}

/* Waits for the warp; the last lane computes for all. */
static void RunMatrix(struct Fiber* fiber, struct MatrixCall* call,
                      int32_t site) {
  struct Launch* launch = fiber->launch;
  const uint32_t warp = fiber->number / TF_GPU_WARP_LANES;
  struct Fiber* lane = &launch->fibers[warp * TF_GPU_WARP_LANES];
  fiber->state = kAtShuffle;
  fiber->matrix = call;
  fiber->site = site;
  ++launch->progress;
  --launch->ready;
  const uint32_t lane_number = fiber->number % TF_GPU_WARP_LANES;
  launch->arrived[warp] |= Bits(lane_number, lane_number + 1);
  if (launch->arrived[warp] != Bits(0, TF_GPU_WARP_LANES)) {
    Yield(fiber);
    return;
  }
  for (uint32_t i = 0; i < TF_GPU_WARP_LANES; ++i) {
    if (lane[i].site == site) continue;
    launch->status = tf_rt_gpu_fail(
        TF_GPU_FAULT,
        "matrix divergence in %s, block (%u,%u,%u): threads %u and %u are at"
        " instructions %d and %d",
        TF_PLACE(launch), fiber->number, lane[i].number, site, lane[i].site);
    Abandon(fiber);
  }
  if (call->row != NULL) {
    LoadMatrices(lane);
  } else {
    Product(lane);
  }
  for (uint32_t i = 0; i < TF_GPU_WARP_LANES; ++i) {
    lane[i].matrix = NULL;
    lane[i].state = kReady;
  }
  launch->ready += TF_GPU_WARP_LANES;
  launch->arrived[warp] = 0;
}

void tf_rt_sim_load_matrix(const struct tf_sim_thread* thread,
                           uint32_t* fragment, const void* row,
                           uint32_t matrices, uint32_t transposed,
                           int32_t site) {
  struct Fiber* fiber = FiberOf(thread);
  if (fiber->number % TF_GPU_WARP_LANES < matrices * 8) {
    if ((uintptr_t)row % 16 != 0) {
      fiber->launch->status = tf_rt_gpu_fail(
          TF_GPU_FAULT,
          "a matrix in %s, block (%u,%u,%u), thread %u: a row is not aligned to"
          " 16 bytes",
          TF_PLACE(fiber->launch), fiber->number);
      Abandon(fiber);
    }
    if (!CheckAccess(fiber, row, 16, kLoad)) Abandon(fiber);
  }
  struct MatrixCall call = {row, matrices, transposed, 0,
                            0,   NULL,     NULL,       fragment};
  RunMatrix(fiber, &call, site);
}

void tf_rt_sim_warp_product(const struct tf_sim_thread* thread,
                            uint32_t a_element, uint32_t b_element,
                            const uint32_t* a, const uint32_t* b, void* sums,
                            int32_t site) {
  struct MatrixCall call = {NULL, 0, 0, a_element, b_element, a, b, sums};
  RunMatrix(FiberOf(thread), &call, site);
}

/* Copies ------------------------------------------------------------------- */

/* 0 if there is no memory. */
static int32_t MakeRoomForCopy(struct Fiber* fiber) {
  if (fiber->first == fiber->last) fiber->first = fiber->last = 0;
  if (fiber->last < fiber->capacity) return 1;
  const uint32_t count = fiber->last - fiber->first;
  /* Moves only where that frees at least half of the room. */
  if (count > 0 && fiber->first >= count) {
    memcpy(fiber->copies, fiber->copies + fiber->first,
           count * sizeof(struct Copy));
  } else {
    const uint32_t capacity =
        fiber->capacity == 0 ? kFirstCopies : 2 * fiber->capacity;
    struct Copy* copies = aligned_alloc(64, capacity * sizeof(struct Copy));
    if (copies == NULL) return 0;
    if (count > 0) {
      memcpy(copies, fiber->copies + fiber->first, count * sizeof(struct Copy));
    }
    free(fiber->copies);
    fiber->copies = copies;
    fiber->capacity = capacity;
  }
  fiber->first = 0;
  fiber->last = count;
  return 1;
}

void tf_rt_sim_copy_async(const struct tf_sim_thread* thread, void* shared_to,
                          const void* from, uint32_t bytes,
                          uint32_t valid_bytes) {
  struct Fiber* fiber = FiberOf(thread);
  /* It may land at once: a write. */
  if (!CheckAccess(fiber, shared_to, bytes, kCopy)) Abandon(fiber);
  if (valid_bytes > bytes || !MakeRoomForCopy(fiber)) {
    fiber->launch->status =
        tf_rt_gpu_fail(TF_GPU_FAULT, "a copy in %s of %u bytes, %u valid: %s",
                       fiber->launch->kernel->name, bytes, valid_bytes,
                       valid_bytes > bytes ? "too many" : "no memory");
    Abandon(fiber);
  }
  fiber->copies[fiber->last++] =
      (struct Copy){shared_to, from, bytes, valid_bytes, fiber->group};
  MarkCopy(fiber, shared_to, bytes, kInFlight);
  memset(shared_to, 0xff, bytes);
}

void tf_rt_sim_commit(const struct tf_sim_thread* thread) {
  ++FiberOf(thread)->group;
}

void tf_rt_sim_wait(const struct tf_sim_thread* thread, int32_t groups_left) {
  struct Fiber* fiber = FiberOf(thread);
  for (; fiber->first < fiber->last; ++fiber->first) {
    const struct Copy* copy = &fiber->copies[fiber->first];
    if (groups_left >= 0 &&
        (int64_t)copy->group >= (int64_t)fiber->group - groups_left) {
      return;
    }
    if (copy->valid_bytes > 0) memcpy(copy->to, copy->from, copy->valid_bytes);
    memset(copy->to + copy->valid_bytes, 0, copy->bytes - copy->valid_bytes);
    MarkCopy(fiber, copy->to, copy->bytes, fiber->launch->interval);
    if (fiber->launch->cluster != NULL) {
      tf_rt_sim_cluster_landing(fiber->launch, copy->to, copy->bytes);
    }
  }
}

/* Blocks ------------------------------------------------------------------- */

uint64_t tf_rt_sim_random(struct Launch* launch) { /* SplitMix64 */
  uint64_t z = launch->random += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void tf_rt_sim_choose_order(struct Launch* launch, uint32_t number,
                            uint32_t count, uint16_t* order) {
  for (uint32_t i = 0; i < count; ++i) {
    order[i] = (uint16_t)(number % 2 == 0 ? i : count - 1 - i);
  }
  for (uint32_t i = count; launch->seeded && i > 1; --i) {
    const uint32_t other =
        (uint32_t)((tf_rt_sim_random(launch) >> 32) * i >> 32);
    const uint16_t last = order[i - 1];
    order[i - 1] = order[other];
    order[other] = last;
  }
}

/* Runs all fibers until each waits for a barrier or has ended. */
static void RunInterval(struct Launch* launch) {
  uint32_t ran = 1;
  while (launch->ready > 0 && ran > 0) {
    const uint64_t progress = launch->progress;
    ran = 0;
    for (uint32_t i = 0; i < launch->threads; ++i) {
      struct Fiber* fiber = &launch->fibers[launch->order[i]];
      if (fiber->state != kReady) continue;
      ran = 1;
      tf_rt_sim_switch(&launch->stack_pointer, fiber->stack_pointer, fiber);
      if (launch->status != 0) return;
    }
    /* At a barrier of the cluster, boxes that no thread has waited for are late
     * for other blocks. */
    const int32_t late = launch->cluster != NULL && launch->ready == 0;
    if (launch->boxes != NULL && !late) {
      tf_rt_sim_land_box(launch);
      if (launch->status != 0) return;
    } else if (launch->ready > 0 && launch->looking == launch->ready &&
               launch->progress == progress) {
      launch->status = tf_rt_gpu_fail(
          TF_GPU_FAULT,
          "deadlock in %s, block (%u,%u,%u): %u threads wait at arrival"
          " barriers for ever",
          TF_PLACE(launch), launch->ready);
      return;
    }
  }
}

static const char* Describe(enum State state) {
  if (state == kEnded) return "has ended";
  if (state == kAtClusterBarrier) return "waits at cluster barrier";
  return state == kAtBarrier ? "waits at barrier" : "waits at shuffle";
}

/* After an interval: whether all threads wait at one barrier (1), have ended
 * (0), or the launch failed (-1). */
static int32_t EndInterval(struct Launch* launch) {
  const struct Fiber* a = &launch->fibers[0];
  for (uint32_t i = 0; i < launch->threads; ++i) {
    const struct Fiber* b = &launch->fibers[i];
    const int32_t same = b->state == a->state && b->state != kAtShuffle &&
                         (b->state == kEnded || b->site == a->site);
    if (same) continue;
    if (b->state == kAtShuffle || a->state == kAtShuffle) {
      const struct Fiber* at = b->state == kAtShuffle ? b : a;
      launch->status = tf_rt_gpu_fail(
          TF_GPU_FAULT,
          "shuffle divergence in %s, block (%u,%u,%u): thread %u waits at"
          " shuffle %d for other threads of its warp",
          TF_PLACE(launch), at->number, at->site);
      return -1;
    }
    char sites[2][16] = {"", ""};
    if (a->state != kEnded) snprintf(sites[0], 16, " %d", a->site);
    if (b->state != kEnded) snprintf(sites[1], 16, " %d", b->site);
    launch->status = tf_rt_gpu_fail(
        TF_GPU_FAULT,
        "barrier divergence in %s, block (%u,%u,%u): thread %u %s%s, thread %u"
        " %s%s",
        TF_PLACE(launch), a->number, Describe(a->state), sites[0], b->number,
        Describe(b->state), sites[1]);
    return -1;
  }
  return a->state != kEnded;
}

/* Forgets copies that have not landed. */
static void DropCopies(struct Fiber* fiber) {
  for (; fiber->first < fiber->last; ++fiber->first) {
    const struct Copy* copy = &fiber->copies[fiber->first];
    MarkCopy(fiber, copy->to, copy->bytes, /*written=*/0);
  }
  fiber->group = 0;
  tf_rt_sim_drop_products(fiber);
}

void tf_rt_sim_begin_block(struct Launch* launch, const uint32_t* block,
                           uint32_t rank) {
  const uint32_t* size = launch->kernel->block;
  for (uint32_t i = 0; i < launch->threads; ++i) {
    struct Fiber* fiber = &launch->fibers[i];
    fiber->thread.thread[0] = i % size[0];
    fiber->thread.thread[1] = i / size[0] % size[1];
    fiber->thread.thread[2] = i / size[0] / size[1];
    for (int axis = 0; axis < 3; ++axis) {
      fiber->thread.block[axis] = block[axis];
    }
    fiber->thread.shared = launch->shared;
    fiber->thread.rank = rank;
    fiber->launch = launch;
    fiber->number = i;
    fiber->state = kReady;
    fiber->again_bytes = 0;
    fiber->stack_pointer =
        NewStack(launch->stacks + (size_t)(i + 1) * kSlotBytes -
                 i % kStackOffsets * kStackOffsetBytes);
    DropCopies(fiber);
  }
  memset(launch->shared, 0xff, launch->kernel->shared_bytes);
  launch->first_interval = launch->interval + 1;
}

void tf_rt_sim_run_epoch(struct Launch* launch) {
  for (;;) {
    launch->ready = launch->threads;
    for (uint32_t i = 0; i < launch->threads; ++i) {
      launch->fibers[i].state = kReady;
    }
    ++launch->interval;
    tf_rt_sim_choose_order(launch, launch->interval - launch->first_interval,
                           launch->threads, launch->order);
    RunInterval(launch);
    if (launch->status != 0 || EndInterval(launch) <= 0) return;
    if (launch->fibers[0].state == kAtClusterBarrier &&
        launch->cluster != NULL) {
      return;
    }
  }
}

void tf_rt_sim_end_block(struct Launch* launch) {
  if (launch->status == 0 && launch->boxes != NULL) {
    launch->status = tf_rt_gpu_fail(
        TF_GPU_FAULT,
        "%s, block (%u,%u,%u): a copied box has not landed when all threads"
        " have ended",
        TF_PLACE(launch));
  }
  tf_rt_sim_drop_boxes(launch);
  for (uint32_t i = 0; i < launch->threads; ++i) {
    if (tf_rt_sim_drop_stores(&launch->fibers[i]) || launch->status != 0) {
      continue;
    }
    launch->status = tf_rt_gpu_fail(
        TF_GPU_FAULT,
        "%s, block (%u,%u,%u): thread %u has ended without a wait for its"
        " stores of boxes",
        TF_PLACE(launch), i);
  }
  memset(launch->groups, 0, sizeof(launch->groups));
  memset(launch->warps, 0, sizeof(launch->warps));
}

static int32_t RunBlock(struct Launch* launch, const uint32_t* block) {
  tf_rt_sim_begin_block(launch, block, /*rank=*/0);
  tf_rt_sim_run_epoch(launch);
  tf_rt_sim_end_block(launch);
  return launch->status;
}

/* The status. */
static int32_t RunGrid(struct Cluster* cluster,
                       const struct tf_gpu_kernel* kernel) {
  const uint32_t* grid = kernel->grid;
  uint32_t block[3];
  for (block[2] = 0; block[2] < grid[2]; ++block[2]) {
    for (block[1] = 0; block[1] < grid[1]; ++block[1]) {
      for (block[0] = 0; block[0] < grid[0] / cluster->size; ++block[0]) {
        const int32_t status = cluster->size == 1
                                   ? RunBlock(cluster->blocks, block)
                                   : tf_rt_sim_run_cluster(cluster, block);
        if (status != 0) return status;
      }
    }
  }
  return 0;
}

/* Launches ----------------------------------------------------------------- */

/* Reads TILEFARM_SIM_SEED, which each block of a cluster uses in its own way. 0
 * if it is wrong. */
static int32_t ReadSeed(struct Cluster* cluster) {
  const char* text = getenv("TILEFARM_SIM_SEED");
  if (text == NULL || *text == 0) return 1;
  uint64_t seed = 0;
  for (; *text != 0; ++text) {
    if (*text < '0' || *text > '9') return 0;
    seed = seed * 10 + (uint64_t)(*text - '0');
  }
  for (uint32_t rank = 0; rank < cluster->size; ++rank) {
    cluster->blocks[rank].seeded = 1;
    cluster->blocks[rank].random = seed + rank;
  }
  return 1;
}

/* Zeros, or null. */
static void* NewZeros(size_t bytes) {
  bytes = (bytes + 64) / 64 * 64;
  void* zeros = aligned_alloc(64, bytes);
  if (zeros != NULL) memset(zeros, 0, bytes);
  return zeros;
}

/* Sets the block's fields that stay for the launch. 0 if there is no memory. */
static int32_t MakeBlock(struct Launch* block, struct Cluster* cluster) {
  size_t shared_bytes = block->kernel->shared_bytes;
  if (cluster->size > 1) {
    block->cluster = cluster;
    block->cluster_shadow =
        NewZeros(shared_bytes * sizeof(struct ClusterShadow));
    if (block->cluster_shadow == NULL) return 0;
    /* Room after the memory, so that what exceeds it reaches no other one. */
    shared_bytes *= 2;
  }
  block->fibers = NewZeros(block->threads * sizeof(struct Fiber));
  block->shared =
      aligned_alloc(kSharedAlignment, (shared_bytes + kSharedAlignment) /
                                          kSharedAlignment * kSharedAlignment);
  return block->fibers != NULL && block->shared != NULL;
}

static void FreeBlock(struct Launch* block) {
  for (uint32_t i = 0; block->fibers != NULL && i < block->threads; ++i) {
    free(block->fibers[i].copies);
    free(block->fibers[i].products);
  }
  free(block->cluster_shadow);
  free(block->shadow);
  free(block->shared);
  free(block->fibers);
}

/* Runs the kernel with the memory of `cluster`, which has room for blocks. */
static int32_t RunBlocks(const struct tf_gpu_kernel* kernel,
                         void* const* buffers, struct Cluster* cluster,
                         uint32_t threads) {
  struct Stacks* stacks = MakeStacks(cluster->size * threads);
  int32_t made = stacks != NULL;
  for (uint32_t rank = 0; rank < cluster->size && made; ++rank) {
    struct Launch* block = &cluster->blocks[rank];
    block->kernel = kernel;
    block->buffers = buffers;
    block->threads = threads;
    block->stacks = stacks->base + (size_t)rank * threads * kSlotBytes;
    made = MakeBlock(block, cluster);
  }
  const int32_t status =
      made ? RunGrid(cluster, kernel)
           : tf_rt_gpu_fail(TF_GPU_FAILED, "%s: no memory for threads",
                            kernel->name);
  for (uint32_t rank = 0; rank < cluster->size; ++rank) {
    FreeBlock(&cluster->blocks[rank]);
  }
  if (stacks != NULL) KeepStacks(stacks);
  return status;
}

static int32_t RunKernel(const struct tf_gpu_kernel* kernel,
                         void* const* buffers) {
  const uint64_t threads =
      (uint64_t)kernel->block[0] * kernel->block[1] * kernel->block[2];
  if (threads == 0 || threads > TF_GPU_MAX_THREADS) {
    return tf_rt_gpu_fail(TF_GPU_FAILED, "%s: a block of %u x %u x %u threads",
                          kernel->name, kernel->block[0], kernel->block[1],
                          kernel->block[2]);
  }
  if (kernel->cluster == 0 || kernel->cluster > TF_GPU_MAX_CLUSTER ||
      kernel->grid[0] % kernel->cluster != 0) {
    return tf_rt_gpu_fail(TF_GPU_FAILED,
                          "%s: clusters of %u blocks in a grid of %u along x",
                          kernel->name, kernel->cluster, kernel->grid[0]);
  }
  struct Cluster cluster = {NULL, kernel->cluster, 0};
  cluster.blocks = NewZeros(cluster.size * sizeof(struct Launch));
  if (cluster.blocks == NULL) {
    return tf_rt_gpu_fail(TF_GPU_FAILED, "%s: no memory for blocks",
                          kernel->name);
  }
  const int32_t status =
      ReadSeed(&cluster)
          ? RunBlocks(kernel, buffers, &cluster, (uint32_t)threads)
          : tf_rt_gpu_fail(TF_GPU_FAILED, "TILEFARM_SIM_SEED is not a number");
  free(cluster.blocks);
  return status;
}

static int32_t RunKernels(const struct tf_gpu_function* function,
                          void* const* buffers) {
  for (int32_t k = 0; k < function->kernels; ++k) {
    const struct tf_gpu_kernel* kernel = &function->kernel[k];
    void* arguments[TF_GPU_MAX_BUFFERS + TF_GPU_MAX_MAPS];
    struct tf_sim_tensor_map maps[TF_GPU_MAX_MAPS];
    for (uint32_t i = 0; i < kernel->buffers; ++i) {
      arguments[i] = buffers[kernel->arguments[i]];
    }
    for (uint32_t i = 0; i < kernel->maps; ++i) {
      maps[i].map = &kernel->map[i];
      maps[i].memory = buffers[kernel->map[i].buffer];
      arguments[kernel->buffers + i] = &maps[i];
    }
    const int32_t status = RunKernel(kernel, arguments);
    if (status != 0) return status;
  }
  return 0;
}

int32_t tf_rt_sim_run(const struct tf_gpu_function* function,
                      void* const* parameters, void* stream, int32_t wait) {
  (void)stream;
  (void)wait;
  void* buffers[TF_GPU_MAX_BUFFERS];
  for (int32_t i = 0; i < function->parameters; ++i) {
    buffers[i] = parameters[i];
    if (buffers[i] == NULL && function->parameter_bytes[i] > 0) {
      return tf_rt_gpu_fail(TF_GPU_FAILED, "parameter %d is null", i);
    }
  }
  int32_t status = 0;
  int32_t made = 0;
  void** workspace = buffers + function->parameters;
  for (; made < function->workspaces && status == 0; ++made) {
    const size_t bytes =
        ((size_t)function->workspace_bytes[made] + kWorkspaceAlignment) /
        kWorkspaceAlignment * kWorkspaceAlignment;
    workspace[made] = aligned_alloc(kWorkspaceAlignment, bytes);
    if (workspace[made] == NULL) {
      status = tf_rt_gpu_fail(TF_GPU_FAILED, "no memory for workspace");
    } else {
      memset(workspace[made], 0xff, bytes);
    }
  }
  if (status == 0) status = RunKernels(function, buffers);
  for (int32_t i = 0; i < made; ++i) free(workspace[i]);
  return status;
}

void tf_rt_sim_shutdown(void) {
  FreeStacks(__c11_atomic_exchange(&kept, NULL, __ATOMIC_ACQ_REL));
  tf_rt_gpu_error_shutdown();
}
