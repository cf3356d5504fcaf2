/* Instances of a compiled model: the arena of its intermediate values, and the
 * errors of its functions. codegen/model_object.h emits the callers. */
#include "compiler/runtime/platform.h"
#include "compiler/runtime/tf_runtime.h"
#include "compiler/runtime/thread_key.h"

enum { kArenaAlignment = 64, kMaxThreads = 1024, kMaxSpinUs = 1000000 };

struct Instance {
  const struct tf_rt_model* model;
  char* arena;
  const char* weights;
  void* on_device; /* of model->device; null: on the host */
  struct tf_rt_limits limits;
  _Atomic(int32_t) running;
};
_Static_assert(sizeof(struct Instance) <= kArenaAlignment, "too small");

/* This thread's last error: a constant text, or one of its own. Each thread
 * that had an error with a text of its own keeps the room for it. */
static struct ThreadKey last_error, last_text;

static int32_t Fail(const char* message) {
  if (MakeThreadKey(&last_error, NULL) == 0) {
    SetThreadValue(&last_error, message);
  }
  return 1;
}

/* TF_RT_ERROR_BYTES bytes for this thread's next error; null if there is no
 * memory. */
static char* ErrorText(void) {
  char* text = ThreadValue(&last_text);
  if (text != NULL) return text;
  if (MakeThreadKey(&last_text, free) != 0) return NULL;
  text = aligned_alloc(kArenaAlignment, TF_RT_ERROR_BYTES);
  if (text == NULL) return NULL;
  if (SetThreadValue(&last_text, text) == 0) return text;
  free(text);
  return NULL;
}

const char* tf_rt_model_error(void) {
  const char* message = ThreadValue(&last_error);
  return message == NULL ? "no error" : message;
}

void tf_rt_model_shutdown(void) {
  free(ThreadValue(&last_text));
  DeleteThreadKey(&last_text);
  DeleteThreadKey(&last_error);
  tf_rt_limits_shutdown();
}

static int HasLimits(const struct Instance* instance) {
  return instance->limits.threads != 0 || instance->limits.spin_us != 0;
}

/* 0, or the result of Fail. */
static int32_t CheckOptions(const struct tf_rt_model* model,
                            const struct tf_rt_model_options* options) {
  if (options->size < sizeof(struct tf_rt_model_options)) {
    return Fail("create: options.size is not the size of the options");
  }
  if (options->weights != NULL && model->file == NULL) {
    return Fail("create: the weights of this model are inside its library");
  }
  if (options->threads < 0 || options->threads > kMaxThreads) {
    return Fail(
        "create: options.threads must be 0 (no limit) or a number of threads"
        " up to 1024");
  }
  if (options->spin_us < 0 || options->spin_us > kMaxSpinUs) {
    return Fail(
        "create: options.spin_us must be 0 (the default) or a number of"
        " microseconds up to 1000000");
  }
  return 0;
}

int32_t tf_rt_model_create(const struct tf_rt_model* model,
                           const struct tf_rt_model_options* options,
                           void** result) {
  return tf_rt_model_create_on(model, options, NULL, result);
}

