#include "compiler/runtime/cuda_launch.h"

#include "compiler/runtime/platform.h"
#include "compiler/runtime/thread_key.h"

/* The value of a thread: null outside of sequences, else which of these. */
static struct ThreadKey sequence;
static const char kAfterOther, kAfterKernel;

/* Whether the driver overlaps kernels. */
enum { kUnknown, kOverlaps, kWaits };
static _Atomic(int32_t) overlap;

void tf_rt_cuda_begin_sequence(void) {
  if (MakeThreadKey(&sequence, NULL) == 0) {
    SetThreadValue(&sequence, &kAfterOther);
  }
}

void tf_rt_cuda_end_sequence(void) {
  if (ThreadValue(&sequence) != NULL) SetThreadValue(&sequence, NULL);
}

void tf_rt_cuda_interrupt_sequence(void) {
  if (ThreadValue(&sequence) != NULL) SetThreadValue(&sequence, &kAfterOther);
}

int32_t tf_rt_cuda_overlaps(const struct tf_cuda_driver* driver) {
  int32_t state = __c11_atomic_load(&overlap, __ATOMIC_RELAXED);
  if (state == kUnknown) {
    const char* text = getenv("TILEFARM_CUDA_OVERLAP");
    const int32_t off = text != NULL && text[0] == '0' && text[1] == 0;
    state = off || driver->launch_as == NULL ? kWaits : kOverlaps;
    __c11_atomic_store(&overlap, state, __ATOMIC_RELAXED);
  }
  return state == kOverlaps;
}

void tf_rt_cuda_set_overlaps(int32_t overlaps) {
  __c11_atomic_store(&overlap, overlaps ? kOverlaps : kWaits, __ATOMIC_RELAXED);
}

static int32_t LaunchWaiting(const struct tf_cuda_driver* driver,
                             void* function, const struct tf_gpu_kernel* kernel,
                             void* stream, void** arguments) {
  return driver->launch(function, kernel->grid[0], kernel->grid[1],
                        kernel->grid[2], kernel->block[0], kernel->block[1],
                        kernel->block[2], kernel->shared_bytes, stream,
                        arguments, NULL);
}

static int32_t LaunchOverlapping(const struct tf_cuda_driver* driver,
                                 void* function,
                                 const struct tf_gpu_kernel* kernel,
                                 void* stream, void** arguments) {
  struct tf_cuda_launch_attribute attribute = {0};
  attribute.id = TF_CUDA_LAUNCH_PROGRAMMATIC_SERIALIZATION;
  attribute.value = 1;
  struct tf_cuda_launch_config config = {0};
  for (int32_t i = 0; i < 3; ++i) {
    config.grid[i] = kernel->grid[i];
    config.block[i] = kernel->block[i];
  }
  config.shared_bytes = kernel->shared_bytes;
  config.stream = stream;
  config.attributes = &attribute;
  config.attribute_count = 1;
  return driver->launch_as(&config, function, arguments, NULL);
}

int32_t tf_rt_cuda_launch(const struct tf_cuda_driver* driver, void* function,
                          const struct tf_gpu_kernel* kernel, void* stream,
                          void** arguments, int32_t follows) {
  const void* before = ThreadValue(&sequence);
  follows |= before == &kAfterKernel;
  int32_t error = 0;
  if (!follows || !kernel->overlaps || !tf_rt_cuda_overlaps(driver)) {
    error = LaunchWaiting(driver, function, kernel, stream, arguments);
  } else if (LaunchOverlapping(driver, function, kernel, stream, arguments) !=
             0) {
    /* It may be that the driver cannot, or an error of what came before. */
    error = LaunchWaiting(driver, function, kernel, stream, arguments);
    if (error == 0) tf_rt_cuda_set_overlaps(0);
  }
  if (before != NULL) {
    SetThreadValue(&sequence, error == 0 ? &kAfterKernel : &kAfterOther);
  }
  return error;
}

void tf_rt_cuda_launch_shutdown(void) { DeleteThreadKey(&sequence); }
