/* Models on NVIDIA's GPUs. An instance has one block of memory and one stream;
 * all instances in a context share the weights. The steps of a run are recorded
 * once and then launched as one graph, since their addresses never change. */
#include "compiler/runtime/cuda_driver.h"
#include "compiler/runtime/cuda_launch.h"
#include "compiler/runtime/cuda_place.h"
#include "compiler/runtime/device_model.h"
#include "compiler/runtime/gpu.h"
#include "compiler/runtime/gpu_modules.h"
#include "compiler/runtime/platform.h"

typedef const struct tf_cuda_driver Driver;

/* The steps for one combination of shapes. */
struct Recording {
  int32_t has_run; /* which loaded the code; that cannot be recorded */
  void* executable;
};

struct Instance {
  const struct tf_rt_model* model;
  void* context;
  unsigned long long context_id;
  void* stream;
  int32_t owns_stream;
  int32_t records;
  tf_device_pointer memory;
  struct tf_device_weights* weights;
  void** operands;
  struct Recording* recordings; /* by variant */
};

static struct tf_mutex mutex; /* of the list */
static struct tf_device_weights* all_weights;

/* Workspaces outside of pools may be replaced after a graph knows them. */
static int32_t CanRecord(Driver* driver) {
  return driver->begin_capture != NULL && driver->end_capture != NULL &&
         driver->instantiate != NULL && driver->launch_graph != NULL &&
         driver->destroy_graph != NULL && driver->destroy_executable != NULL &&
         tf_rt_cuda_has_pools(driver);
}

static int32_t Allocate(Driver* driver, int64_t bytes, const char* what,
                        tf_device_pointer* memory) {
  if (bytes == 0) return 0;
  const int32_t error = driver->allocate(memory, (size_t)bytes);
  if (error == 0) return 0;
  return tf_rt_cuda_fail(driver, "cuMemAlloc", what, error, NULL);
}

/* Uploads the weights unless an instance has. The mutex is locked. */
static int32_t UseWeights(Driver* driver, struct Instance* instance,
                          const char* bytes) {
  const int64_t size = instance->model->device->model->weights_bytes;
  instance->weights = tf_rt_device_weights_use(
      all_weights, instance->model, instance->context, instance->context_id);
  if (size == 0 || instance->weights != NULL) return 0;
  struct tf_device_weights* made =
      tf_rt_gpu_zeroed(sizeof(struct tf_device_weights));
  if (made == NULL) return tf_rt_gpu_no_memory();
  int32_t status = Allocate(driver, size, "the weights", &made->address);
  if (status == 0) {
    const int32_t error =
        driver->copy_to_device(made->address, bytes, (size_t)size);
    if (error != 0) {
      driver->release(made->address);
      status =
          tf_rt_cuda_fail(driver, "cuMemcpyHtoD", "the weights", error, NULL);
    }
  }
  if (status != 0) {
    free(made);
    return status;
  }
  made->model = instance->model;
  made->context = instance->context;
  made->context_id = instance->context_id;
  tf_rt_device_weights_add(made, &all_weights);
  instance->weights = made;
  return 0;
}

/* `stream` may be null. The context is current. */
static int32_t Fill(Driver* driver, struct Instance* instance,
                    const char* weights, void* stream) {
  const struct tf_gpu_model* model = instance->model->device->model;
  instance->operands =
      tf_rt_gpu_zeroed((size_t)model->operand_count * sizeof(void*));
  instance->recordings = tf_rt_gpu_zeroed(
      (size_t)instance->model->variant_count * sizeof(struct Recording));
  if (instance->operands == NULL || instance->recordings == NULL) {
    return tf_rt_gpu_no_memory();
  }
  instance->records = CanRecord(driver);
  instance->stream = stream;
  if (stream == NULL) {
    const int32_t error =
        driver->make_stream(&instance->stream, TF_CUDA_STREAM_NON_BLOCKING);
    if (error != 0) {
      return tf_rt_cuda_fail(driver, "cuStreamCreate", NULL, error, NULL);
    }
    instance->owns_stream = 1;
  }
  int32_t status = Allocate(driver, model->memory_bytes, "the model's values",
                            &instance->memory);
  if (status != 0) return status;
  /* NaN in every float type: reveals reads before the first write. */
  if (model->memory_bytes > 0 && driver->fill != NULL &&
      getenv("TILEFARM_POISON_WORKSPACE") != NULL) {
    const int32_t error = driver->fill(
        instance->memory, 0xff, (size_t)model->memory_bytes, instance->stream);
    if (error != 0) {
      return tf_rt_cuda_fail(driver, "cuMemsetD8Async", "the model's values",
                             error, NULL);
    }
  }
  pthread_mutex_lock(&mutex);
  status = UseWeights(driver, instance, weights);
  pthread_mutex_unlock(&mutex);
  if (status != 0) return status;
  for (int64_t i = 0; i < model->operand_count; ++i) {
    const struct tf_gpu_operand* operand = &model->operands[i];
    const tf_device_pointer base =
        operand->in_weights ? instance->weights->address : instance->memory;
    instance->operands[i] =
        (void*)(uintptr_t)(base + (tf_device_pointer)operand->offset);
  }
  return 0;
}

