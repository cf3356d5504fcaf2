/* Opens the loader of OpenCL's drivers. */
#include "compiler/runtime/opencl_driver.h"

#include "compiler/runtime/gpu.h"
#include "compiler/runtime/gpu_modules.h"
#include "compiler/runtime/platform.h"

#define TF_ENTRY(name, field) \
  { name, offsetof(struct tf_opencl_driver, field), 1 }

static const struct tf_gpu_entry kEntries[] = {
    TF_ENTRY("clGetPlatformIDs", platforms),
    TF_ENTRY("clGetDeviceIDs", devices),
    TF_ENTRY("clGetDeviceInfo", device_info),
    TF_ENTRY("clCreateContext", make_context),
    TF_ENTRY("clRetainContext", retain_context),
    TF_ENTRY("clReleaseContext", release_context),
    TF_ENTRY("clCreateCommandQueue", make_queue),
    TF_ENTRY("clGetCommandQueueInfo", queue_info),
    TF_ENTRY("clReleaseCommandQueue", release_queue),
    TF_ENTRY("clCreateProgramWithSource", make_program),
    TF_ENTRY("clBuildProgram", build),
    TF_ENTRY("clGetProgramBuildInfo", build_info),
    TF_ENTRY("clReleaseProgram", release_program),
    TF_ENTRY("clCreateKernel", make_kernel),
    TF_ENTRY("clGetKernelWorkGroupInfo", kernel_info),
    TF_ENTRY("clSetKernelArg", set_argument),
    TF_ENTRY("clReleaseKernel", release_kernel),
    TF_ENTRY("clCreateBuffer", make_buffer),
    TF_ENTRY("clCreateSubBuffer", make_part),
    TF_ENTRY("clReleaseMemObject", release_buffer),
    TF_ENTRY("clEnqueueReadBuffer", read),
    TF_ENTRY("clEnqueueWriteBuffer", write),
    TF_ENTRY("clEnqueueCopyBuffer", copy),
    TF_ENTRY("clEnqueueFillBuffer", fill),
    TF_ENTRY("clEnqueueNDRangeKernel", launch),
    TF_ENTRY("clFlush", flush),
    TF_ENTRY("clFinish", finish),
    TF_ENTRY("clGetEventInfo", event_info),
    TF_ENTRY("clReleaseEvent", release_event),
};

static const struct tf_gpu_library kLibrary = {
    "TILEFARM_OPENCL_DRIVER",
    "libOpenCL.so.1",
    "install the device's OpenCL driver and a loader such as ocl-icd",
    "install one of OpenCL 1.2 or later",
    kEntries,
    sizeof(kEntries) / sizeof(kEntries[0])};

/* Names of errors by their negated numbers. */
static const char* const kRunErrors[] = {
    "SUCCESS",
    "DEVICE_NOT_FOUND",
    "DEVICE_NOT_AVAILABLE",
    "COMPILER_NOT_AVAILABLE",
    "MEM_OBJECT_ALLOCATION_FAILURE",
    "OUT_OF_RESOURCES",
    "OUT_OF_HOST_MEMORY",
    "PROFILING_INFO_NOT_AVAILABLE",
    "MEM_COPY_OVERLAP",
    "IMAGE_FORMAT_MISMATCH",
    "IMAGE_FORMAT_NOT_SUPPORTED",
    "BUILD_PROGRAM_FAILURE",
    "MAP_FAILURE",
    "MISALIGNED_SUB_BUFFER_OFFSET",
    "EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
    "COMPILE_PROGRAM_FAILURE",
    "LINKER_NOT_AVAILABLE",
    "LINK_PROGRAM_FAILURE",
    "DEVICE_PARTITION_FAILED",
    "KERNEL_ARG_INFO_NOT_AVAILABLE",
};
enum { kFirstInvalid = 30, kNoPlatform = 1001 };
static const char* const kInvalidErrors[] = {
    "INVALID_VALUE",           "INVALID_DEVICE_TYPE",
    "INVALID_PLATFORM",        "INVALID_DEVICE",
    "INVALID_CONTEXT",         "INVALID_QUEUE_PROPERTIES",
    "INVALID_COMMAND_QUEUE",   "INVALID_HOST_PTR",
    "INVALID_MEM_OBJECT",      "INVALID_IMAGE_FORMAT_DESCRIPTOR",
    "INVALID_IMAGE_SIZE",      "INVALID_SAMPLER",
    "INVALID_BINARY",          "INVALID_BUILD_OPTIONS",
    "INVALID_PROGRAM",         "INVALID_PROGRAM_EXECUTABLE",
    "INVALID_KERNEL_NAME",     "INVALID_KERNEL_DEFINITION",
    "INVALID_KERNEL",          "INVALID_ARG_INDEX",
    "INVALID_ARG_VALUE",       "INVALID_ARG_SIZE",
    "INVALID_KERNEL_ARGS",     "INVALID_WORK_DIMENSION",
    "INVALID_WORK_GROUP_SIZE", "INVALID_WORK_ITEM_SIZE",
    "INVALID_GLOBAL_OFFSET",   "INVALID_EVENT_WAIT_LIST",
    "INVALID_EVENT",           "INVALID_OPERATION",
    "INVALID_GL_OBJECT",       "INVALID_BUFFER_SIZE",
    "INVALID_MIP_LEVEL",       "INVALID_GLOBAL_WORK_SIZE",
};

