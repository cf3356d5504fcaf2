#include "compiler/codegen/c_library.h"

namespace tilefarm::codegen {
namespace {

std::vector<SystemLibrary> MakeLibraries() {
  // Functions that the runtime (runtime/platform.h) and LLVM's code call.
  SystemLibrary libc{"libc.so.6",
                     {"__cxa_atexit",
                      "__cxa_finalize",
                      "__errno_location",
                      "aligned_alloc",
                      "clock_gettime",
                      "close",
                      "dladdr",
                      "dlclose",
                      "dlerror",
                      "dlopen",
                      "dlsym",
                      "free",
                      "getenv",
                      "lseek",
                      "madvise",
                      "memcmp",
                      "memcpy",
                      "memmove",
                      "memset",
                      "mmap",
                      "mprotect",
                      "munmap",
                      "open",
                      "pread",
                      "pthread_attr_destroy",
                      "pthread_attr_init",
                      "pthread_attr_setstacksize",
                      "pthread_create",
                      "pthread_getspecific",
                      "pthread_join",
                      "pthread_key_create",
                      "pthread_key_delete",
                      "pthread_mutex_lock",
                      "pthread_mutex_unlock",
                      "pthread_setspecific",
                      "pthread_sigmask",
                      "sched_getaffinity",
                      "sched_getcpu",
                      "sched_setaffinity",
                      "snprintf",
                      "strerror",
                      "syscall",
                      "vsnprintf"}};
  SystemLibrary libm{"libm.so.6", {}};
  for (const char* name :
       {"acos",   "asin",      "atan",  "atan2", "ceil",  "cos",       "cosh",
        "erf",    "exp",       "exp10", "exp2",  "expm1", "floor",     "fma",
        "fmax",   "fmin",      "fmod",  "ldexp", "log",   "log10",     "log1p",
        "log2",   "nearbyint", "pow",   "rint",  "round", "roundeven", "sin",
        "sincos", "sinh",      "sqrt",  "tan",   "tanh",  "trunc"}) {
    libm.functions.push_back(name);
    libm.functions.push_back(std::string(name) + "f");
  }
  return {libc,
          libm,
          // For kernels that the user permits (runtime/onednn.c, openblas.c).
          {"libdnnl.so.2", {"dnnl_sgemm"}},
          {"libgomp.so.1", {"omp_get_max_threads", "omp_set_num_threads"}},
          {"libopenblas.so.0",
           {"cblas_sgemm", "openblas_get_num_threads",
            "openblas_set_num_threads"}}};
}

}  // namespace

const std::vector<SystemLibrary>& SystemLibraries() {
  static const auto* libraries =
      new std::vector<SystemLibrary>(MakeLibraries());
  return *libraries;
}

const SystemLibrary& MathLibrary() { return SystemLibraries()[1]; }

}  // namespace tilefarm::codegen
