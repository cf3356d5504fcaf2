#include "compiler/codegen/c_header.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/function_info.h"

namespace tilefarm::codegen {
namespace {

// Appends the additional prototypes of a function with layout-free parameters.
void AppendPacked(const Signature& function, const std::string& list,
                  std::string* text) {
  const std::string& symbol = function.symbol;
  absl::StrAppend(text, "\n/* ", symbol,
                  " with constant parameters laid out ahead of time.\n"
                  " *\n"
                  " * Packed buffers, aligned to elements at least and best to "
                  "64 bytes:\n");
  int number = 0;
  for (const ParameterSignature& parameter : function.parameters) {
    const int at = number++;
    if (parameter.packed_bytes == 0) continue;
    absl::StrAppend(text, " *   ", at, ": ", parameter.name, ", ",
                    parameter.packed_bytes, " bytes",
                    parameter.packs_by_copy ? ", a copy" : "", "\n");
  }
  absl::StrAppend(
      text, " *\n * ", symbol,
      "_packed_bytes: the size of a packed buffer, a multiple of\n"
      " * 64; 0 for other parameters. ",
      symbol,
      "_pack: lays one out; the result is 0,\n"
      " * or non-zero for other parameters. Packed buffers belong "
      "to this very\n"
      " * library: another one lays them out in another way. Large "
      "ones are read\n * faster from huge pages: aligned_alloc of "
      "2 MiB and madvise(MADV_HUGEPAGE)\n * before they are packed. ",
      symbol, "_packed: the\n * function itself. */\n", "size_t ", symbol,
      "_packed_bytes(int parameter);\n", "int ", symbol,
      "_pack(int parameter, const void* source, void* packed);\n", "int ",
      symbol, "_packed(", list, ");\n");
}

// What the functions of a GPU's artifact have in common.
constexpr char kCudaNotes[] =
    " * Buffers are dense and row-major unless strides (in elements) are "
    "given\n"
    " * here, aligned to 16 bytes, and do not overlap.\n"
    " *\n"
    " * NAME(...) runs the kernels and returns when the results are there. "
    "Each\n"
    " * buffer is device memory or host memory, which is copied to the device "
    "and\n"
    " * back. Without a current CUDA context the primary context of device 0, "
    "or\n"
    " * of TILEFARM_CUDA_DEVICE, is used.\n"
    " *\n"
    " * NAME_on(stream, ...) enqueues the kernels on a CUstream or "
    "cudaStream_t of\n"
    " * the current context and returns at once. Buffers are device memory.\n"
    " * Errors of the kernels themselves appear in later calls of CUDA. The "
    "first\n"
    " * call in a context loads the code, which a stream that is captured may "
    "not\n"
    " * do.\n"
    " *\n"
    " * The result is 0, the number of CUDA's error, or negative for others;\n"
    " * NAME_error() describes the last error of the calling thread. "
    "Functions\n"
    " * may be called from several threads. Wait for all streams before the\n"
    " * library is unloaded. TILEFARM_CUDA_DRIVER names another file than\n"
    " * libcuda.so.1. */\n";

constexpr char kOpenClNotes[] =
    " * Buffers are dense and row-major unless strides (in elements) are "
    "given\n"
    " * here, and do not overlap.\n"
    " *\n"
    " * NAME(...) runs the kernels and returns when the results are there. "
    "Buffers\n"
    " * are host memory, which is copied to the device and back. The device "
    "is\n"
    " * number TILEFARM_OPENCL_DEVICE (0) of all devices of all platforms.\n"
    " *\n"
    " * NAME_on(queue, ...) enqueues the kernels on a cl_command_queue, which "
    "must\n"
    " * run in order, and returns at once. Buffers are cl_mem of the queue's "
    "context.\n"
    " * The first call in a context builds the program; the context is "
    "retained\n"
    " * until the library is unloaded.\n"
    " *\n"
    " * The result is 0, the number of OpenCL's error without its sign, or "
    "negative\n"
    " * for others; NAME_error() describes the last error of the calling "
    "thread.\n"
    " * Functions may be called from several threads. Wait for all queues "
    "before the\n"
    " * library is unloaded. TILEFARM_OPENCL_DRIVER names another file than\n"
    " * libOpenCL.so.1. */\n";

constexpr char kSimulatorNotes[] =
    " * Buffers are dense and row-major unless strides (in elements) are "
    "given\n"
    " * here, aligned to 16 bytes, in host memory, and do not overlap.\n"
    " *\n"
    " * NAME and NAME_on (which ignores its stream) run the kernels in the "
    "calling\n"
    " * thread. The result is 0, or non-zero for errors, also those that the\n"
    " * simulator found in a kernel; NAME_error() describes the last error of "
    "the\n"
    " * calling thread. TILEFARM_SIM_SEED=n runs threads in another order.\n"
    " * Functions may be called from several threads. */\n";

constexpr char kHostNotes[] =
    " * Buffers are dense and row-major unless strides (in elements) are "
    "given\n"
    " * here, aligned to their elements, and do not overlap. The result is 0, "
    "or\n"
    " * non-zero where memory for workspace is out. Functions may be called "
    "from\n"
    " * several threads. */\n";

const char* Notes(const target::Target& target) {
  if (!target.is_gpu()) return kHostNotes;
  if (target.is_simulated()) return kSimulatorNotes;
  return target.is_opencl() ? kOpenClNotes : kCudaNotes;
}

// "float32 [64, 128], row-major, 32768 bytes, written".
std::string Describe(const ParameterSignature& parameter) {
  std::string text = absl::StrCat(parameter.dtype.ToString(), " [",
                                  absl::StrJoin(parameter.shape, ", "), "], ");
  if (parameter.is_dense) {
    absl::StrAppend(&text, "row-major");
  } else {
    absl::StrAppend(&text, "strides [", absl::StrJoin(parameter.strides, ", "),
                    "]");
    if (parameter.offset != 0) {
      absl::StrAppend(&text, ", ", parameter.offset,
                      " elements after the pointer");
    }
  }
  absl::StrAppend(&text, ", ", parameter.bytes, " bytes");
  if (parameter.is_written) absl::StrAppend(&text, ", written");
  return text;
}

// How many threads run the function, for its comment.
std::string Threads(int threads, const target::Target& target) {
  if (target.is_gpu()) return "";
  if (threads == 1) return ": runs in the calling thread";
  return absl::StrCat(": up to ", threads,
                      " threads with the caller's (TILEFARM_NUM_THREADS "
                      "bounds them)");
}

}  // namespace

std::string CHeader(std::span<const Signature> functions,
                    const target::Target& target) {
  std::string text = absl::StrCat(
      "/* Generated by Tilefarm for ", target.Key(), ".\n *\n", Notes(target),
      "#pragma once\n\n"
      "#include <stddef.h>\n#include <stdint.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
      InfoTypes());
  for (const Signature& function : functions) {
    absl::StrAppend(&text, "\n/* ", function.symbol,
                    Threads(function.threads, target), "\n");
    std::vector<std::string> parameters;
    int number = 0;
    for (const ParameterSignature& parameter : function.parameters) {
      absl::StrAppend(&text, " *   ", number, ": ", parameter.name, ", ",
                      Describe(parameter), "\n");
      // A parameter's name may be a C keyword; the number makes it a legal
      // name.
      parameters.push_back(
          absl::StrCat(parameter.is_written ? "void* " : "const void* ",
                       parameter.name, "_", number++));
    }
    const std::string list =
        parameters.empty() ? "void" : absl::StrJoin(parameters, ", ");
    absl::StrAppend(&text, " */\nint ", function.symbol, "(", list, ");\n");
    if (target.is_gpu()) {
      absl::StrAppend(&text, "int ", function.symbol, "_on(void* ",
                      target.is_opencl() ? "queue" : "stream",
                      parameters.empty() ? "" : ", ",
                      absl::StrJoin(parameters, ", "), ");\nconst char* ",
                      function.symbol, "_error(void);\n");
    }
    absl::StrAppend(&text, "/* The same as data; never null. */\n",
                    "const tf_function_info* ", InfoSymbol(function.symbol),
                    "(void);\n");
    const bool packs = std::any_of(
        function.parameters.begin(), function.parameters.end(),
        [](const ParameterSignature& one) { return one.packed_bytes > 0; });
    if (packs) AppendPacked(function, list, &text);
  }
  absl::StrAppend(&text, "\n#ifdef __cplusplus\n}\n#endif\n");
  return text;
}

}  // namespace tilefarm::codegen