static struct tf_mutex mutex;
static void* library;
static struct tf_opencl_driver functions;
static _Atomic(int32_t) is_open;
/* Of the handler of exit(). */
static char exit_owner;
static _Atomic(int32_t) exits;

/* Without "CL_". */
static const char* ErrorName(int32_t error) {
  const size_t number = (size_t)-error;
  if (number < sizeof(kRunErrors) / sizeof(kRunErrors[0])) {
    return kRunErrors[number];
  }
  if (number >= kFirstInvalid &&
      number - kFirstInvalid <
          sizeof(kInvalidErrors) / sizeof(kInvalidErrors[0])) {
    return kInvalidErrors[number - kFirstInvalid];
  }
  return number == kNoPlatform ? "PLATFORM_NOT_FOUND_KHR" : NULL;
}

int32_t tf_rt_opencl_fail(const char* call, const char* object, int32_t error,
                          const char* detail) {
  const char* name = ErrorName(error);
  return tf_rt_gpu_fail(
      -error, "%s%s%s: OpenCL error %d (%s%s)%s%s", call,
      object == NULL ? "" : " of ", object == NULL ? "" : object, error,
      name == NULL ? "" : "CL_", name == NULL ? "unknown" : name,
      detail == NULL ? "" : ": ", detail == NULL ? "" : detail);
}

static void OnExit(void* argument) {
  (void)argument;
  __c11_atomic_store(&exits, 1, __ATOMIC_RELAXED);
}

/* 0, or the result of tf_rt_gpu_fail. The mutex is locked. */
static int32_t Open(void) {
  void* opened = NULL;
  const int32_t missing =
      tf_rt_gpu_open_library(&kLibrary, &functions, &opened);
  if (missing != 0) return missing;
  if (__cxa_atexit(OnExit, NULL, &exit_owner) != 0) {
    dlclose(opened);
    return tf_rt_gpu_no_memory();
  }
  library = opened;
  return 0;
}

const struct tf_opencl_driver* tf_rt_opencl_driver(int32_t* status) {
  *status = tf_rt_gpu_open_once(&mutex, &is_open, Open);
  return *status == 0 ? &functions : NULL;
}

int32_t tf_rt_opencl_driver_is_alive(void) {
  return __c11_atomic_load(&is_open, __ATOMIC_ACQUIRE) &&
         !__c11_atomic_load(&exits, __ATOMIC_RELAXED);
}

void tf_rt_opencl_driver_shutdown(void) {
  if (library == NULL) return;
  if (tf_rt_opencl_driver_is_alive()) dlclose(library);
  library = NULL;
  __c11_atomic_store(&is_open, 0, __ATOMIC_RELEASE);
  /* exit() must not call what is unloaded. */
  __cxa_finalize(&exit_owner);
}
