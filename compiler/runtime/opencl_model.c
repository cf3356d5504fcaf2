/* Models on devices of OpenCL. An instance has one buffer, of which every
 * operand of a step is a part; all instances in a context share the weights. */
#include "compiler/runtime/device_model.h"
#include "compiler/runtime/gpu.h"
#include "compiler/runtime/gpu_modules.h"
#include "compiler/runtime/opencl_driver.h"
#include "compiler/runtime/opencl_place.h"
#include "compiler/runtime/platform.h"

typedef const struct tf_opencl_driver Driver;

struct Instance {
  const struct tf_rt_model* model;
  struct tf_opencl_place place;
  void* memory; /* cl_mem; null if it has no bytes */
  struct tf_device_weights* weights;
  void** operands; /* cl_mem; null if one has no bytes */
};

static struct tf_mutex mutex; /* of the list */
static struct tf_device_weights* all_weights;

static int32_t MakeBuffer(Driver* driver, void* context, int64_t bytes,
                          const char* what, void** buffer) {
  if (bytes == 0) return 0;
  int32_t error = 0;
  void* made = driver->make_buffer(context, TF_CL_MEM_READ_WRITE, (size_t)bytes,
                                   NULL, &error);
  if (error != 0) {
    return tf_rt_opencl_fail("clCreateBuffer", what, error, NULL);
  }
  *buffer = made;
  return 0;
}

/* Uploads the weights unless an instance has. The mutex is locked. */
static int32_t UseWeights(Driver* driver, struct Instance* instance,
                          const char* bytes) {
  const int64_t size = instance->model->device->model->weights_bytes;
  void* context = instance->place.context;
  instance->weights =
      tf_rt_device_weights_use(all_weights, instance->model, context, 0);
  if (size == 0 || instance->weights != NULL) return 0;
  struct tf_device_weights* made =
      tf_rt_gpu_zeroed(sizeof(struct tf_device_weights));
  if (made == NULL) return tf_rt_gpu_no_memory();
  int32_t status =
      MakeBuffer(driver, context, size, "the weights", &made->buffer);
  if (status == 0) {
    const int32_t error = driver->write(instance->place.queue, made->buffer, 1,
                                        0, (size_t)size, bytes, 0, NULL, NULL);
    if (error != 0) {
      driver->release_buffer(made->buffer);
      status =
          tf_rt_opencl_fail("clEnqueueWriteBuffer", "the weights", error, NULL);
    }
  }
  if (status != 0) {
    free(made);
    return status;
  }
  made->model = instance->model;
  made->context = context;
  tf_rt_device_weights_add(made, &all_weights);
  instance->weights = made;
  return 0;
}

