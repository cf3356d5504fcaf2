/* Thread-specific values: a key of the C library that is made at first use. */
#ifndef TILEFARM_COMPILER_RUNTIME_THREAD_KEY_H_
#define TILEFARM_COMPILER_RUNTIME_THREAD_KEY_H_

#include "compiler/runtime/platform.h"

/* All zero: not made yet. Key 0 is a valid key, so `made` is one more. */
struct ThreadKey {
  _Atomic(int32_t) lock;
  _Atomic(uint32_t) made;
};

/* Null if the key is not made yet, or this thread has no value. */
static inline void* ThreadValue(struct ThreadKey* key) {
  const uint32_t made = __c11_atomic_load(&key->made, __ATOMIC_ACQUIRE);
  return made == 0 ? NULL : pthread_getspecific(made - 1);
}

/* Makes the key if it is not made yet. `free_value` (may be null) frees the
 * values of threads that end. Non-zero if the process has no more keys. */
static inline int32_t MakeThreadKey(struct ThreadKey* key,
                                    void (*free_value)(void*)) {
  uint32_t made = __c11_atomic_load(&key->made, __ATOMIC_ACQUIRE);
  if (made != 0) return 0;
  while (__c11_atomic_exchange(&key->lock, 1, __ATOMIC_ACQUIRE)) TF_PAUSE();
  made = __c11_atomic_load(&key->made, __ATOMIC_ACQUIRE);
  uint32_t number = 0;
  if (made == 0 && pthread_key_create(&number, free_value) == 0) {
    made = number + 1;
    __c11_atomic_store(&key->made, made, __ATOMIC_RELEASE);
  }
  __c11_atomic_store(&key->lock, 0, __ATOMIC_RELEASE);
  return made == 0;
}

/* The key must be made. Non-zero if there is no memory for the value. */
static inline int32_t SetThreadValue(struct ThreadKey* key, const void* value) {
  const uint32_t made = __c11_atomic_load(&key->made, __ATOMIC_ACQUIRE);
  return pthread_setspecific(made - 1, value);
}

static inline void DeleteThreadKey(struct ThreadKey* key) {
  const uint32_t made = __c11_atomic_exchange(&key->made, 0, __ATOMIC_ACQ_REL);
  if (made != 0) pthread_key_delete(made - 1);
}

#endif /* TILEFARM_COMPILER_RUNTIME_THREAD_KEY_H_ */
