// A libcuda.so.1 for tests: device memory is host memory, and "kernels" run
// when they are launched. It has what worker/runner calls, and hooks for the
// artifacts of tests. Its variables:
//   FAKE_CUDA_DEVICES=N     the number of devices (default: 1)
//   FAKE_CUDA_FAIL_AFTER=N  the N-th launch of a process ends its context: 700
//   FAKE_CUDA_HANG_AFTER=N  the device hangs with the N-th launch of a process
//   FAKE_CUDA_LOST=FILE     while the file is there, every call gives 999
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  kSuccess = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kIllegalAddress = 700,
  kUnknown = 999
};
// A device with little memory, so that tests can use it up.
static const size_t kMemory = (size_t)1 << 30;
static const size_t kBlocks = 4096;

static int sticky = kSuccess;
static int hangs = 0;
static long launches = 0;
static int context_is_current = 0;

static struct {
  char* start;
  size_t bytes;
} blocks[4096];

static long Number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : atol(text);
}

static int State(void) {
  const char* lost = getenv("FAKE_CUDA_LOST");
  if (lost != NULL && access(lost, F_OK) == 0) return kUnknown;
  return sticky;
}

// Whether the bytes are within one block, as an MMU would check.
static int IsAllocated(uint64_t address, size_t bytes) {
  for (size_t i = 0; i < kBlocks; ++i) {
    const uint64_t start = (uint64_t)(uintptr_t)blocks[i].start;
    if (start != 0 && address >= start &&
        address + bytes <= start + blocks[i].bytes) {
      return 1;
    }
  }
  return 0;
}

static void Hang(void) {
  while (hangs) {
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
  }
}

// --- Hooks for artifacts ---

// To be called by each launch; gives what cuLaunchKernel would.
int fake_cuda_launch(void) {
  const int state = State();
  if (state != kSuccess) return state;
  if (!context_is_current) return 201;
  ++launches;
  if (launches == Number("FAKE_CUDA_FAIL_AFTER", -1)) sticky = kIllegalAddress;
  if (launches == Number("FAKE_CUDA_HANG_AFTER", -1)) hangs = 1;
  return kSuccess;
}
// The error of the kernel that was launched last, which the next call sees.
void fake_cuda_fail(int code) { sticky = code; }
void fake_cuda_hang(void) { hangs = 1; }

// --- What the driver has ---

