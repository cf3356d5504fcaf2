/* Launches kernels by OpenCL. A program is built once for each context and
 * device, and stays until the artifact is unloaded. Lists of modules and of
 * functions only grow, so that they are read without a lock. */
#include "compiler/runtime/gpu.h"
#include "compiler/runtime/gpu_modules.h"
#include "compiler/runtime/opencl_driver.h"
#include "compiler/runtime/opencl_place.h"
#include "compiler/runtime/platform.h"

enum { kLogBytes = 3072 };

/* Without warnings, which some drivers put after the errors in the log. */
static const char kBuildOptions[] = "-cl-std=CL1.2 -w";

/* Workspaces of one queue. Calls share them, because the queue is in order. */
struct Workspace {
  struct Workspace* next;
  void* queue;
  /* By number of the workspace; 0 bytes: not made. */
  void* memory[TF_GPU_MAX_BUFFERS]; /* cl_mem */
  size_t bytes[TF_GPU_MAX_BUFFERS];
};

/* A program that is built in a context for a device. */
struct tf_gpu_module {
  struct tf_gpu_module* next;
  void* context; /* retained, so that no other gets its address */
  void* device;
  void* program;
  struct tf_gpu_prepared* prepared;
  /* Held while a call is enqueued: a kernel has one set of arguments, and calls
   * on one queue share workspaces. */
  struct tf_mutex launch_mutex;
  struct Workspace* workspaces;
};

static struct tf_mutex mutex; /* of all below and of all lists' heads */
static struct tf_gpu_state* states;

typedef const struct tf_opencl_driver Driver;

/* Modules ------------------------------------------------------------------ */

static struct tf_gpu_module* FindModule(struct tf_gpu_state* state,
                                        const struct tf_opencl_place* place) {
  struct tf_gpu_module* module =
      __atomic_load_n(&state->modules, __ATOMIC_ACQUIRE);
  while (module != NULL && (module->context != place->context ||
                            module->device != place->device)) {
    module = module->next;
  }
  return module;
}

/* Sets the error of clBuildProgram, with the end of the log. */
static int32_t FailBuild(Driver* driver, void* program, void* device,
                         int32_t error) {
  size_t bytes = 0;
  char* log = NULL;
  if (driver->build_info(program, device, TF_CL_PROGRAM_BUILD_LOG, 0, NULL,
                         &bytes) == 0 &&
      bytes > 0) {
    log = tf_rt_gpu_zeroed(bytes + 1);
  }
  const char* end_of_log = NULL;
  if (log != NULL &&
      driver->build_info(program, device, TF_CL_PROGRAM_BUILD_LOG, bytes, log,
                         NULL) == 0) {
    while (bytes > 0 && (unsigned char)log[bytes - 1] <= ' ') --bytes;
    log[bytes] = 0;
    if (bytes > 0)
      end_of_log = bytes > kLogBytes ? log + bytes - kLogBytes : log;
  }
  const int32_t status =
      tf_rt_opencl_fail("clBuildProgram", NULL, error, end_of_log);
  free(log);
  return status;
}

static int32_t BuildProgram(Driver* driver, const struct tf_gpu_image* image,
                            const struct tf_opencl_place* place,
                            void** program) {
  const char* text = image->bytes;
  int32_t error = 0;
  *program = driver->make_program(place->context, 1, &text, NULL, &error);
  if (error != 0) {
    return tf_rt_opencl_fail("clCreateProgramWithSource", NULL, error, NULL);
  }
  error = driver->build(*program, 1, &place->device, kBuildOptions, NULL, NULL);
  if (error == 0) return 0;
  const int32_t status = FailBuild(driver, *program, place->device, error);
  driver->release_program(*program);
  return status;
}

