#include "compiler/runtime/cuda_place.h"

#include "compiler/runtime/gpu.h"
#include "compiler/runtime/gpu_modules.h"
#include "compiler/runtime/platform.h"

typedef const struct tf_cuda_driver Driver;

static struct tf_mutex mutex; /* of both */
static void* primary;         /* a context */
static int32_t primary_device;

/* Retains the primary context. The mutex is locked. */
static int32_t RetainPrimary(Driver* driver) {
  if (primary != NULL) return 0;
  int32_t number = 0;
  int32_t error = tf_rt_gpu_chosen_device("TILEFARM_CUDA_DEVICE", &number);
  if (error != 0) return error;
  error = driver->device(&primary_device, number);
  if (error != 0) {
    char object[32];
    snprintf(object, sizeof(object), "device %d", number);
    return tf_rt_cuda_fail(driver, "cuDeviceGet", object, error, NULL);
  }
  void* context = NULL;
  error = driver->retain_primary(&context, primary_device);
  if (error != 0) {
    return tf_rt_cuda_fail(driver, "cuDevicePrimaryCtxRetain", NULL, error,
                           NULL);
  }
  primary = context;
  return 0;
}

int32_t tf_rt_cuda_enter(Driver* driver, void** context, int32_t* pushed) {
  *pushed = 0;
  *context = NULL;
  int32_t error = driver->current(context);
  if (error != 0) {
    return tf_rt_cuda_fail(driver, "cuCtxGetCurrent", NULL, error, NULL);
  }
  if (*context != NULL) return 0;
  pthread_mutex_lock(&mutex);
  error = RetainPrimary(driver);
  *context = primary;
  pthread_mutex_unlock(&mutex);
  if (error != 0) return error;
  error = driver->push(*context);
  if (error != 0) {
    return tf_rt_cuda_fail(driver, "cuCtxPushCurrent", NULL, error, NULL);
  }
  *pushed = 1;
  return 0;
}

unsigned long long tf_rt_cuda_context_id(Driver* driver, void* context) {
  unsigned long long id = 0;
  if (driver->context_id == NULL || driver->context_id(context, &id) != 0) {
    return 0;
  }
  return id;
}

int32_t tf_rt_cuda_has_pools(Driver* driver) {
  int32_t device = 0, supported = 0;
  return driver->make_pool != NULL && driver->destroy_pool != NULL &&
         driver->set_pool != NULL && driver->allocate_async != NULL &&
         driver->release_async != NULL &&
         driver->current_device(&device) == 0 &&
         driver->attribute(&supported, TF_CUDA_DEVICE_MEMORY_POOLS_SUPPORTED,
                           device) == 0 &&
         supported;
}

/* A pool of its own keeps its memory between calls, which the device's default
 * pool does not. */
void* tf_rt_cuda_make_pool(Driver* driver) {
  int32_t device = 0;
  if (!tf_rt_cuda_has_pools(driver) || driver->current_device(&device) != 0) {
    return NULL;
  }
  struct tf_cuda_pool_properties properties;
  memset(&properties, 0, sizeof(properties));
  properties.allocation_type = TF_CUDA_POOL_PINNED;
  properties.location_type = TF_CUDA_POOL_ON_DEVICE;
  properties.location = device;
  void* pool = NULL;
  if (driver->make_pool(&pool, &properties) != 0) return NULL;
  uint64_t kept_bytes = UINT64_MAX;
  driver->set_pool(pool, TF_CUDA_POOL_RELEASE_THRESHOLD, &kept_bytes);
  return pool;
}

int32_t tf_rt_cuda_has_primary(void) { return primary != NULL; }

void tf_rt_cuda_place_shutdown(Driver* driver) {
  if (primary != NULL) driver->release_primary(primary_device);
  primary = NULL;
}
