/* Workspace of kernels, kept between calls: a small table of free blocks under
 * a spin lock. A thread that does not get the lock soon (also in a forked child
 * whose parent held it) allocates instead of waiting, so nothing can hang. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"

enum { kSlots = 64, kHeaderBytes = 64, kLockSpins = 10000 };

static _Atomic(int) locked;
/* The free blocks, whose first bytes hold their capacity. */
static char* slots[kSlots];

static int TryLock(void) {
  for (int i = 0; i < kLockSpins; ++i) {
    if (!__c11_atomic_exchange(&locked, 1, __ATOMIC_ACQUIRE)) return 1;
    TF_PAUSE();
  }
  return 0;
}

static void Unlock(void) { __c11_atomic_store(&locked, 0, __ATOMIC_RELEASE); }

static int64_t* Capacity(char* block) { return (int64_t*)block; }

void* tf_rt_workspace_acquire(int64_t bytes) {
  const int64_t wanted = (bytes + 63) / 64 * 64;
  if ((uint64_t)wanted > SIZE_MAX - kHeaderBytes) return NULL;
  if (TryLock()) {
    int best = -1;
    for (int i = 0; i < kSlots; ++i) {
      if (slots[i] == NULL) continue;
      const int64_t capacity = *Capacity(slots[i]);
      /* A much larger block is kept for a larger request. */
      if (capacity < wanted || capacity > 2 * wanted + 4096) continue;
      if (best < 0 || capacity < *Capacity(slots[best])) best = i;
    }
    char* found = NULL;
    if (best >= 0) {
      found = slots[best];
      slots[best] = NULL;
    }
    Unlock();
    if (found != NULL) return found + kHeaderBytes;
  }
  char* block = aligned_alloc(64, (size_t)(wanted + kHeaderBytes));
  if (block == NULL) return NULL;
  *Capacity(block) = wanted;
  /* NaN in every float type: reveals reads before the first write. */
  if (getenv("TILEFARM_POISON_WORKSPACE") != NULL) {
    memset(block + kHeaderBytes, 0xff, (size_t)wanted);
  }
  return block + kHeaderBytes;
}

void tf_rt_workspace_release(void* payload) {
  if (payload == NULL) return;
  char* block = (char*)payload - kHeaderBytes;
  if (TryLock()) {
    for (int i = 0; i < kSlots; ++i) {
      if (slots[i] == NULL) {
        slots[i] = block;
        block = NULL;
        break;
      }
    }
    Unlock();
  }
  free(block);
}

void tf_rt_workspace_shutdown(void) {
  for (int i = 0; i < kSlots; ++i) {
    free(slots[i]);
    slots[i] = NULL;
  }
}
