/* Opens NVIDIA's driver library. */
#include "compiler/runtime/cuda_driver.h"

#include "compiler/runtime/gpu.h"
#include "compiler/runtime/gpu_modules.h"
#include "compiler/runtime/platform.h"

#define TF_ENTRY(name, field, required) \
  { name, offsetof(struct tf_cuda_driver, field), required }

static const struct tf_gpu_entry kEntries[] = {
    TF_ENTRY("cuInit", init, 1),
    TF_ENTRY("cuCtxGetCurrent", current, 1),
    TF_ENTRY("cuCtxPushCurrent_v2", push, 1),
    TF_ENTRY("cuCtxPopCurrent_v2", pop, 1),
    TF_ENTRY("cuCtxGetDevice", current_device, 1),
    TF_ENTRY("cuCtxSynchronize", synchronize_context, 1),
    TF_ENTRY("cuDeviceGet", device, 1),
    TF_ENTRY("cuDeviceGetAttribute", attribute, 1),
    TF_ENTRY("cuDevicePrimaryCtxRetain", retain_primary, 1),
    TF_ENTRY("cuDevicePrimaryCtxRelease_v2", release_primary, 1),
    TF_ENTRY("cuModuleLoadDataEx", load, 1),
    TF_ENTRY("cuModuleUnload", unload, 1),
    TF_ENTRY("cuModuleGetFunction", function, 1),
    TF_ENTRY("cuFuncSetAttribute", set_attribute, 1),
    TF_ENTRY("cuPointerGetAttribute", pointer_attribute, 1),
    TF_ENTRY("cuMemAlloc_v2", allocate, 1),
    TF_ENTRY("cuMemFree_v2", release, 1),
    TF_ENTRY("cuMemcpyHtoD_v2", copy_to_device, 1),
    TF_ENTRY("cuMemcpyDtoH_v2", copy_to_host, 1),
    TF_ENTRY("cuLaunchKernel", launch, 1),
    TF_ENTRY("cuStreamSynchronize", synchronize, 1),
    TF_ENTRY("cuStreamCreate", make_stream, 1),
    TF_ENTRY("cuStreamDestroy_v2", destroy_stream, 1),
    TF_ENTRY("cuMemcpyAsync", copy, 1),
    TF_ENTRY("cuGetErrorString", error_text, 0),
    TF_ENTRY("cuCtxGetId", context_id, 0),
    TF_ENTRY("cuMemsetD8Async", fill, 0),
    TF_ENTRY("cuMemPoolCreate", make_pool, 0),
    TF_ENTRY("cuMemPoolDestroy", destroy_pool, 0),
    TF_ENTRY("cuMemPoolSetAttribute", set_pool, 0),
    TF_ENTRY("cuMemAllocFromPoolAsync", allocate_async, 0),
    TF_ENTRY("cuMemFreeAsync", release_async, 0),
    TF_ENTRY("cuStreamBeginCapture_v2", begin_capture, 0),
    TF_ENTRY("cuStreamEndCapture", end_capture, 0),
    TF_ENTRY("cuGraphInstantiateWithFlags", instantiate, 0),
    TF_ENTRY("cuGraphLaunch", launch_graph, 0),
    TF_ENTRY("cuGraphDestroy", destroy_graph, 0),
    TF_ENTRY("cuGraphExecDestroy", destroy_executable, 0),
    TF_ENTRY("cuLaunchKernelEx", launch_as, 0),
    TF_ENTRY("cuTensorMapEncodeTiled", encode_map, 0),
    TF_ENTRY("cuTensorMapEncodeIm2col", encode_windows, 0),
};

static const struct tf_gpu_library kLibrary = {
    "TILEFARM_CUDA_DRIVER",
    "libcuda.so.1",
    "install NVIDIA's driver",
    "install a newer driver of NVIDIA",
    kEntries,
    sizeof(kEntries) / sizeof(kEntries[0])};

static struct tf_mutex mutex;
static void* library;
static struct tf_cuda_driver functions;
static _Atomic(int32_t) is_open;

int32_t tf_rt_cuda_fail(const struct tf_cuda_driver* driver, const char* call,
                        const char* object, int32_t error, const char* log) {
  const char* text = NULL;
  if (driver->error_text != NULL) driver->error_text(error, &text);
  return tf_rt_gpu_fail(error, "%s%s%s: CUDA error %d (%s)%s%s", call,
                        object == NULL ? "" : " of ",
                        object == NULL ? "" : object, error,
                        text == NULL ? "unknown" : text,
                        log == NULL ? "" : ": ", log == NULL ? "" : log);
}

/* 0, or the result of tf_rt_gpu_fail. The mutex is locked. */
static int32_t Open(void) {
  void* opened = NULL;
  const int32_t missing =
      tf_rt_gpu_open_library(&kLibrary, &functions, &opened);
  if (missing != 0) return missing;
  const int32_t error = functions.init(0);
  if (error != 0) {
    const int32_t status =
        tf_rt_cuda_fail(&functions, "cuInit", NULL, error, NULL);
    dlclose(opened);
    return status;
  }
  library = opened;
  return 0;
}

const struct tf_cuda_driver* tf_rt_cuda_driver(int32_t* status) {
  *status = tf_rt_gpu_open_once(&mutex, &is_open, Open);
  return *status == 0 ? &functions : NULL;
}

void tf_rt_cuda_driver_shutdown(void) {
  if (library != NULL) dlclose(library);
  library = NULL;
  __c11_atomic_store(&is_open, 0, __ATOMIC_RELEASE);
}
