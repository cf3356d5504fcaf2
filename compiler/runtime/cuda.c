/* Launches kernels on NVIDIA's GPUs. Code is loaded once for each context, and
 * what is loaded stays until the artifact is unloaded, so that lists only grow
 * and are read without a lock. */
#include "compiler/runtime/cuda_driver.h"
#include "compiler/runtime/cuda_launch.h"
#include "compiler/runtime/cuda_place.h"
#include "compiler/runtime/gpu.h"
#include "compiler/runtime/gpu_modules.h"
#include "compiler/runtime/platform.h"

enum { kWorkspaceAlignment = 256, kLogBytes = 3072 };

/* Workspace of one stream, in drivers without pools of memory. */
struct Workspace {
  struct Workspace* next;
  void* stream;
  tf_device_pointer memory;
  size_t bytes;
};

/* An image that is loaded into a context. */
struct tf_gpu_module {
  struct tf_gpu_module* next;
  void* context;
  unsigned long long context_id; /* 0 if the driver has no numbers */
  void* module;
  void* pool; /* for workspace; null: `workspaces` */
  struct tf_gpu_prepared* prepared;
  /* Held while kernels that use `workspaces` are enqueued, since two calls
   * on one stream share a workspace. */
  struct tf_mutex workspace_mutex;
  struct Workspace* workspaces;
};

static struct tf_mutex mutex; /* of all below and of all lists' heads */
static struct tf_gpu_state* states;

typedef const struct tf_cuda_driver Driver;

/* Modules ------------------------------------------------------------------ */

static struct tf_gpu_module* FindModule(struct tf_gpu_state* state,
                                        void* context, unsigned long long id) {
  struct tf_gpu_module* module =
      __atomic_load_n(&state->modules, __ATOMIC_ACQUIRE);
  while (module != NULL &&
         (module->context != context || module->context_id != id)) {
    module = module->next;
  }
  return module;
}

/* Loads the image into the current context. The mutex is locked. */
static int32_t LoadModule(Driver* driver,
                          const struct tf_gpu_function* function, void* context,
                          unsigned long long id,
                          struct tf_gpu_module** result) {
  struct tf_gpu_state* state = function->state;
  *result = FindModule(state, context, id);
  if (*result != NULL) return 0;
  struct tf_gpu_module* module = tf_rt_gpu_zeroed(sizeof(struct tf_gpu_module));
  if (module == NULL) return tf_rt_gpu_no_memory();
  char log[kLogBytes];
  log[0] = 0;
  const int32_t options[] = {TF_CUDA_JIT_ERROR_LOG,
                             TF_CUDA_JIT_ERROR_LOG_BYTES};
  void* values[] = {log, (void*)(uintptr_t)(kLogBytes - 1)};
  const int32_t error =
      driver->load(&module->module, function->image->bytes, 2, options, values);
  if (error != 0) {
    log[kLogBytes - 1] = 0;
    free(module);
    return tf_rt_cuda_fail(driver, "cuModuleLoadDataEx", NULL, error,
                           log[0] == 0 ? NULL : log);
  }
  module->context = context;
  module->context_id = id;
  module->pool = tf_rt_cuda_make_pool(driver);
  tf_rt_gpu_add_module(module, &module->next, state, &states);
  *result = module;
  return 0;
}

/* Looks up the function's kernels. The mutex is locked. */
static int32_t PrepareKernels(Driver* driver, struct tf_gpu_module* module,
                              const struct tf_gpu_function* function,
                              struct tf_gpu_prepared** result) {
  *result = tf_rt_gpu_find_prepared(&module->prepared, function);
  if (*result != NULL) return 0;
  struct tf_gpu_prepared* prepared = tf_rt_gpu_make_prepared(function);
  if (prepared == NULL) return tf_rt_gpu_no_memory();
  for (int32_t i = 0; i < function->kernels; ++i) {
    const struct tf_gpu_kernel* kernel = &function->kernel[i];
    const char* call = "cuModuleGetFunction";
    int32_t error =
        driver->function(&prepared->kernels[i], module->module, kernel->name);
    if (error == 0 && kernel->shared_bytes > TF_CUDA_SHARED_BYTES_BY_DEFAULT) {
      call = "cuFuncSetAttribute (dynamic shared memory)";
      error = driver->set_attribute(prepared->kernels[i],
                                    TF_CUDA_FUNCTION_MAX_DYNAMIC_SHARED,
                                    (int32_t)kernel->shared_bytes);
    }
    if (error != 0) {
      free(prepared);
      return tf_rt_cuda_fail(driver, call, kernel->name, error, NULL);
    }
  }
  tf_rt_gpu_add_prepared(prepared, &module->prepared);
  *result = prepared;
  return 0;
}

