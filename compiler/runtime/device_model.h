/* Models on devices: what cuda_model.c and opencl_model.c share. */
#ifndef TILEFARM_COMPILER_RUNTIME_DEVICE_MODEL_H_
#define TILEFARM_COMPILER_RUNTIME_DEVICE_MODEL_H_

#include <stdint.h>

#include "compiler/runtime/tf_runtime.h"

/* A model's weights on a device, for all instances in a context. */
struct tf_device_weights {
  struct tf_device_weights* next;
  const struct tf_rt_model* model;
  void* context;
  unsigned long long context_id; /* CUDA: tf_rt_cuda_context_id */
  int64_t uses;
  uint64_t address; /* CUDA */
  void* buffer;     /* OpenCL: cl_mem */
};

/* The model's weights in the context, with one more use; null: there are none.
 * The caller locks the list, here and below. */
struct tf_device_weights* tf_rt_device_weights_use(
    struct tf_device_weights* list, const struct tf_rt_model* model,
    void* context, unsigned long long context_id);
/* With one use. */
void tf_rt_device_weights_add(struct tf_device_weights* weights,
                              struct tf_device_weights** list);
/* One use less. The result, if not null, is in the list no more: the caller
 * releases it. `weights` may be null. */
struct tf_device_weights* tf_rt_device_weights_drop(
    struct tf_device_weights* weights, struct tf_device_weights** list);

/* 0, or the result of tf_rt_gpu_fail: a tensor with bytes is null. */
int32_t tf_rt_device_check_tensors(const struct tf_rt_model* model,
                                   const struct tf_rt_variant* variant,
                                   const void* const* inputs,
                                   void* const* outputs);

/* The functions of struct tf_rt_device. */
int32_t tf_rt_cuda_model_create(const struct tf_rt_model* model,
                                const char* weights, void* stream,
                                void** instance);
int32_t tf_rt_cuda_model_run(void* instance,
                             const struct tf_rt_variant* variant,
                             const void* const* inputs, void* const* outputs,
                             void* stream, int32_t wait);
void tf_rt_cuda_model_destroy(void* instance);
int32_t tf_rt_opencl_model_create(const struct tf_rt_model* model,
                                  const char* weights, void* queue,
                                  void** instance);
int32_t tf_rt_opencl_model_run(void* instance,
                               const struct tf_rt_variant* variant,
                               const void* const* inputs, void* const* outputs,
                               void* queue, int32_t wait);
void tf_rt_opencl_model_destroy(void* instance);

#endif /* TILEFARM_COMPILER_RUNTIME_DEVICE_MODEL_H_ */
