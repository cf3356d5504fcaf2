// The code around the kernels of a model: the functions that its callers see,
// the sequence of kernels, and the weights.
#ifndef TILEFARM_COMPILER_CODEGEN_MODEL_OBJECT_H_
#define TILEFARM_COMPILER_CODEGEN_MODEL_OBJECT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/codegen/codegen.h"

namespace tilefarm::codegen {

// An input or output as the C API describes it.
struct ModelTensor {
  std::string name;
  int32_t dtype = 0;           // number of ONNX's TensorProto.DataType
  std::vector<int64_t> shape;  // -1: the dimension is open
};

struct ModelOperand {
  enum class Kind : uint8_t { kInput, kOutput, kArena, kWeights };
  Kind kind = Kind::kArena;
  // Number of the input or output; offset in bytes.
  int64_t at = 0;
  int64_t bytes = 0;  // that the step may access
};

// Calls a kernel; or copies, if it has no name.
struct ModelStep {
  std::string kernel;
  std::vector<ModelOperand> operands;  // of a copy: to, from
  int64_t copied_bytes = 0;
};

// Multiples of this are the offsets of weights and in the arena.
int64_t ModelAlignment(const target::Target& target);

struct ModelWeights {
  int64_t offset = 0;
  std::span<const std::byte> bytes;
};

// Weights outside of the library (driver/weights_file.h).
struct ModelWeightsFile {
  std::string name;    // of the file beside the library
  std::string digest;  // 32 bytes
};

// The kernels for one combination of the inputs' shapes.
struct ModelVariant {
  std::vector<std::vector<int64_t>> input_shapes, output_shapes;
  std::vector<int64_t> input_bytes, output_bytes;
  std::vector<ModelStep> steps;
};

struct ModelDescription {
  std::string symbol;
  std::vector<ModelTensor> inputs, outputs;
  std::vector<ModelVariant> variants;  // one if no dimension is open
  // Of the open dimensions, for people ("N=1; N=8"); empty if none is open.
  std::string sizes = {};
  int64_t arena_bytes = 0;
  std::vector<ModelWeights> weights;  // ascending, without overlap
  // If set, `weights` are not in the object.
  std::optional<ModelWeightsFile> weights_file = std::nullopt;
  // If set, the object also exports ProfileHookSymbol(symbol): a struct of a
  // function and its argument (void*), which is called before each step and
  // after the last; it does nothing until the loader sets another one.
  bool profiled = false;
};

std::string ProfileHookSymbol(const std::string& symbol);

// Appends the weights, with zeros between them.
void AppendWeights(const std::vector<ModelWeights>& weights, std::string& to);

// The functions of the header of a model without open dimensions
// (SYMBOL_create, ...).
std::vector<std::string> ModelSymbols(const std::string& symbol);

// An ELF object, for target.HostPart(), that exports these functions, and needs
// the kernels and the runtime. The values of a model for a GPU are in its
// memory; those of simulated ones are the host's. InvalidArgument: a profiled
// model for a GPU.
absl::StatusOr<std::string> EmitModelObject(const ModelDescription& model,
                                            const Options& options);

// The C header of the model (model_header.cc).
std::string ModelHeader(const ModelDescription& model,
                        const target::Target& target);

}  // namespace tilefarm::codegen

#endif  // TILEFARM_COMPILER_CODEGEN_MODEL_OBJECT_H_