static int32_t Prepare(Driver* driver, const struct tf_gpu_function* function,
                       void* context, struct tf_gpu_module** module,
                       struct tf_gpu_prepared** prepared) {
  const unsigned long long id = tf_rt_cuda_context_id(driver, context);
  *module = FindModule(function->state, context, id);
  *prepared = *module == NULL
                  ? NULL
                  : tf_rt_gpu_find_prepared(&(*module)->prepared, function);
  if (*prepared != NULL) return 0;
  pthread_mutex_lock(&mutex);
  int32_t status = LoadModule(driver, function, context, id, module);
  if (status == 0) {
    status = PrepareKernels(driver, *module, function, prepared);
  }
  pthread_mutex_unlock(&mutex);
  return status;
}

/* Workspace ---------------------------------------------------------------- */

static size_t WorkspaceBytes(const struct tf_gpu_function* function,
                             int32_t number) {
  return ((size_t)function->workspace_bytes[number] + kWorkspaceAlignment - 1) /
         kWorkspaceAlignment * kWorkspaceAlignment;
}

/* The stream's workspace, of at least `bytes`. The workspace's mutex is locked.
 */
static int32_t StreamWorkspace(Driver* driver, struct tf_gpu_module* module,
                               void* stream, size_t bytes,
                               tf_device_pointer* memory) {
  struct Workspace* workspace = module->workspaces;
  while (workspace != NULL && workspace->stream != stream) {
    workspace = workspace->next;
  }
  if (workspace == NULL) {
    workspace = tf_rt_gpu_zeroed(sizeof(struct Workspace));
    if (workspace == NULL) return tf_rt_gpu_no_memory();
    workspace->stream = stream;
    workspace->next = module->workspaces;
    module->workspaces = workspace;
  }
  if (workspace->bytes < bytes) {
    /* Freeing waits for the kernels that use it. */
    if (workspace->bytes > 0) driver->release(workspace->memory);
    workspace->bytes = 0;
    const int32_t error = driver->allocate(&workspace->memory, bytes);
    if (error != 0) {
      return tf_rt_cuda_fail(driver, "cuMemAlloc", "workspace", error, NULL);
    }
    workspace->bytes = bytes;
  }
  *memory = workspace->memory;
  return 0;
}

/* Launches ----------------------------------------------------------------- */

