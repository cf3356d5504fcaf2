// The C header of a model.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/codegen/model_object.h"

namespace tilefarm::codegen {
namespace {

// The names of ONNX's element types in C.
std::string CType(int32_t dtype) {
  static const auto* const names = new std::map<int32_t, std::string>{
      {1, "float"},    {2, "uint8_t"}, {3, "int8_t"},    {4, "uint16_t"},
      {5, "int16_t"},  {6, "int32_t"}, {7, "int64_t"},   {9, "bool"},
      {10, "float16"}, {11, "double"}, {12, "uint32_t"}, {13, "uint64_t"},
      {16, "bfloat16"}};
  const auto found = names->find(dtype);
  return found == names->end() ? absl::StrCat("type ", dtype) : found->second;
}

// A name must not end the comment.
std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return c == '*' || std::iscntrl(c); }, '_');
  return text;
}

std::string Describe(const std::vector<ModelTensor>& tensors) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    absl::StrAppend(&text, " *   ", i, ": ", Printable(tensors[i].name), ", ",
                    CType(tensors[i].dtype), " [",
                    absl::StrJoin(tensors[i].shape, ", "), "]\n");
  }
  return text;
}

}  // namespace

std::string ModelHeader(const ModelDescription& model,
                        const target::Target& target) {
  const std::string& s = model.symbol;
  std::string open_dimensions, run_shaped, device, on_stream;
  if (target.is_gpu() && !target.is_simulated()) {
    const bool opencl = target.is_opencl();
    device = absl::StrCat(
        " * Runs on ", target.Key(), ", in memory of the device. ",
        opencl ? "Inputs and outputs of a run\n * are on the host.\n"
               : "Inputs and outputs of a run\n * are on the host, or on the "
                 "device and ready.\n");
    on_stream = absl::StrCat(
        opencl
            ? "/* Queues are cl_command_queue and run in order; without one "
              "the device has number\n * TILEFARM_OPENCL_DEVICE (0). */\n"
            : "/* Streams are CUstream. Without a current context the device "
              "has number\n * TILEFARM_CUDA_DEVICE (0). */\n",
        "int ", s, "_create_on(const tf_model_options* options, void* ",
        opencl ? "queue" : "stream", ",\n    ", s, "_model** model);\n",
        "/* Enqueues a run. Inputs and outputs are ",
        opencl ? "cl_mem of the queue's context. */\n" : "device memory. */\n",
        "int ", s, "_run_on(", s, "_model* model, void* ",
        opencl ? "queue" : "stream",
        ", const void* const* inputs,\n"
        "    void* const* outputs);\n");
  }
  if (!model.sizes.empty()) {
    open_dimensions = absl::StrCat(" * Compiled for ", Printable(model.sizes),
                                   "; an open dimension is -1.\n");
    run_shaped = absl::StrCat(
        "/* In the place of ", s,
        "_run, which is an error for a model with open dimensions.\n"
        " * `input_shapes` has the shape of each input (null if its rank is "
        "0). The\n * outputs' shapes are written to `output_shapes`, if that "
        "is not null; with null\n * for `outputs`, that is all. */\n"
        "int ",
        s, "_run_shaped(", s,
        "_model* model, const void* const* inputs,\n"
        "    const int64_t* const* input_shapes, void* const* outputs,\n"
        "    int64_t* const* output_shapes);\n");
  }
  std::string guard = absl::StrCat(s, "_MODEL_H_");
  std::transform(guard.begin(), guard.end(), guard.begin(), ::toupper);
  return absl::StrCat(
      "/* A model compiled by tunec. Tensors are dense and row-major.\n"
      " * Inputs:\n",
      Describe(model.inputs), " * Outputs:\n", Describe(model.outputs),
      open_dimensions, device, " */\n#ifndef ", guard, "\n#define ", guard,
      "\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
      "#ifndef TILEFARM_MODEL_TYPES\n#define TILEFARM_MODEL_TYPES\n"
      "typedef struct tf_tensor_info {\n"
      "  const char* name;\n"
      "  int32_t dtype; /* ONNX's TensorProto.DataType */\n"
      "  int32_t rank;\n"
      "  const int64_t* shape; /* null if the rank is 0 */\n"
      "} tf_tensor_info;\n\n"
      "typedef struct tf_model_options {\n"
      "  size_t size; /* sizeof(tf_model_options) */\n"
      "  const char* weights; /* file; null: inside the library or beside it "
      "*/\n"
      "  int32_t threads; /* at most; 0: as many as there are cores */\n"
      "  int32_t spin_us; /* of idle threads before they sleep; 0: the "
      "default */\n"
      "} tf_model_options;\n#endif\n\n"
      "typedef struct ",
      s, "_model ", s,
      "_model;\n\n"
      "int ",
      s,
      "_inputs(void);\n"
      "int ",
      s,
      "_outputs(void);\n"
      "/* Null if there is no such tensor. */\n"
      "const tf_tensor_info* ",
      s,
      "_input(int number);\n"
      "const tf_tensor_info* ",
      s,
      "_output(int number);\n"
      "/* Functions that return int give 0 for success; ",
      s,
      "_error() describes this\n * thread's last error. `options` may be null. "
      "*/\n"
      "int ",
      s, "_create(const tf_model_options* options, ", s,
      "_model** model);\n"
      "/* One instance runs once at a time; several instances may run at the "
      "same\n * time. */\n"
      "int ",
      s, "_run(", s,
      "_model* model, const void* const* inputs,\n"
      "    void* const* outputs);\n",
      run_shaped, on_stream, "void ", s, "_destroy(", s,
      "_model* model);\n"
      "const char* ",
      s,
      "_error(void);\n\n"
      "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

}  // namespace tilefarm::codegen
