// An ONNX model as a graph that is ready to be compiled or tuned.
#ifndef TILEFARM_COMPILER_DRIVER_READ_MODEL_H_
#define TILEFARM_COMPILER_DRIVER_READ_MODEL_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace tilefarm::driver {

// What --print-after calls the graph as imported.
inline constexpr std::string_view kImportPass = "import";

// Whether the file is read as an ONNX model: its name ends in ".onnx".
bool IsModel(std::string_view path);

// Splits NAME=REST at the last '=', since names in models may have '='.
// InvalidArgument, with the flag's name, if there is none.
absl::StatusOr<std::pair<std::string, std::string>> SplitNamed(
    const std::string& text, const std::string& flag);

// Imports the model and applies all passes. `dims` gives the sizes of open
// dimensions as NAME=SIZE. `after` (may be empty) sees the graph after import
// and after each pass. Errors as those of onnx::ImportFile.
absl::StatusOr<graph::Graph> ReadModel(
    const std::string& path, const std::vector<std::string>& dims,
    const std::function<void(std::string_view pass, const graph::Graph&)>&
        after = {});

// The model after all passes but fusion: what fusion is compared to.
absl::StatusOr<graph::Graph> ReadUnfusedModel(
    const std::string& path, const std::vector<std::string>& dims);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_READ_MODEL_H_