/* Computation on the host, in much less time than a launch takes. */
static int32_t EncodeMap(Driver* driver, const struct tf_gpu_kernel* kernel,
                         const struct tf_gpu_tensor_map* map,
                         tf_device_pointer memory, struct tf_cuda_map* out) {
  const int windows = map->spatial > 0;
  const char* call =
      windows ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled";
  if (windows ? driver->encode_windows == NULL : driver->encode_map == NULL) {
    return tf_rt_gpu_fail(TF_GPU_NO_DRIVER,
                          "%s needs %s: install a driver of CUDA 12.0 or later",
                          kernel->name, call);
  }
  uint64_t strides[TF_GPU_MAP_DIMS];
  uint32_t steps[TF_GPU_MAP_DIMS];
  uint64_t stride = map->element_bytes;
  for (uint32_t i = 0; i < map->dims; ++i) {
    stride *= map->sizes[i];
    strides[i] = stride;
    steps[i] = i >= 1 && i <= map->spatial ? map->steps[i - 1] : 1;
  }
  const int32_t error =
      windows
          ? driver->encode_windows(
                out, map->element_type, map->dims, memory, map->sizes, strides,
                map->lower, map->upper, map->box[0], map->box[map->dims - 1],
                steps, TF_CUDA_MAP_NO_INTERLEAVE, TF_CUDA_MAP_SWIZZLE_128_BYTES,
                TF_CUDA_MAP_PROMOTE_256_BYTES, TF_CUDA_MAP_FILL_ZEROS)
          : driver->encode_map(
                out, map->element_type, map->dims, memory, map->sizes, strides,
                map->box, steps, TF_CUDA_MAP_NO_INTERLEAVE,
                TF_CUDA_MAP_SWIZZLE_128_BYTES, TF_CUDA_MAP_PROMOTE_256_BYTES,
                TF_CUDA_MAP_FILL_ZEROS);
  if (error == 0) return 0;
  return tf_rt_cuda_fail(driver, call, kernel->name, error,
                         memory % 16 == 0 ? NULL
                                          : "parameters must be aligned to 16 "
                                            "bytes");
}

static int32_t Launch(Driver* driver, const struct tf_gpu_prepared* prepared,
                      tf_device_pointer* buffers, void* stream) {
  const struct tf_gpu_function* function = prepared->function;
  for (int32_t k = 0; k < function->kernels; ++k) {
    const struct tf_gpu_kernel* kernel = &function->kernel[k];
    void* arguments[TF_GPU_MAX_BUFFERS + TF_GPU_MAX_MAPS];
    for (uint32_t i = 0; i < kernel->buffers; ++i) {
      arguments[i] = &buffers[kernel->arguments[i]];
    }
    struct tf_cuda_map maps[TF_GPU_MAX_MAPS];
    for (uint32_t i = 0; i < kernel->maps; ++i) {
      const int32_t status =
          EncodeMap(driver, kernel, &kernel->map[i],
                    buffers[kernel->map[i].buffer], &maps[i]);
      if (status != 0) return status;
      arguments[kernel->buffers + i] = &maps[i];
    }
    const int32_t error =
        tf_rt_cuda_launch(driver, prepared->kernels[k], kernel, stream,
                          arguments, /*follows=*/k > 0);
    if (error != 0) {
      return tf_rt_cuda_fail(driver, "cuLaunchKernel", kernel->name, error,
                             NULL);
    }
  }
  return 0;
}

/* Enqueues the kernels; `buffers` has the parameters and room for workspaces.
 */
static int32_t Enqueue(Driver* driver, struct tf_gpu_module* module,
                       const struct tf_gpu_prepared* prepared,
                       tf_device_pointer* buffers, void* stream) {
  const struct tf_gpu_function* function = prepared->function;
  size_t bytes = 0;
  for (int32_t i = 0; i < function->workspaces; ++i) {
    bytes += WorkspaceBytes(function, i);
  }
  if (bytes == 0) return Launch(driver, prepared, buffers, stream);
  tf_rt_cuda_interrupt_sequence();
  tf_device_pointer memory = 0;
  int32_t status = 0;
  if (module->pool != NULL) {
    status = driver->allocate_async(&memory, bytes, module->pool, stream);
    if (status != 0) {
      return tf_rt_cuda_fail(driver, "cuMemAllocFromPoolAsync", "workspace",
                             status, NULL);
    }
  } else {
    pthread_mutex_lock(&module->workspace_mutex);
    status = StreamWorkspace(driver, module, stream, bytes, &memory);
  }
  tf_device_pointer next = memory;
  for (int32_t i = 0; i < function->workspaces; ++i) {
    buffers[function->parameters + i] = next;
    next += WorkspaceBytes(function, i);
  }
  /* NaN in every float type: reveals reads before the first write. */
  if (status == 0 && driver->fill != NULL &&
      getenv("TILEFARM_POISON_WORKSPACE") != NULL) {
    status = driver->fill(memory, 0xff, bytes, stream);
    if (status != 0) {
      tf_rt_cuda_fail(driver, "cuMemsetD8Async", "workspace", status, NULL);
    }
  }
  if (status == 0) status = Launch(driver, prepared, buffers, stream);
  if (module->pool == NULL) {
    pthread_mutex_unlock(&module->workspace_mutex);
    return status;
  }
  tf_rt_cuda_interrupt_sequence();
  const int32_t error = driver->release_async(memory, stream);
  if (status == 0 && error != 0) {
    status =
        tf_rt_cuda_fail(driver, "cuMemFreeAsync", "workspace", error, NULL);
  }
  return status;
}

