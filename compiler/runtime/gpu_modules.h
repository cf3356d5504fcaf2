/* What cuda.c and opencl.c share: lists of what an artifact has loaded, which
 * only grow until it is unloaded and are read without a lock, and the opening
 * of a driver's library. */
#ifndef TILEFARM_COMPILER_RUNTIME_GPU_MODULES_H_
#define TILEFARM_COMPILER_RUNTIME_GPU_MODULES_H_

#include "compiler/runtime/gpu.h"
#include "compiler/runtime/platform.h"

/* Null if there is no memory. */
void* tf_rt_gpu_zeroed(size_t bytes);
/* Sets that error; the result is TF_GPU_FAILED. */
int32_t tf_rt_gpu_no_memory(void);

/* A device's number from the environment; 0 without the variable. The result is
 * 0, or that of tf_rt_gpu_fail. */
int32_t tf_rt_gpu_chosen_device(const char* variable, int32_t* number);

/* A function's kernels in a module. */
struct tf_gpu_prepared {
  struct tf_gpu_prepared* next;
  const struct tf_gpu_function* function;
  void* kernels[]; /* the driver's, one for each launch; null at first */
};

/* Null: it is not in the list. */
struct tf_gpu_prepared* tf_rt_gpu_find_prepared(
    struct tf_gpu_prepared* const* list,
    const struct tf_gpu_function* function);
/* In no list. Null if there is no memory. */
struct tf_gpu_prepared* tf_rt_gpu_make_prepared(
    const struct tf_gpu_function* function);

/* Both with the lists locked. `next` is the module's. */
void tf_rt_gpu_add_prepared(struct tf_gpu_prepared* prepared,
                            struct tf_gpu_prepared** list);
void tf_rt_gpu_add_module(struct tf_gpu_module* module,
                          struct tf_gpu_module** next,
                          struct tf_gpu_state* state,
                          struct tf_gpu_state** states);

/* A driver's library, and the functions that are taken from it. */
struct tf_gpu_entry {
  const char* name;
  size_t offset; /* in the table of functions */
  int32_t required;
};
struct tf_gpu_library {
  const char* variable; /* that names another file */
  const char* file;
  const char* if_missing; /* "install ..." */
  const char* if_old;
  const struct tf_gpu_entry* entries;
  size_t entry_count;
};

/* The library, which stays in the process because its threads may run on. The
 * result is 0, or that of tf_rt_gpu_fail. */
int32_t tf_rt_gpu_open_library(const struct tf_gpu_library* library,
                               void* functions, void** opened);
/* Calls `open` unless `is_open`, and once at a time. The result is its. */
int32_t tf_rt_gpu_open_once(struct tf_mutex* mutex, _Atomic(int32_t)* is_open,
                            int32_t (*open)(void));

#endif /* TILEFARM_COMPILER_RUNTIME_GPU_MODULES_H_ */
