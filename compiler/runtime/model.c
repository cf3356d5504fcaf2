/* Instances of a compiled model: the arena of its intermediate values, and the
 * errors of its functions. codegen/model_object.h emits the callers. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"

enum { kArenaAlignment = 64 };

struct Instance {
  const struct tf_rt_model* model;
  char* arena;
  _Atomic(int32_t) running;
};

/* This thread's last error is the value of a thread-specific key, which is made
 * at the first error. Key 0 is a valid key, so `key` is one more. */
static _Atomic(int32_t) key_lock;
static _Atomic(uint32_t) key;

static uint32_t ErrorKey(void) {
  uint32_t known = __c11_atomic_load(&key, __ATOMIC_ACQUIRE);
  if (known != 0) return known;
  while (__c11_atomic_exchange(&key_lock, 1, __ATOMIC_ACQUIRE)) TF_PAUSE();
  known = __c11_atomic_load(&key, __ATOMIC_ACQUIRE);
  uint32_t made = 0;
  if (known == 0 && pthread_key_create(&made, NULL) == 0) {
    known = made + 1;
    __c11_atomic_store(&key, known, __ATOMIC_RELEASE);
  }
  __c11_atomic_store(&key_lock, 0, __ATOMIC_RELEASE);
  return known;
}

static int32_t Fail(const char* message) {
  const uint32_t known = ErrorKey();
  if (known != 0) pthread_setspecific(known - 1, message);
  return 1;
}

const char* tf_rt_model_error(void) {
  const uint32_t known = __c11_atomic_load(&key, __ATOMIC_ACQUIRE);
  const char* message =
      known == 0 ? NULL : (const char*)pthread_getspecific(known - 1);
  return message == NULL ? "no error" : message;
}

void tf_rt_model_shutdown(void) {
  const uint32_t known = __c11_atomic_exchange(&key, 0, __ATOMIC_ACQ_REL);
  if (known != 0) pthread_key_delete(known - 1);
}

int32_t tf_rt_model_create(const struct tf_rt_model* model,
                           const struct tf_rt_model_options* options,
                           void** result) {
  if (result == NULL) return Fail("create: the place for the model is null");
  *result = NULL;
  if (options != NULL) {
    if (options->size < sizeof(struct tf_rt_model_options)) {
      return Fail("create: options.size is not the size of the options");
    }
    if (options->weights != NULL) {
      return Fail("create: the weights of this model are inside its library");
    }
    if (options->threads != 0 || options->spin_us != 0) {
      return Fail(
          "create: threads and spin_us cannot be set for this library;"
          " TILEFARM_NUM_THREADS sets the number of threads");
    }
  }
  struct Instance* instance = aligned_alloc(kArenaAlignment, kArenaAlignment);
  if (instance == NULL) return Fail("create: no memory");
  instance->model = model;
  instance->arena = NULL;
  __c11_atomic_init(&instance->running, 0);
  if (model->arena_bytes > 0) {
    instance->arena =
        aligned_alloc(kArenaAlignment, (size_t)model->arena_bytes);
    if (instance->arena == NULL) {
      free(instance);
      return Fail("create: no memory for the intermediate values");
    }
    /* NaN in every float type: reveals reads before the first write. */
    if (getenv("TILEFARM_POISON_WORKSPACE") != NULL) {
      memset(instance->arena, 0xff, (size_t)model->arena_bytes);
    }
  }
  *result = instance;
  return 0;
}

int32_t tf_rt_model_run(void* model, const void* const* inputs,
                        void* const* outputs) {
  struct Instance* instance = model;
  if (instance == NULL) return Fail("run: the model is null");
  if (__c11_atomic_exchange(&instance->running, 1, __ATOMIC_ACQUIRE)) {
    return Fail("run: this instance runs in another thread");
  }
  const int32_t status = instance->model->steps(
      inputs, outputs, instance->arena, instance->model->weights);
  __c11_atomic_store(&instance->running, 0, __ATOMIC_RELEASE);
  return status == 0 ? 0 : Fail("run: a kernel failed for want of memory");
}

void tf_rt_model_destroy(void* model) {
  struct Instance* instance = model;
  if (instance == NULL) return;
  free(instance->arena);
  free(instance);
}