/* Whether the device can use the memory as it is. 0, or an error. */
static int32_t IsDeviceMemory(Driver* driver, const void* pointer,
                              int32_t* result) {
  const tf_device_pointer address = (tf_device_pointer)(uintptr_t)pointer;
  uint32_t type = 0, managed = 0;
  *result = 0;
  int32_t error =
      driver->pointer_attribute(&type, TF_CUDA_POINTER_MEMORY_TYPE, address);
  /* Memory that the driver does not know is the host's. */
  if (error == TF_CUDA_INVALID_VALUE) return 0;
  if (error == 0 && type == TF_CUDA_MEMORY_TYPE_HOST) {
    error = driver->pointer_attribute(&managed, TF_CUDA_POINTER_IS_MANAGED,
                                      address);
    *result = error == 0 && (managed & 0xff) != 0;
  } else {
    *result = error == 0;
  }
  return error;
}

/* Allocates and fills device memory for the parameters that are on the host.
 * The first `*copies` numbers of `copied` are theirs, also after an error. */
static int32_t CopyToDevice(Driver* driver,
                            const struct tf_gpu_function* function,
                            void* const* parameters, tf_device_pointer* buffers,
                            uint16_t* copied, int32_t* copies) {
  *copies = 0;
  for (int32_t i = 0; i < function->parameters; ++i) {
    const size_t bytes = (size_t)function->parameter_bytes[i];
    buffers[i] = (tf_device_pointer)(uintptr_t)parameters[i];
    if (bytes == 0) continue;
    char object[32];
    snprintf(object, sizeof(object), "parameter %d", i);
    int32_t on_device = 0;
    int32_t error = IsDeviceMemory(driver, parameters[i], &on_device);
    if (error != 0) {
      return tf_rt_cuda_fail(driver, "cuPointerGetAttribute", object, error,
                             NULL);
    }
    if (on_device) continue;
    error = driver->allocate(&buffers[i], bytes);
    if (error != 0) {
      return tf_rt_cuda_fail(driver, "cuMemAlloc", object, error, NULL);
    }
    copied[(*copies)++] = (uint16_t)i;
    if ((function->parameter_access[i] & TF_GPU_READ) == 0) continue;
    error = driver->copy_to_device(buffers[i], parameters[i], bytes);
    if (error != 0) {
      return tf_rt_cuda_fail(driver, "cuMemcpyHtoD", object, error, NULL);
    }
  }
  return 0;
}

/* Waits, and copies the results to parameters on the host. */
static int32_t Finish(Driver* driver, const struct tf_gpu_function* function,
                      void* const* parameters, const tf_device_pointer* buffers,
                      const uint16_t* copied, int32_t copies, void* stream) {
  int32_t error = driver->synchronize(stream);
  if (error != 0) {
    return tf_rt_cuda_fail(
        driver, "cuStreamSynchronize",
        function->kernels == 1 ? function->kernel[0].name : NULL, error, NULL);
  }
  for (int32_t i = 0; i < copies; ++i) {
    const uint16_t number = copied[i];
    if ((function->parameter_access[number] & TF_GPU_WRITTEN) == 0) continue;
    error = driver->copy_to_host(parameters[number], buffers[number],
                                 (size_t)function->parameter_bytes[number]);
    if (error != 0) {
      char object[32];
      snprintf(object, sizeof(object), "parameter %d", number);
      return tf_rt_cuda_fail(driver, "cuMemcpyDtoH", object, error, NULL);
    }
  }
  return 0;
}

