#include "compiler/runtime/gpu_modules.h"

void* tf_rt_gpu_zeroed(size_t bytes) {
  void* block = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (block != NULL) memset(block, 0, bytes);
  return block;
}

int32_t tf_rt_gpu_no_memory(void) {
  return tf_rt_gpu_fail(TF_GPU_FAILED, "no memory on the host");
}

int32_t tf_rt_gpu_chosen_device(const char* variable, int32_t* number) {
  *number = 0;
  const char* text = getenv(variable);
  if (text == NULL) return 0;
  for (; *text != 0; ++text) {
    if (*text < '0' || *text > '9' || *number > 9999) {
      return tf_rt_gpu_fail(TF_GPU_FAILED, "%s is not a number", variable);
    }
    *number = *number * 10 + (*text - '0');
  }
  return 0;
}

struct tf_gpu_prepared* tf_rt_gpu_find_prepared(
    struct tf_gpu_prepared* const* list,
    const struct tf_gpu_function* function) {
  struct tf_gpu_prepared* prepared = __atomic_load_n(list, __ATOMIC_ACQUIRE);
  while (prepared != NULL && prepared->function != function) {
    prepared = prepared->next;
  }
  return prepared;
}

struct tf_gpu_prepared* tf_rt_gpu_make_prepared(
    const struct tf_gpu_function* function) {
  struct tf_gpu_prepared* prepared =
      tf_rt_gpu_zeroed(sizeof(struct tf_gpu_prepared) +
                       (size_t)function->kernels * sizeof(void*));
  if (prepared != NULL) prepared->function = function;
  return prepared;
}

void tf_rt_gpu_add_prepared(struct tf_gpu_prepared* prepared,
                            struct tf_gpu_prepared** list) {
  prepared->next = *list;
  __atomic_store_n(list, prepared, __ATOMIC_RELEASE);
}

void tf_rt_gpu_add_module(struct tf_gpu_module* module,
                          struct tf_gpu_module** next,
                          struct tf_gpu_state* state,
                          struct tf_gpu_state** states) {
  *next = state->modules;
  __atomic_store_n(&state->modules, module, __ATOMIC_RELEASE);
  if (state->listed) return;
  state->listed = 1;
  state->next = *states;
  *states = state;
}

int32_t tf_rt_gpu_open_library(const struct tf_gpu_library* library,
                               void* functions, void** opened) {
  const char* chosen = getenv(library->variable);
  const char* path = chosen == NULL || *chosen == 0 ? library->file : chosen;
  *opened = dlopen(path, TF_RTLD_NOW | TF_RTLD_NODELETE);
  if (*opened == NULL) {
    const char* why = dlerror();
    return tf_rt_gpu_fail(TF_GPU_NO_DRIVER, "%s is not here: %s (%s)", path,
                          library->if_missing,
                          why == NULL ? "no reason given" : why);
  }
  for (size_t i = 0; i < library->entry_count; ++i) {
    const struct tf_gpu_entry* entry = &library->entries[i];
    void* found = dlsym(*opened, entry->name);
    if (found == NULL && entry->required) {
      dlclose(*opened);
      return tf_rt_gpu_fail(TF_GPU_NO_DRIVER, "%s has no function %s: %s", path,
                            entry->name, library->if_old);
    }
    *(void**)(void*)((char*)functions + entry->offset) = found;
  }
  return 0;
}

int32_t tf_rt_gpu_open_once(struct tf_mutex* mutex, _Atomic(int32_t)* is_open,
                            int32_t (*open)(void)) {
  if (__c11_atomic_load(is_open, __ATOMIC_ACQUIRE)) return 0;
  int32_t status = 0;
  pthread_mutex_lock(mutex);
  if (!__c11_atomic_load(is_open, __ATOMIC_RELAXED)) {
    status = open();
    if (status == 0) __c11_atomic_store(is_open, 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(mutex);
  return status;
}
