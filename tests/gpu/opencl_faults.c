/* A library between an artifact and OpenCL's loader, for tests
 * (TILEFARM_OPENCL_DRIVER): counts objects, makes calls fail on request, and
 * aborts at calls after exit() has ended it, as drivers may then crash.
 *
 * Environment, read at each call:
 *   OPENCL_FAIL_CALL=clFinish:-5   this function returns this error
 *   OPENCL_FAIL_KERNELS=-9999      kernels end with this status
 *
 * All functions have nine words as parameters, as many as the longest list. The
 * calling conventions of x86-64 and AArch64 pass shorter lists in the same
 * places. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uintptr_t Word;
typedef Word (*Function)(Word, Word, Word, Word, Word, Word, Word, Word, Word);

static atomic_int live, begun, ended;

static void End(void) { ended = 1; }

/* The objects that the artifact has made or retained and not released. */
int opencl_faults_live(void) { return live; }

static int FailsNow(const char* name, int32_t* error) {
  const char* fail = getenv("OPENCL_FAIL_CALL");
  const size_t length = strlen(name);
  if (fail == NULL || strncmp(fail, name, length) != 0 || fail[length] != ':') {
    return 0;
  }
  *error = atoi(fail + length + 1);
  return 1;
}

/* `error_at`: the parameter that gets the error's number, if the result is an
 * object; otherwise negative. */
static Word Forward(const char* name, int error_at, const Word* words) {
  if (ended) abort();
  if (!atomic_exchange(&begun, 1)) atexit(End);
  int32_t error = 0;
  if (FailsNow(name, &error)) {
    if (error_at < 0) return (uint32_t)error;
    *(int32_t*)words[error_at] = error;
    return 0;
  }
  void* loader = dlopen("libOpenCL.so.1", RTLD_NOW);
  const Function function = (Function)dlsym(loader, name);
  const Word result = function(words[0], words[1], words[2], words[3], words[4],
                               words[5], words[6], words[7], words[8]);
  dlclose(loader);
  const int succeeds = error_at < 0 ? (int32_t)result == 0 : result != 0;
  if (!succeeds) return result;
  if (error_at >= 0 || strncmp(name, "clRetain", 8) == 0) ++live;
  if (strncmp(name, "clRelease", 9) == 0) --live;
  if (strcmp(name, "clEnqueueNDRangeKernel") == 0 && words[8] != 0) ++live;
  const char* status = getenv("OPENCL_FAIL_KERNELS");
  if (strcmp(name, "clGetEventInfo") == 0 && status != NULL) {
    *(int32_t*)words[3] = atoi(status);
  }
  return result;
}

#define FORWARD_TO_MAKE(name, error_at)                                     \
  Word name(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, \
            Word i) {                                                       \
    const Word words[] = {a, b, c, d, e, f, g, h, i};                       \
    return Forward(#name, error_at, words);                                 \
  }
#define FORWARD(name) FORWARD_TO_MAKE(name, -1)

FORWARD(clGetPlatformIDs)
FORWARD(clGetDeviceIDs)
FORWARD(clGetDeviceInfo)
FORWARD_TO_MAKE(clCreateContext, 5)
FORWARD(clRetainContext)
FORWARD(clReleaseContext)
FORWARD_TO_MAKE(clCreateCommandQueue, 3)
FORWARD(clGetCommandQueueInfo)
FORWARD(clReleaseCommandQueue)
FORWARD_TO_MAKE(clCreateProgramWithSource, 4)
FORWARD(clBuildProgram)
FORWARD(clGetProgramBuildInfo)
FORWARD(clReleaseProgram)
FORWARD_TO_MAKE(clCreateKernel, 2)
FORWARD(clGetKernelWorkGroupInfo)
FORWARD(clSetKernelArg)
FORWARD(clReleaseKernel)
FORWARD_TO_MAKE(clCreateBuffer, 4)
FORWARD_TO_MAKE(clCreateSubBuffer, 4)
FORWARD(clEnqueueCopyBuffer)
FORWARD(clReleaseMemObject)
FORWARD(clEnqueueReadBuffer)
FORWARD(clEnqueueWriteBuffer)
FORWARD(clEnqueueFillBuffer)
FORWARD(clEnqueueNDRangeKernel)
FORWARD(clFlush)
FORWARD(clFinish)
FORWARD(clGetEventInfo)
FORWARD(clReleaseEvent)