void tf_rt_cuda_model_destroy(void* pointer) {
  struct Instance* instance = pointer;
  int32_t status = 0;
  Driver* driver = tf_rt_cuda_driver(&status);
  /* A context that was destroyed has no memory and no streams. */
  const int32_t lives = driver != NULL &&
                        tf_rt_cuda_context_id(driver, instance->context) ==
                            instance->context_id &&
                        driver->push(instance->context) == 0;
  if (lives) {
    if (instance->stream != NULL) driver->synchronize(instance->stream);
    for (int32_t i = 0;
         instance->recordings != NULL && i < instance->model->variant_count;
         ++i) {
      void* executable = instance->recordings[i].executable;
      if (executable != NULL) driver->destroy_executable(executable);
    }
    if (instance->owns_stream) driver->destroy_stream(instance->stream);
    if (instance->memory != 0) driver->release(instance->memory);
  }
  pthread_mutex_lock(&mutex);
  struct tf_device_weights* unused =
      tf_rt_device_weights_drop(instance->weights, &all_weights);
  pthread_mutex_unlock(&mutex);
  if (unused != NULL && lives) driver->release(unused->address);
  free(unused);
  void* popped = NULL;
  if (lives) driver->pop(&popped);
  free(instance->operands);
  free(instance->recordings);
  free(instance);
}

int32_t tf_rt_cuda_model_create(const struct tf_rt_model* model,
                                const char* weights, void* stream,
                                void** result) {
  int32_t status = 0;
  Driver* driver = tf_rt_cuda_driver(&status);
  if (driver == NULL) return status;
  struct Instance* instance = tf_rt_gpu_zeroed(sizeof(struct Instance));
  if (instance == NULL) return tf_rt_gpu_no_memory();
  int32_t pushed = 0;
  status = tf_rt_cuda_enter(driver, &instance->context, &pushed);
  if (status != 0) {
    free(instance);
    return status;
  }
  void* context = instance->context;
  instance->model = model;
  instance->context_id = tf_rt_cuda_context_id(driver, context);
  status = Fill(driver, instance, weights, stream);
  if (status == 0) {
    *result = instance;
  } else {
    tf_rt_cuda_model_destroy(instance);
  }
  if (pushed) driver->pop(&context);
  return status;
}

/* The steps, enqueued. */
static int32_t Step(const struct Instance* instance,
                    const struct tf_rt_variant* variant, void* stream) {
  tf_rt_cuda_begin_sequence();
  const int32_t status = variant->device_steps(stream, instance->operands);
  tf_rt_cuda_end_sequence();
  return status;
}

/* Makes a graph of the steps. */
static int32_t RecordOnce(Driver* driver, const struct Instance* instance,
                          const struct tf_rt_variant* variant,
                          struct Recording* recording) {
  int32_t error =
      driver->begin_capture(instance->stream, TF_CUDA_CAPTURE_RELAXED);
  if (error != 0) {
    return tf_rt_cuda_fail(driver, "cuStreamBeginCapture", NULL, error, NULL);
  }
  const int32_t status = Step(instance, variant, instance->stream);
  void* graph = NULL;
  error = driver->end_capture(instance->stream, &graph);
  const char* call = "cuStreamEndCapture";
  if (status == 0 && error == 0) {
    call = "cuGraphInstantiate";
    error = driver->instantiate(&recording->executable, graph, 0);
  }
  if (graph != NULL) driver->destroy_graph(graph);
  if (status != 0 || error == 0) return status;
  recording->executable = NULL;
  return tf_rt_cuda_fail(driver, call, NULL, error, NULL);
}

