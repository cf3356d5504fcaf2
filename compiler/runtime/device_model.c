#include "compiler/runtime/device_model.h"

#include "compiler/runtime/gpu.h"

struct tf_device_weights* tf_rt_device_weights_use(
    struct tf_device_weights* list, const struct tf_rt_model* model,
    void* context, unsigned long long context_id) {
  while (list != NULL && (list->model != model || list->context != context ||
                          list->context_id != context_id)) {
    list = list->next;
  }
  if (list != NULL) ++list->uses;
  return list;
}

void tf_rt_device_weights_add(struct tf_device_weights* weights,
                              struct tf_device_weights** list) {
  weights->uses = 1;
  weights->next = *list;
  *list = weights;
}

struct tf_device_weights* tf_rt_device_weights_drop(
    struct tf_device_weights* weights, struct tf_device_weights** list) {
  if (weights == NULL || --weights->uses > 0) return NULL;
  while (*list != weights) list = &(*list)->next;
  *list = weights->next;
  return weights;
}

int32_t tf_rt_device_check_tensors(const struct tf_rt_model* model,
                                   const struct tf_rt_variant* variant,
                                   const void* const* inputs,
                                   void* const* outputs) {
  for (int32_t i = 0; i < model->input_count; ++i) {
    if (inputs[i] == NULL && variant->input_bytes[i] > 0) {
      return tf_rt_gpu_fail(TF_GPU_FAILED, "run: input %d is null", i);
    }
  }
  for (int32_t i = 0; i < model->output_count; ++i) {
    if (outputs[i] == NULL && variant->output_bytes[i] > 0) {
      return tf_rt_gpu_fail(TF_GPU_FAILED, "run: output %d is null", i);
    }
  }
  return 0;
}