/* Builds the program for the place. The mutex is locked. */
static int32_t LoadModule(Driver* driver,
                          const struct tf_gpu_function* function,
                          const struct tf_opencl_place* place,
                          struct tf_gpu_module** result) {
  struct tf_gpu_state* state = function->state;
  *result = FindModule(state, place);
  if (*result != NULL) return 0;
  struct tf_gpu_module* module = tf_rt_gpu_zeroed(sizeof(struct tf_gpu_module));
  if (module == NULL) return tf_rt_gpu_no_memory();
  const int32_t status =
      BuildProgram(driver, function->image, place, &module->program);
  if (status != 0) {
    free(module);
    return status;
  }
  driver->retain_context(place->context);
  module->context = place->context;
  module->device = place->device;
  tf_rt_gpu_add_module(module, &module->next, state, &states);
  *result = module;
  return 0;
}

/* Fails if a kernel needs more local memory than the device has. Drivers report
 * that late: in the build of all kernels, or in the launch. */
static int32_t CheckLocalMemory(Driver* driver,
                                const struct tf_gpu_function* function,
                                void* device) {
  uint64_t most = 0;
  const int32_t error = driver->device_info(device, TF_CL_DEVICE_LOCAL_MEM_SIZE,
                                            sizeof(most), &most, NULL);
  if (error != 0) {
    return tf_rt_opencl_fail("clGetDeviceInfo", NULL, error, NULL);
  }
  for (int32_t i = 0; i < function->kernels; ++i) {
    const struct tf_gpu_kernel* kernel = &function->kernel[i];
    if (kernel->shared_bytes > most) {
      return tf_rt_gpu_fail(-TF_CL_OUT_OF_RESOURCES,
                            "the kernel %s needs %u bytes of local memory; the "
                            "device has %llu",
                            kernel->name, kernel->shared_bytes,
                            (unsigned long long)most);
    }
  }
  return 0;
}

/* Makes a launch's kernel, and checks that its groups can run. */
static int32_t MakeKernel(Driver* driver, const struct tf_gpu_module* module,
                          const struct tf_gpu_kernel* kernel, void** result) {
  int32_t error = 0;
  void* made = driver->make_kernel(module->program, kernel->name, &error);
  if (error != 0) {
    return tf_rt_opencl_fail("clCreateKernel", kernel->name, error, NULL);
  }
  *result = made;
  /* Depends on the registers that the kernel uses. */
  size_t most = 0;
  error =
      driver->kernel_info(made, module->device, TF_CL_KERNEL_WORK_GROUP_SIZE,
                          sizeof(most), &most, NULL);
  if (error != 0) {
    return tf_rt_opencl_fail("clGetKernelWorkGroupInfo", kernel->name, error,
                             NULL);
  }
  const size_t items =
      (size_t)kernel->block[0] * kernel->block[1] * kernel->block[2];
  if (items <= most) return 0;
  return tf_rt_gpu_fail(-TF_CL_INVALID_WORK_GROUP_SIZE,
                        "the kernel %s has groups of %llu work items; the "
                        "device can run %llu",
                        kernel->name, (unsigned long long)items,
                        (unsigned long long)most);
}

static void ReleasePrepared(Driver* driver, struct tf_gpu_prepared* prepared) {
  for (int32_t i = 0; i < prepared->function->kernels; ++i) {
    if (prepared->kernels[i] != NULL) {
      driver->release_kernel(prepared->kernels[i]);
    }
  }
  free(prepared);
}

/* Makes the function's kernels. The mutex is locked. */
static int32_t PrepareKernels(Driver* driver, struct tf_gpu_module* module,
                              const struct tf_gpu_function* function,
                              struct tf_gpu_prepared** result) {
  *result = tf_rt_gpu_find_prepared(&module->prepared, function);
  if (*result != NULL) return 0;
  struct tf_gpu_prepared* prepared = tf_rt_gpu_make_prepared(function);
  if (prepared == NULL) return tf_rt_gpu_no_memory();
  for (int32_t i = 0; i < function->kernels; ++i) {
    const int32_t status =
        MakeKernel(driver, module, &function->kernel[i], &prepared->kernels[i]);
    if (status != 0) {
      ReleasePrepared(driver, prepared);
      return status;
    }
  }
  tf_rt_gpu_add_prepared(prepared, &module->prepared);
  *result = prepared;
  return 0;
}