static int32_t RunAndWait(Driver* driver, struct tf_gpu_module* module,
                          const struct tf_gpu_prepared* prepared,
                          void* const* parameters, tf_device_pointer* buffers,
                          void* stream) {
  const struct tf_gpu_function* function = prepared->function;
  uint16_t copied[TF_GPU_MAX_BUFFERS];
  int32_t copies = 0;
  int32_t status =
      CopyToDevice(driver, function, parameters, buffers, copied, &copies);
  if (status == 0) {
    status = Enqueue(driver, module, prepared, buffers, stream);
    /* Kernels that run use the memory, also if a later one failed. */
    if (status != 0) driver->synchronize(stream);
  }
  if (status == 0) {
    status =
        Finish(driver, function, parameters, buffers, copied, copies, stream);
  }
  for (int32_t i = 0; i < copies; ++i) driver->release(buffers[copied[i]]);
  return status;
}

int32_t tf_rt_cuda_run(const struct tf_gpu_function* function,
                       void* const* parameters, void* stream, int32_t wait) {
  int32_t status = 0;
  Driver* driver = tf_rt_cuda_driver(&status);
  if (driver == NULL) return status;
  tf_device_pointer buffers[TF_GPU_MAX_BUFFERS];
  for (int32_t i = 0; i < function->parameters; ++i) {
    buffers[i] = (tf_device_pointer)(uintptr_t)parameters[i];
    if (buffers[i] == 0 && function->parameter_bytes[i] > 0) {
      return tf_rt_gpu_fail(TF_GPU_FAILED, "parameter %d is null", i);
    }
  }
  void* context = NULL;
  int32_t pushed = 0;
  status = tf_rt_cuda_enter(driver, &context, &pushed);
  if (status != 0) return status;
  struct tf_gpu_module* module = NULL;
  struct tf_gpu_prepared* prepared = NULL;
  status = Prepare(driver, function, context, &module, &prepared);
  if (status == 0) {
    status =
        wait ? RunAndWait(driver, module, prepared, parameters, buffers, stream)
             : Enqueue(driver, module, prepared, buffers, stream);
  }
  if (pushed) driver->pop(&context);
  return status;
}

/* Unloading ---------------------------------------------------------------- */

/* Also frees what the host has of it. */
static void UnloadModule(Driver* driver, struct tf_gpu_module* module) {
  /* A context that was destroyed has no modules and no memory. */
  const int32_t lives =
      tf_rt_cuda_context_id(driver, module->context) == module->context_id &&
      driver->push(module->context) == 0;
  if (lives) {
    driver->synchronize_context();
    driver->unload(module->module);
  }
  /* Pools are the device's. */
  if (module->pool != NULL) driver->destroy_pool(module->pool);
  while (module->workspaces != NULL) {
    struct Workspace* workspace = module->workspaces;
    module->workspaces = workspace->next;
    if (lives && workspace->bytes > 0) driver->release(workspace->memory);
    free(workspace);
  }
  while (module->prepared != NULL) {
    struct tf_gpu_prepared* prepared = module->prepared;
    module->prepared = prepared->next;
    free(prepared);
  }
  void* popped = NULL;
  if (lives) driver->pop(&popped);
  free(module);
}

void tf_rt_cuda_shutdown(void) {
  int32_t status = 0;
  /* Opens nothing: without the driver there is nothing to unload. */
  if (states != NULL || tf_rt_cuda_has_primary()) {
    Driver* driver = tf_rt_cuda_driver(&status);
    for (; states != NULL; states = states->next) {
      while (states->modules != NULL) {
        struct tf_gpu_module* module = states->modules;
        states->modules = module->next;
        UnloadModule(driver, module);
      }
    }
    tf_rt_cuda_place_shutdown(driver);
  }
  tf_rt_cuda_launch_shutdown();
  tf_rt_cuda_driver_shutdown();
  tf_rt_gpu_error_shutdown();
}
