// Artifacts for a device of OpenCL: `out` becomes twice `in`, for kElements
// floats, unless the name says otherwise. Programs are built at the first call,
// as those of candidates are.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  kElements = 1000,
  kGroup = 8,
  kQueueContext = 0x1090,
  kQueueDevice = 0x1091,
  kBuildLog = 0x1183
};

#define ENTRY(name, body)                                                  \
  "__kernel void " #name                                                   \
  "(__global float* in, __global float* out) {\n"                          \
  "  const int i = get_global_id(0);\n  float sum = in[i] + in[i];\n" body \
  "  out[i] = sum;\n}\n"

static const char kSource[] =
    ENTRY(good, "") ENTRY(wrong, "  if (i == 777) sum += 1e-3f;\n") ENTRY(
        past_end, "  out[i + 2] = sum;\n  barrier(CLK_GLOBAL_MEM_FENCE);\n")
        ENTRY(before_start, "  if (i == 0) out[-1] = sum;\n")
            ENTRY(reads_past_end, "  if (i == 999) sum = in[1000];\n")
                ENTRY(to_input, "  in[i] = sum;\n") ENTRY(
                    slow,
                    "  for (volatile int turn = 0; turn < 20000; ++turn) {}\n")
                    ENTRY(crashes, "  *(volatile __global int*)8 = 1;\n")
                        ENTRY(hangs,
                              "  while (*(volatile __global float*)out != "
                              "12345.0f) {}\n");

static char error_text[4096];

static int Fail(int code, const char* what) {
  snprintf(error_text, sizeof error_text, "%s", what);
  return -code;
}

static void* Function(const char* name) {
  const char* path = getenv("TILEFARM_OPENCL_DRIVER");
  void* library = dlopen(path == NULL ? "libOpenCL.so.1" : path, RTLD_NOW);
  return library == NULL ? NULL : dlsym(library, name);
}

// Builds the kernel of that name, for the queue's context and device.
static int Build(const char* source, const char* name, void* queue,
                 void** kernel) {
  int (*queue_info)(void*, uint32_t, size_t, void*, size_t*) =
      Function("clGetCommandQueueInfo");
  void* (*make_program)(void*, uint32_t, const char**, const size_t*, int*) =
      Function("clCreateProgramWithSource");
  int (*build)(void*, uint32_t, void**, const char*, void*, void*) =
      Function("clBuildProgram");
  int (*build_info)(void*, void*, uint32_t, size_t, void*, size_t*) =
      Function("clGetProgramBuildInfo");
  void* (*make_kernel)(void*, const char*, int*) = Function("clCreateKernel");
  void* context = NULL;
  void* device = NULL;
  int error = 0;
  queue_info(queue, kQueueContext, sizeof context, &context, NULL);
  queue_info(queue, kQueueDevice, sizeof device, &device, NULL);
  void* program = make_program(context, 1, &source, NULL, &error);
  if (error != 0) return Fail(error, "clCreateProgramWithSource");
  error = build(program, 1, &device, "", NULL, NULL);
  if (error != 0) {
    char log[4096] = "";
    build_info(program, device, kBuildLog, sizeof log - 1, log, NULL);
    return Fail(error, log);
  }
  *kernel = make_kernel(program, name, &error);
  return error == 0 ? 0 : Fail(error, "clCreateKernel");
}

static int Launch(const char* source, const char* name, void* queue, void* in,
                  void* out) {
  static void* kernel = NULL;
  if (kernel == NULL) {
    const int error = Build(source, name, queue, &kernel);
    if (error != 0) return error;
  }
  int (*set)(void*, uint32_t, size_t, const void*) = Function("clSetKernelArg");
  int (*launch)(void*, void*, uint32_t, const size_t*, const size_t*,
                const size_t*, uint32_t, void*, void*) =
      Function("clEnqueueNDRangeKernel");
  const size_t threads = kElements, group = kGroup;
  int error = set(kernel, 0, sizeof in, &in);
  if (error == 0) error = set(kernel, 1, sizeof out, &out);
  if (error != 0) return Fail(error, "clSetKernelArg");
  error = launch(queue, kernel, 1, NULL, &threads, &group, 0, NULL, NULL);
  return error == 0 ? 0 : Fail(error, "clEnqueueNDRangeKernel");
}

#define FUNCTION(name)                                  \
  const char* name##_error(void) { return error_text; } \
  int name##_on(void* queue, void* in, void* out)
#define KERNEL(name) \
  FUNCTION(name) { return Launch(kSource, #name, queue, in, out); }

KERNEL(good)
KERNEL(wrong)
KERNEL(past_end)
KERNEL(before_start)
KERNEL(reads_past_end)
KERNEL(to_input)
KERNEL(slow)
KERNEL(crashes)
KERNEL(hangs)

FUNCTION(does_not_build) {
  return Launch("__kernel void does_not_build() { no_such_name = 1; }\n",
                "does_not_build", queue, in, out);
}
// With one parameter.
FUNCTION(doubles_in_place) {
  (void)out;
  return Launch(
      "__kernel void doubles(__global float* in, __global float* same) {\n"
      "  const int i = get_global_id(0);\n  in[i] = in[i] + in[i];\n}\n",
      "doubles", queue, in, in);
}
// The runner says in the first call that workspace is to be poisoned.
FUNCTION(wants_poison) {
  static int calls = 0;
  const int poisons = getenv("TILEFARM_POISON_WORKSPACE") != NULL;
  if (poisons != (calls++ == 0)) return Fail(-901, "poisons in a wrong call");
  return good_on(queue, in, out);
}

// What the sandbox refuses: each of these must fail.
FUNCTION(escapes) {
  if (fork() >= 0) return Fail(-911, "forks");
  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) return Fail(-912, "has a socket");
  if (open("/tmp/tilefarm-escaped", O_CREAT | O_WRONLY, 0666) >= 0) {
    return Fail(-913, "writes to /tmp");
  }
  if (kill(getppid(), 0) == 0) return Fail(-914, "signals its parent");
  if (getuid() == 0) return Fail(-915, "is root");
  return good_on(queue, in, out);
}
// Programs that it runs are confined as well.
FUNCTION(escapes_by_a_program) {
  if (system("echo x > /tmp/tilefarm-escaped") == 0) {
    return Fail(-916, "a program writes to /tmp");
  }
  return good_on(queue, in, out);
}

// Whether all threads of the process may run on this core alone.
static int AreOn(int core) {
  DIR* threads = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent* entry; (entry = readdir(threads)) != NULL;) {
    const int thread = atoi(entry->d_name);
    if (thread == 0) continue;
    cpu_set_t set;
    if (sched_getaffinity(thread, sizeof set, &set) != 0) return 0;
    if (CPU_COUNT(&set) != 1 || !CPU_ISSET(core, &set)) return 0;
    ++count;
  }
  closedir(threads);
  return count > 1;
}
FUNCTION(on_core_0) {
  return AreOn(0) ? good_on(queue, in, out) : Fail(-920, "elsewhere");
}
FUNCTION(on_core_1) {
  return AreOn(1) ? good_on(queue, in, out) : Fail(-921, "elsewhere");
}