static int32_t Prepare(Driver* driver, const struct tf_gpu_function* function,
                       const struct tf_opencl_place* place,
                       struct tf_gpu_module** module,
                       struct tf_gpu_prepared** prepared) {
  *module = FindModule(function->state, place);
  *prepared = *module == NULL
                  ? NULL
                  : tf_rt_gpu_find_prepared(&(*module)->prepared, function);
  if (*prepared != NULL) return 0;
  pthread_mutex_lock(&mutex);
  int32_t status = CheckLocalMemory(driver, function, place->device);
  if (status == 0) status = LoadModule(driver, function, place, module);
  if (status == 0) {
    status = PrepareKernels(driver, *module, function, prepared);
  }
  pthread_mutex_unlock(&mutex);
  return status;
}

/* Launches ----------------------------------------------------------------- */

/* Fills the workspace with NaN in every float type, which reveals reads before
 * the first write. */
static int32_t Poison(Driver* driver, void* memory, size_t bytes, void* queue) {
  const uint8_t byte = 0xff;
  const int32_t error =
      driver->fill(queue, memory, &byte, 1, 0, bytes, 0, NULL, NULL);
  if (error == 0) return 0;
  return tf_rt_opencl_fail("clEnqueueFillBuffer", "workspace", error, NULL);
}

/* Sets the function's workspaces in `buffers`. The launch mutex is locked. */
static int32_t UseWorkspaces(Driver* driver, struct tf_gpu_module* module,
                             const struct tf_gpu_function* function,
                             void* queue, void** buffers) {
  if (function->workspaces == 0) return 0;
  struct Workspace* workspace = module->workspaces;
  while (workspace != NULL && workspace->queue != queue) {
    workspace = workspace->next;
  }
  if (workspace == NULL) {
    workspace = tf_rt_gpu_zeroed(sizeof(struct Workspace));
    if (workspace == NULL) return tf_rt_gpu_no_memory();
    workspace->queue = queue;
    workspace->next = module->workspaces;
    module->workspaces = workspace;
  }
  const int32_t poisons = getenv("TILEFARM_POISON_WORKSPACE") != NULL;
  for (int32_t i = 0; i < function->workspaces; ++i) {
    const size_t bytes = (size_t)function->workspace_bytes[i];
    if (workspace->bytes[i] < bytes) {
      /* Kernels that are enqueued keep the old memory until they have ended. */
      if (workspace->bytes[i] > 0) driver->release_buffer(workspace->memory[i]);
      workspace->bytes[i] = 0;
      int32_t error = 0;
      workspace->memory[i] = driver->make_buffer(
          module->context, TF_CL_MEM_READ_WRITE, bytes, NULL, &error);
      if (error != 0) {
        return tf_rt_opencl_fail("clCreateBuffer", "workspace", error, NULL);
      }
      workspace->bytes[i] = bytes;
    }
    if (bytes == 0) continue;
    buffers[function->parameters + i] = workspace->memory[i];
    if (!poisons) continue;
    const int32_t status =
        Poison(driver, workspace->memory[i], workspace->bytes[i], queue);
    if (status != 0) return status;
  }
  return 0;
}

static int32_t Launch(Driver* driver, const struct tf_gpu_kernel* kernel,
                      void* prepared, void* const* buffers, void* queue,
                      void** event) {
  for (uint32_t i = 0; i < kernel->buffers; ++i) {
    const int32_t error = driver->set_argument(prepared, i, sizeof(void*),
                                               &buffers[kernel->arguments[i]]);
    if (error != 0) {
      char object[256];
      snprintf(object, sizeof(object), "argument %u of %s", i, kernel->name);
      return tf_rt_opencl_fail("clSetKernelArg", object, error, NULL);
    }
  }
  size_t global[3], local[3];
  for (int32_t axis = 0; axis < 3; ++axis) {
    local[axis] = kernel->block[axis];
    global[axis] = (size_t)kernel->grid[axis] * kernel->block[axis];
  }
  const int32_t error =
      driver->launch(queue, prepared, 3, NULL, global, local, 0, NULL, event);
  if (error == 0) return 0;
  return tf_rt_opencl_fail("clEnqueueNDRangeKernel", kernel->name, error, NULL);
}