int cuInit(unsigned flags) { return flags == 0 ? State() : kInvalid; }
int cuDriverGetVersion(int* version) { return *version = 12040, kSuccess; }
int cuDeviceGetCount(int* count) {
  *count = (int)Number("FAKE_CUDA_DEVICES", 1);
  return State();
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return ordinal < Number("FAKE_CUDA_DEVICES", 1) ? State() : kNoDevice;
}
int cuDeviceGetName(char* name, int bytes, int device) {
  snprintf(name, (size_t)bytes, "Fake GPU %d", device);
  return State();
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 13:
      *value = 1980000;
      break;
    case 16:
      *value = 132;
      break;
    case 36:
      *value = 2619000;
      break;
    case 38:
      *value = 1 << 20;
      break;
    case 75:
      *value = 9;
      break;
    case 76:
      *value = 0;
      break;
    case 81:
      *value = 233472;
      break;
    default:
      return kInvalid;
  }
  return State();
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = kMemory;
  return State();
}
int cuDeviceGetPCIBusId(char* id, int bytes, int device) {
  snprintf(id, (size_t)bytes, "0000:%02x:00.0", device);
  return State();
}
int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
  (void)device, (void)flags;
  return State();
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  *context = &context_is_current;
  return State();
}
int cuCtxSetCurrent(void* context) {
  context_is_current = context != NULL;
  return State();
}
int cuCtxSynchronize(void) {
  Hang();
  return State();
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  if (State() != kSuccess) return State();
  size_t used = 0, free_block = kBlocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    used += blocks[i].bytes;
    if (blocks[i].start == NULL) free_block = i;
  }
  if (bytes == 0) return kInvalid;
  if (used + bytes > kMemory || free_block == kBlocks) return kOutOfMemory;
  char* start = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (start == NULL) return kOutOfMemory;
  memset(start, 0x5a, bytes);
  blocks[free_block].start = start;
  blocks[free_block].bytes = bytes;
  *address = (uint64_t)(uintptr_t)start;
  return kSuccess;
}
int cuMemFree_v2(uint64_t address) {
  for (size_t i = 0; i < kBlocks; ++i) {
    if ((uint64_t)(uintptr_t)blocks[i].start != address) continue;
    free(blocks[i].start);
    blocks[i].start = NULL;
    blocks[i].bytes = 0;
    return State();
  }
  return kInvalid;
}
int cuMemGetInfo_v2(size_t* left, size_t* all) {
  *left = *all = kMemory;
  for (size_t i = 0; i < kBlocks; ++i) *left -= blocks[i].bytes;
  return State();
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  if (State() != kSuccess) return State();
  if (!IsAllocated(to, bytes)) return kInvalid;
  memcpy((void*)(uintptr_t)to, from, bytes);
  return kSuccess;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  Hang();
  if (State() != kSuccess) return State();
  if (!IsAllocated(from, bytes)) return kInvalid;
  memcpy(to, (void*)(uintptr_t)from, bytes);
  return kSuccess;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes,
                         void* stream) {
  (void)stream;
  if (State() != kSuccess) return State();
  if (!IsAllocated(to, bytes) || !IsAllocated(from, bytes)) return kInvalid;
  memcpy((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes);
  return kSuccess;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count,
                    void* stream) {
  (void)stream;
  if (State() != kSuccess) return State();
  if (!IsAllocated(to, count)) return kInvalid;
  memset((void*)(uintptr_t)to, value, count);
  return kSuccess;
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void* stream) {
  (void)stream;
  if (State() != kSuccess) return State();
  if (to % 4 != 0 || !IsAllocated(to, 4 * count)) return kInvalid;
  for (size_t i = 0; i < count; ++i) ((unsigned*)(uintptr_t)to)[i] = value;
  return kSuccess;
}
int cuStreamCreate(void** stream, unsigned flags) {
  (void)flags;
  *stream = malloc(1);
  return State();
}
int cuStreamSynchronize(void* stream) {
  (void)stream;
  Hang();
  return State();
}
int cuEventCreate(void** event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof(struct timespec));
  return State();
}
int cuEventRecord(void* event, void* stream) {
  (void)stream;
  clock_gettime(CLOCK_MONOTONIC, (struct timespec*)event);
  return State();
}
int cuEventElapsedTime(float* milliseconds, void* start, void* stop) {
  const struct timespec* from = start;
  const struct timespec* to = stop;
  *milliseconds = (float)((double)(to->tv_sec - from->tv_sec) * 1e3 +
                          (double)(to->tv_nsec - from->tv_nsec) * 1e-6);
  return State();
}
int cuModuleLoadData(void** module, const void* image) {
  *module = (void*)image;
  return State();
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)name;
  *function = module;
  return State();
}
int cuModuleUnload(void* module) {
  (void)module;
  return State();
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y,
                   unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, void* stream,
                   void** parameters, void** extra) {
  (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x;
  (void)block_y, (void)block_z, (void)shared_bytes, (void)stream;
  (void)parameters, (void)extra;
  return State();
}
int cuGetErrorName(int code, const char** name) {
  switch (code) {
    case kNoDevice:
      return *name = "CUDA_ERROR_NO_DEVICE", kSuccess;
    case kIllegalAddress:
      return *name = "CUDA_ERROR_ILLEGAL_ADDRESS", kSuccess;
    case kUnknown:
      return *name = "CUDA_ERROR_UNKNOWN", kSuccess;
    default:
      return *name = "CUDA_ERROR", kSuccess;
  }
}
int cuGetErrorString(int code, const char** text) {
  *text = code == kIllegalAddress ? "an illegal memory access was encountered"
                                  : "an error of the fake";
  return kSuccess;
}
