/* Chooses devices, and makes the artifact's own queue. */
#include "compiler/runtime/opencl_place.h"

#include "compiler/runtime/gpu.h"
#include "compiler/runtime/gpu_modules.h"
#include "compiler/runtime/platform.h"

enum { kMostPlatforms = 64, kMostDevices = 64 };

typedef const struct tf_opencl_driver Driver;

static struct tf_mutex mutex;
/* The artifact's own; the queue is null until it is made. */
static struct tf_opencl_place own;

static uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* The device with this number, over all platforms. */
static int32_t FindDevice(Driver* driver, int32_t number, void** platform,
                          void** device) {
  void* platforms[kMostPlatforms];
  uint32_t platform_count = 0;
  int32_t error = driver->platforms(kMostPlatforms, platforms, &platform_count);
  if (error != 0) {
    return tf_rt_opencl_fail("clGetPlatformIDs", NULL, error, NULL);
  }
  uint32_t before = 0;
  for (uint32_t i = 0; i < Least(platform_count, kMostPlatforms); ++i) {
    void* devices[kMostDevices];
    uint32_t count = 0;
    error = driver->devices(platforms[i], TF_CL_DEVICE_TYPE_ALL, kMostDevices,
                            devices, &count);
    if (error == TF_CL_DEVICE_NOT_FOUND) continue;
    if (error != 0) {
      return tf_rt_opencl_fail("clGetDeviceIDs", NULL, error, NULL);
    }
    count = Least(count, kMostDevices);
    if ((uint32_t)number < before + count) {
      *platform = platforms[i];
      *device = devices[(uint32_t)number - before];
      return 0;
    }
    before += count;
  }
  return tf_rt_gpu_fail(-TF_CL_DEVICE_NOT_FOUND,
                        "there is no device %d: OpenCL has %u devices", number,
                        before);
}

/* Makes the artifact's own context and queue. The mutex is locked. */
static int32_t MakeOwnQueue(Driver* driver) {
  if (own.queue != NULL) return 0;
  int32_t number = 0;
  int32_t status = tf_rt_gpu_chosen_device("TILEFARM_OPENCL_DEVICE", &number);
  if (status != 0) return status;
  void *platform = NULL, *device = NULL;
  status = FindDevice(driver, number, &platform, &device);
  if (status != 0) return status;
  char object[32];
  snprintf(object, sizeof(object), "device %d", number);
  const intptr_t properties[] = {TF_CL_CONTEXT_PLATFORM, (intptr_t)platform, 0};
  int32_t error = 0;
  void* context =
      driver->make_context(properties, 1, &device, NULL, NULL, &error);
  if (error != 0) {
    return tf_rt_opencl_fail("clCreateContext", object, error, NULL);
  }
  void* queue = driver->make_queue(context, device, 0, &error);
  if (error != 0) {
    driver->release_context(context);
    return tf_rt_opencl_fail("clCreateCommandQueue", object, error, NULL);
  }
  own = (struct tf_opencl_place){queue, context, device};
  return 0;
}

int32_t tf_rt_opencl_place(Driver* driver, void* queue, int32_t wait,
                           struct tf_opencl_place* place) {
  if (queue == NULL) {
    if (!wait) return tf_rt_gpu_fail(TF_GPU_FAILED, "the queue is null");
    pthread_mutex_lock(&mutex);
    const int32_t status = MakeOwnQueue(driver);
    *place = own;
    pthread_mutex_unlock(&mutex);
    return status;
  }
  place->queue = queue;
  uint64_t properties = 0;
  int32_t error = driver->queue_info(queue, TF_CL_QUEUE_CONTEXT, sizeof(void*),
                                     &place->context, NULL);
  if (error == 0) {
    error = driver->queue_info(queue, TF_CL_QUEUE_DEVICE, sizeof(void*),
                               &place->device, NULL);
  }
  if (error == 0) {
    error = driver->queue_info(queue, TF_CL_QUEUE_PROPERTIES,
                               sizeof(properties), &properties, NULL);
  }
  if (error != 0) {
    return tf_rt_opencl_fail("clGetCommandQueueInfo", NULL, error, NULL);
  }
  if ((properties & TF_CL_QUEUE_OUT_OF_ORDER) != 0) {
    return tf_rt_gpu_fail(TF_GPU_FAILED,
                          "the queue runs out of order; one that runs in order "
                          "is needed");
  }
  return 0;
}

void tf_rt_opencl_place_shutdown(Driver* driver) {
  if (own.queue == NULL) return;
  driver->release_queue(own.queue);
  driver->release_context(own.context);
  own.queue = NULL;
}