/* Likewise; drivers that cannot record kernels that overlap make one of kernels
 * that do not. */
static int32_t Record(Driver* driver, const struct Instance* instance,
                      const struct tf_rt_variant* variant,
                      struct Recording* recording) {
  const int32_t status = RecordOnce(driver, instance, variant, recording);
  if (status == 0 || !tf_rt_cuda_overlaps(driver)) return status;
  tf_rt_cuda_set_overlaps(0);
  const int32_t again = RecordOnce(driver, instance, variant, recording);
  if (again != 0) tf_rt_cuda_set_overlaps(1);
  return again;
}

static int32_t RunSteps(Driver* driver, const struct Instance* instance,
                        const struct tf_rt_variant* variant, void* stream) {
  struct Recording* recording =
      &instance->recordings[variant - instance->model->variants];
  if (!instance->records || !recording->has_run) {
    recording->has_run = 1;
    return Step(instance, variant, stream);
  }
  if (recording->executable == NULL) {
    const int32_t status = Record(driver, instance, variant, recording);
    if (status != 0) return status;
  }
  const int32_t error = driver->launch_graph(recording->executable, stream);
  if (error == 0) return 0;
  return tf_rt_cuda_fail(driver, "cuGraphLaunch", NULL, error, NULL);
}

static int32_t Copy(Driver* driver, tf_device_pointer to,
                    tf_device_pointer from, int64_t bytes, const char* what,
                    int32_t number, void* stream) {
  if (bytes == 0) return 0;
  const int32_t error = driver->copy(to, from, (size_t)bytes, stream);
  if (error == 0) return 0;
  char object[32];
  snprintf(object, sizeof(object), "%s %d", what, number);
  return tf_rt_cuda_fail(driver, "cuMemcpyAsync", object, error, NULL);
}

static tf_device_pointer Address(const void* pointer) {
  return (tf_device_pointer)(uintptr_t)pointer;
}

/* The copies and the steps, enqueued. */
static int32_t Enqueue(Driver* driver, const struct Instance* instance,
                       const struct tf_rt_variant* variant,
                       const void* const* inputs, void* const* outputs,
                       void* stream) {
  const struct tf_rt_model* model = instance->model;
  const struct tf_gpu_model* places = model->device->model;
  int32_t status = 0;
  for (int32_t i = 0; status == 0 && i < model->input_count; ++i) {
    status = Copy(
        driver, instance->memory + (tf_device_pointer)places->input_offsets[i],
        Address(inputs[i]), variant->input_bytes[i], "input", i, stream);
  }
  if (status == 0) status = RunSteps(driver, instance, variant, stream);
  for (int32_t i = 0; status == 0 && i < model->output_count; ++i) {
    status =
        Copy(driver, Address(outputs[i]),
             instance->memory + (tf_device_pointer)places->output_offsets[i],
             variant->output_bytes[i], "output", i, stream);
  }
  return status;
}

int32_t tf_rt_cuda_model_run(void* pointer, const struct tf_rt_variant* variant,
                             const void* const* inputs, void* const* outputs,
                             void* stream, int32_t wait) {
  struct Instance* instance = pointer;
  int32_t status =
      tf_rt_device_check_tensors(instance->model, variant, inputs, outputs);
  if (status != 0) return status;
  Driver* driver = tf_rt_cuda_driver(&status);
  if (driver == NULL) return status;
  int32_t error = driver->push(instance->context);
  if (error != 0) {
    return tf_rt_cuda_fail(driver, "cuCtxPushCurrent", NULL, error, NULL);
  }
  if (wait) stream = instance->stream;
  status = Enqueue(driver, instance, variant, inputs, outputs, stream);
  /* Copies that are enqueued use the caller's memory, also after an error. */
  if (wait) {
    error = driver->synchronize(stream);
    if (status == 0 && error != 0) {
      status =
          tf_rt_cuda_fail(driver, "cuStreamSynchronize", NULL, error, NULL);
    }
  }
  void* popped = NULL;
  driver->pop(&popped);
  return status;
}

int32_t tf_rt_cuda_copy(void* stream, void* to, void* from, int64_t bytes) {
  int32_t status = 0;
  Driver* driver = tf_rt_cuda_driver(&status);
  if (driver == NULL) return status;
  tf_rt_cuda_interrupt_sequence();
  return Copy(driver, Address(to), Address(from), bytes, "copied output", 0,
              stream);
}