int32_t tf_rt_model_create_on(const struct tf_rt_model* model,
                              const struct tf_rt_model_options* options,
                              void* stream, void** result) {
  if (result == NULL) return Fail("create: the place for the model is null");
  *result = NULL;
  if (options != NULL && CheckOptions(model, options) != 0) return 1;
  struct Instance* instance = aligned_alloc(kArenaAlignment, kArenaAlignment);
  if (instance == NULL) return Fail("create: no memory");
  instance->model = model;
  instance->arena = NULL;
  instance->on_device = NULL;
  instance->limits.threads = options == NULL ? 0 : options->threads;
  instance->limits.spin_us = options == NULL ? 0 : options->spin_us;
  instance->weights = model->weights;
  if (HasLimits(instance) && tf_rt_limits_prepare() != 0) {
    free(instance);
    return Fail(
        "create: options.threads and options.spin_us need a thread-specific"
        " key, and the process has no more");
  }
  __c11_atomic_init(&instance->running, 0);
  if (model->arena_bytes > 0 && model->device == NULL) {
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
  if (model->file != NULL) {
    char* error = ErrorText();
    if (error != NULL) {
      instance->weights = model->open(
          model->file, options == NULL ? NULL : options->weights, error);
    }
    if (instance->weights == NULL) {
      free(instance->arena);
      free(instance);
      return Fail(error != NULL ? error : "create: no memory");
    }
  }
  if (model->device != NULL) {
    const int32_t status = model->device->create(model, instance->weights,
                                                 stream, &instance->on_device);
    /* The device has a copy. */
    if (model->file != NULL) model->close(model->file);
    if (status != 0) {
      free(instance);
      return Fail(model->kernel_error());
    }
  }
  *result = instance;
  return 0;
}

/* `stream` and `wait` are for models on a device. */
static int32_t RunVariant(struct Instance* instance,
                          const struct tf_rt_variant* variant,
                          const void* const* inputs, void* const* outputs,
                          void* stream, int32_t wait) {
  const struct tf_rt_model* model = instance->model;
  if (__c11_atomic_exchange(&instance->running, 1, __ATOMIC_ACQUIRE)) {
    return Fail("run: this instance runs in another thread");
  }
  if (HasLimits(instance) && tf_rt_set_limits(&instance->limits) != 0) {
    __c11_atomic_store(&instance->running, 0, __ATOMIC_RELEASE);
    return Fail("run: no memory for the limits of the instance");
  }
  const int32_t status =
      model->device == NULL
          ? variant->steps(inputs, outputs, instance->arena, instance->weights)
          : model->device->run(instance->on_device, variant, inputs, outputs,
                               stream, wait);
  if (HasLimits(instance)) tf_rt_set_limits(NULL);
  __c11_atomic_store(&instance->running, 0, __ATOMIC_RELEASE);
  if (status == 0) return 0;
  return Fail(model->kernel_error == NULL
                  ? "run: a kernel failed for want of memory"
                  : model->kernel_error());
}

int32_t tf_rt_model_run(void* model, const void* const* inputs,
                        void* const* outputs) {
  struct Instance* instance = model;
  if (instance == NULL) return Fail("run: the model is null");
  if (instance->model->choose != NULL) {
    return Fail("run: the model has open dimensions: call run_shaped");
  }
  return RunVariant(instance, instance->model->variants, inputs, outputs, NULL,
                    1);
}

int32_t tf_rt_model_run_on(void* model, void* stream, const void* const* inputs,
                           void* const* outputs) {
  struct Instance* instance = model;
  if (instance == NULL) return Fail("run_on: the model is null");
  if (instance->model->choose != NULL) {
    return Fail("run_on: the model has open dimensions: call run_shaped");
  }
  return RunVariant(instance, instance->model->variants, inputs, outputs,
                    stream, 0);
}

static void CopyShapes(const struct tf_rt_model* model,
                       const struct tf_rt_variant* variant,
                       int64_t* const* shapes) {
  for (int32_t i = 0; i < model->output_count; ++i) {
    if (shapes[i] == NULL) continue;
    for (int32_t d = 0; d < model->outputs[i].rank; ++d) {
      shapes[i][d] = variant->output_shapes[i][d];
    }
  }
}

int32_t tf_rt_model_run_shaped(void* model, const void* const* inputs,
                               const int64_t* const* input_shapes,
                               void* const* outputs,
                               int64_t* const* output_shapes) {
  struct Instance* instance = model;
  if (instance == NULL) return Fail("run_shaped: the model is null");
  if (input_shapes == NULL) {
    return Fail("run_shaped: the shapes of the inputs are null");
  }
  const struct tf_rt_model* made_of = instance->model;
  const struct tf_rt_variant* variant =
      made_of->choose(made_of, input_shapes, NULL);
  if (variant == NULL) {
    /* Only an error needs memory. */
    char* error = ErrorText();
    if (error == NULL) return Fail("run_shaped: no memory");
    made_of->choose(made_of, input_shapes, error);
    return Fail(error);
  }
  if (output_shapes != NULL) CopyShapes(made_of, variant, output_shapes);
  if (outputs == NULL) return 0;
  return RunVariant(instance, variant, inputs, outputs, NULL, 1);
}

void tf_rt_model_destroy(void* model) {
  struct Instance* instance = model;
  if (instance == NULL) return;
  const struct tf_rt_model* made_of = instance->model;
  if (made_of->device != NULL) {
    made_of->device->destroy(instance->on_device);
  } else if (made_of->file != NULL) {
    made_of->close(made_of->file);
  }
  free(instance->arena);
  free(instance);
}