static int32_t MakeOperands(Driver* driver, struct Instance* instance) {
  const struct tf_gpu_model* model = instance->model->device->model;
  for (int64_t i = 0; i < model->operand_count; ++i) {
    const struct tf_gpu_operand* operand = &model->operands[i];
    if (operand->bytes == 0) continue;
    const struct tf_cl_region region = {(size_t)operand->offset,
                                        (size_t)operand->bytes};
    void* whole =
        operand->in_weights ? instance->weights->buffer : instance->memory;
    int32_t error = 0;
    void* part =
        driver->make_part(whole, TF_CL_MEM_READ_WRITE,
                          TF_CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    if (error != 0) {
      return tf_rt_opencl_fail("clCreateSubBuffer", "the model's values", error,
                               NULL);
    }
    instance->operands[i] = part;
  }
  return 0;
}

static int32_t Fill(Driver* driver, struct Instance* instance,
                    const char* weights) {
  const struct tf_gpu_model* model = instance->model->device->model;
  instance->operands =
      tf_rt_gpu_zeroed((size_t)model->operand_count * sizeof(void*));
  if (instance->operands == NULL) return tf_rt_gpu_no_memory();
  int32_t status =
      MakeBuffer(driver, instance->place.context, model->memory_bytes,
                 "the model's values", &instance->memory);
  /* NaN in every float type: reveals reads before the first write. */
  if (status == 0 && instance->memory != NULL &&
      getenv("TILEFARM_POISON_WORKSPACE") != NULL) {
    const uint8_t byte = 0xff;
    const int32_t error =
        driver->fill(instance->place.queue, instance->memory, &byte, 1, 0,
                     (size_t)model->memory_bytes, 0, NULL, NULL);
    if (error != 0) {
      status = tf_rt_opencl_fail("clEnqueueFillBuffer", "the model's values",
                                 error, NULL);
    }
  }
  if (status != 0) return status;
  pthread_mutex_lock(&mutex);
  status = UseWeights(driver, instance, weights);
  pthread_mutex_unlock(&mutex);
  return status == 0 ? MakeOperands(driver, instance) : status;
}

void tf_rt_opencl_model_destroy(void* pointer) {
  struct Instance* instance = pointer;
  int32_t status = 0;
  Driver* driver =
      tf_rt_opencl_driver_is_alive() ? tf_rt_opencl_driver(&status) : NULL;
  const struct tf_gpu_model* model = instance->model->device->model;
  for (int64_t i = 0;
       driver != NULL && instance->operands != NULL && i < model->operand_count;
       ++i) {
    if (instance->operands[i] != NULL) {
      driver->release_buffer(instance->operands[i]);
    }
  }
  if (driver != NULL && instance->memory != NULL) {
    driver->release_buffer(instance->memory);
  }
  pthread_mutex_lock(&mutex);
  struct tf_device_weights* unused =
      tf_rt_device_weights_drop(instance->weights, &all_weights);
  pthread_mutex_unlock(&mutex);
  if (unused != NULL && driver != NULL) driver->release_buffer(unused->buffer);
  free(unused);
  if (driver != NULL) driver->release_context(instance->place.context);
  free(instance->operands);
  free(instance);
}

int32_t tf_rt_opencl_model_create(const struct tf_rt_model* model,
                                  const char* weights, void* queue,
                                  void** result) {
  int32_t status = 0;
  Driver* driver = tf_rt_opencl_driver(&status);
  if (driver == NULL) return status;
  struct Instance* instance = tf_rt_gpu_zeroed(sizeof(struct Instance));
  if (instance == NULL) return tf_rt_gpu_no_memory();
  instance->model = model;
  status = tf_rt_opencl_place(driver, queue, 1, &instance->place);
  if (status != 0) {
    free(instance);
    return status;
  }
  driver->retain_context(instance->place.context);
  status = Fill(driver, instance, weights);
  if (status == 0) {
    *result = instance;
  } else {
    tf_rt_opencl_model_destroy(instance);
  }
  return status;
}

/* From the caller to the instance's memory. */
static int32_t Take(Driver* driver, const struct Instance* instance,
                    const void* input, int32_t number, int64_t bytes,
                    void* queue, int32_t wait) {
  if (bytes == 0) return 0;
  const size_t offset =
      (size_t)instance->model->device->model->input_offsets[number];
  const int32_t error =
      wait ? driver->write(queue, instance->memory, 0, offset, (size_t)bytes,
                           input, 0, NULL, NULL)
           : driver->copy(queue, (void*)(uintptr_t)input, instance->memory, 0,
                          offset, (size_t)bytes, 0, NULL, NULL);
  if (error == 0) return 0;
  char object[32];
  snprintf(object, sizeof(object), "input %d", number);
  return tf_rt_opencl_fail(
      wait ? "clEnqueueWriteBuffer" : "clEnqueueCopyBuffer", object, error,
      NULL);
}

/* And back. */
static int32_t Give(Driver* driver, const struct Instance* instance,
                    void* output, int32_t number, int64_t bytes, void* queue,
                    int32_t wait) {
  if (bytes == 0) return 0;
  const size_t offset =
      (size_t)instance->model->device->model->output_offsets[number];
  const int32_t error =
      wait ? driver->read(queue, instance->memory, 0, offset, (size_t)bytes,
                          output, 0, NULL, NULL)
           : driver->copy(queue, instance->memory, output, offset, 0,
                          (size_t)bytes, 0, NULL, NULL);
  if (error == 0) return 0;
  char object[32];
  snprintf(object, sizeof(object), "output %d", number);
  return tf_rt_opencl_fail(wait ? "clEnqueueReadBuffer" : "clEnqueueCopyBuffer",
                           object, error, NULL);
}

int32_t tf_rt_opencl_model_run(void* pointer,
                               const struct tf_rt_variant* variant,
                               const void* const* inputs, void* const* outputs,
                               void* queue, int32_t wait) {
  struct Instance* instance = pointer;
  const struct tf_rt_model* model = instance->model;
  int32_t status = tf_rt_device_check_tensors(model, variant, inputs, outputs);
  if (status != 0) return status;
  Driver* driver = tf_rt_opencl_driver(&status);
  if (driver == NULL) return status;
  if (wait) queue = instance->place.queue;
  for (int32_t i = 0; status == 0 && i < model->input_count; ++i) {
    status = Take(driver, instance, inputs[i], i, variant->input_bytes[i],
                  queue, wait);
  }
  if (status == 0) status = variant->device_steps(queue, instance->operands);
  for (int32_t i = 0; status == 0 && i < model->output_count; ++i) {
    status = Give(driver, instance, outputs[i], i, variant->output_bytes[i],
                  queue, wait);
  }
  /* Copies that are enqueued use the caller's memory, also after an error. */
  const int32_t error = wait ? driver->finish(queue) : driver->flush(queue);
  if (status != 0 || error == 0) return status;
  return tf_rt_opencl_fail(wait ? "clFinish" : "clFlush", NULL, error, NULL);
}

int32_t tf_rt_opencl_copy(void* queue, void* to, void* from, int64_t bytes) {
  if (bytes == 0) return 0;
  int32_t status = 0;
  Driver* driver = tf_rt_opencl_driver(&status);
  if (driver == NULL) return status;
  const int32_t error =
      driver->copy(queue, from, to, 0, 0, (size_t)bytes, 0, NULL, NULL);
  if (error == 0) return 0;
  return tf_rt_opencl_fail("clEnqueueCopyBuffer", "an output", error, NULL);
}