/* Enqueues the kernels; `buffers` has the parameters and room for workspaces,
 * all null. `events` gets the event of each launch, if not null. */
static int32_t Enqueue(Driver* driver, struct tf_gpu_module* module,
                       const struct tf_gpu_prepared* prepared, void** buffers,
                       void* queue, void** events) {
  const struct tf_gpu_function* function = prepared->function;
  pthread_mutex_lock(&module->launch_mutex);
  int32_t status = UseWorkspaces(driver, module, function, queue, buffers);
  for (int32_t i = 0; status == 0 && i < function->kernels; ++i) {
    status = Launch(driver, &function->kernel[i], prepared->kernels[i], buffers,
                    queue, events == NULL ? NULL : &events[i]);
  }
  pthread_mutex_unlock(&module->launch_mutex);
  return status;
}

static int32_t EnqueueAndFlush(Driver* driver, struct tf_gpu_module* module,
                               const struct tf_gpu_prepared* prepared,
                               void** buffers, void* queue) {
  const int32_t status =
      Enqueue(driver, module, prepared, buffers, queue, NULL);
  const int32_t error = driver->flush(queue);
  if (status != 0 || error == 0) return status;
  return tf_rt_opencl_fail("clFlush", NULL, error, NULL);
}

/* Calls that wait ---------------------------------------------------------- */

/* Makes and fills a buffer for each parameter that is not empty; the others'
 * stay null, also after an error. Writes are enqueued. */
static int32_t CopyToDevice(Driver* driver,
                            const struct tf_gpu_function* function,
                            void* const* parameters,
                            const struct tf_opencl_place* place,
                            void** buffers) {
  for (int32_t i = 0; i < function->parameters; ++i) {
    const size_t bytes = (size_t)function->parameter_bytes[i];
    if (bytes == 0) continue;
    char object[32];
    snprintf(object, sizeof(object), "parameter %d", i);
    int32_t error = 0;
    void* buffer = driver->make_buffer(place->context, TF_CL_MEM_READ_WRITE,
                                       bytes, NULL, &error);
    if (error != 0) {
      return tf_rt_opencl_fail("clCreateBuffer", object, error, NULL);
    }
    buffers[i] = buffer;
    if ((function->parameter_access[i] & TF_GPU_READ) == 0) continue;
    error = driver->write(place->queue, buffer, 0, 0, bytes, parameters[i], 0,
                          NULL, NULL);
    if (error != 0) {
      return tf_rt_opencl_fail("clEnqueueWriteBuffer", object, error, NULL);
    }
  }
  return 0;
}

/* Waits for the kernels and copies the results to the parameters. */
static int32_t Finish(Driver* driver, const struct tf_gpu_function* function,
                      void* const* parameters, void* const* buffers,
                      void* const* events, void* queue) {
  const int32_t finish_error = driver->finish(queue);
  /* Some drivers report a kernel that failed in its event alone. */
  for (int32_t i = 0; i < function->kernels; ++i) {
    int32_t result = 0;
    const int32_t error =
        driver->event_info(events[i], TF_CL_EVENT_COMMAND_EXECUTION_STATUS,
                           sizeof(result), &result, NULL);
    if (error != 0 || result < 0) {
      return tf_rt_opencl_fail(error != 0 ? "clGetEventInfo" : "the run",
                               function->kernel[i].name,
                               error != 0 ? error : result, NULL);
    }
  }
  if (finish_error != 0) {
    return tf_rt_opencl_fail(
        "clFinish", function->kernels == 1 ? function->kernel[0].name : NULL,
        finish_error, NULL);
  }
  for (int32_t i = 0; i < function->parameters; ++i) {
    if (buffers[i] == NULL ||
        (function->parameter_access[i] & TF_GPU_WRITTEN) == 0) {
      continue;
    }
    const int32_t error = driver->read(queue, buffers[i], 1, 0,
                                       (size_t)function->parameter_bytes[i],
                                       parameters[i], 0, NULL, NULL);
    if (error != 0) {
      char object[32];
      snprintf(object, sizeof(object), "parameter %d", i);
      return tf_rt_opencl_fail("clEnqueueReadBuffer", object, error, NULL);
    }
  }
  return 0;
}

