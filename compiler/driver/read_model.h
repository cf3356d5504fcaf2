// An ONNX model as a graph that is ready to be compiled or tuned.
#ifndef TILEFARM_COMPILER_DRIVER_READ_MODEL_H_
#define TILEFARM_COMPILER_DRIVER_READ_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/passes.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

// What --print-after calls the graph as imported.
inline constexpr std::string_view kImportPass = "import";

// Whether the file is read as an ONNX model: its name ends in ".onnx".
bool IsModel(std::string_view path);

// Splits NAME=REST at the last '=', since names in models may have '='.
// InvalidArgument, with the flag's name, if there is none.
absl::StatusOr<std::pair<std::string, std::string>> SplitNamed(
    const std::string& text, const std::string& flag);

using SeeGraph =
    std::function<void(std::string_view pass, const graph::Graph&)>;

// The sizes of a model's open dimensions.
using Dims = std::map<std::string, int64_t>;

// "N=1, M=2".
std::string PrintDims(const Dims& dims);

// What `dims` ask for: NAME=SIZE, or NAME=SIZE,SIZE,... for a model that takes
// each of the sizes; of several such dimensions, all combinations.
// InvalidArgument: no such text, a size or name twice, or more than
// kMostVariants combinations.
inline constexpr size_t kMostVariants = 64;
absl::StatusOr<std::vector<Dims>> ParseDims(
    const std::vector<std::string>& dims);

// What the kernels of the target allow passes to do.
graph::Options GraphOptionsFor(const target::Target& target);

// Imports the model and applies all passes, for the target. `after` (may be
// empty) sees the graph after import and after each pass. Errors as those of
// onnx::ImportFile.
absl::StatusOr<graph::Graph> ReadModel(const std::string& path,
                                       const Dims& dims,
                                       const target::Target& target,
                                       const SeeGraph& after = {});

// The model for each combination of sizes.
struct ModelVariants {
  std::vector<Dims> dims;
  std::vector<graph::Graph> graphs;
  std::string sizes;  // of all ("N=1; N=8"); empty if there is one
};
// `dims` as in ParseDims, and its errors.
absl::StatusOr<ModelVariants> ReadModelVariants(
    const std::string& path, const std::vector<std::string>& dims,
    const target::Target& target, const SeeGraph& after = {});

// The model after all passes but fusion, for a CPU: what fusion is compared to.
absl::StatusOr<graph::Graph> ReadUnfusedModel(const std::string& path,
                                              const Dims& dims);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_READ_MODEL_H_