static int32_t RunAndWait(Driver* driver, struct tf_gpu_module* module,
                          const struct tf_gpu_prepared* prepared,
                          void* const* parameters, void** buffers,
                          const struct tf_opencl_place* place) {
  const struct tf_gpu_function* function = prepared->function;
  void** events =
      tf_rt_gpu_zeroed((size_t)(function->kernels + 1) * sizeof(void*));
  if (events == NULL) return tf_rt_gpu_no_memory();
  int32_t status = CopyToDevice(driver, function, parameters, place, buffers);
  if (status == 0) {
    status = Enqueue(driver, module, prepared, buffers, place->queue, events);
  }
  if (status == 0) {
    status =
        Finish(driver, function, parameters, buffers, events, place->queue);
  } else {
    /* Copies that are enqueued read the caller's memory. */
    driver->finish(place->queue);
  }
  for (int32_t i = 0; i < function->kernels; ++i) {
    if (events[i] != NULL) driver->release_event(events[i]);
  }
  for (int32_t i = 0; i < function->parameters; ++i) {
    if (buffers[i] != NULL) driver->release_buffer(buffers[i]);
  }
  free(events);
  return status;
}

int32_t tf_rt_opencl_run(const struct tf_gpu_function* function,
                         void* const* parameters, void* queue, int32_t wait) {
  int32_t status = 0;
  Driver* driver = tf_rt_opencl_driver(&status);
  if (driver == NULL) return status;
  void* buffers[TF_GPU_MAX_BUFFERS]; /* cl_mem */
  for (int32_t i = 0; i < function->parameters + function->workspaces; ++i) {
    buffers[i] = NULL;
  }
  for (int32_t i = 0; i < function->parameters; ++i) {
    if (parameters[i] == NULL && function->parameter_bytes[i] > 0) {
      return tf_rt_gpu_fail(TF_GPU_FAILED, "parameter %d is null", i);
    }
    if (!wait) buffers[i] = parameters[i];
  }
  struct tf_opencl_place place;
  status = tf_rt_opencl_place(driver, queue, wait, &place);
  if (status != 0) return status;
  struct tf_gpu_module* module = NULL;
  struct tf_gpu_prepared* prepared = NULL;
  status = Prepare(driver, function, &place, &module, &prepared);
  if (status != 0) return status;
  return wait
             ? RunAndWait(driver, module, prepared, parameters, buffers, &place)
             : EnqueueAndFlush(driver, module, prepared, buffers, place.queue);
}

/* Unloading ---------------------------------------------------------------- */

/* Also frees what the host has of it. */
static void UnloadModule(Driver* driver, struct tf_gpu_module* module) {
  while (module->workspaces != NULL) {
    struct Workspace* workspace = module->workspaces;
    module->workspaces = workspace->next;
    for (int32_t i = 0; i < TF_GPU_MAX_BUFFERS; ++i) {
      if (workspace->bytes[i] > 0) driver->release_buffer(workspace->memory[i]);
    }
    free(workspace);
  }
  while (module->prepared != NULL) {
    struct tf_gpu_prepared* prepared = module->prepared;
    module->prepared = prepared->next;
    ReleasePrepared(driver, prepared);
  }
  driver->release_program(module->program);
  driver->release_context(module->context);
  free(module);
}

void tf_rt_opencl_shutdown(void) {
  if (tf_rt_opencl_driver_is_alive()) {
    int32_t status = 0;
    Driver* driver = tf_rt_opencl_driver(&status);
    for (; states != NULL; states = states->next) {
      while (states->modules != NULL) {
        struct tf_gpu_module* module = states->modules;
        states->modules = module->next;
        UnloadModule(driver, module);
      }
    }
    tf_rt_opencl_place_shutdown(driver);
  }
  tf_rt_opencl_driver_shutdown();
  tf_rt_gpu_error_shutdown();
}
