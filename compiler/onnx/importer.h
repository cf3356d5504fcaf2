// ONNX models -> graphs.
//
//   Graph graph = *ImportFile("resnet50.onnx", {.dims = {{"N", 1}}}, run);
//
// Shapes are inferred while the calls are built. Values that depend on
// constants only are computed when an operator needs them at compile time (the
// shape of a Reshape, for example).
#ifndef TILEFARM_COMPILER_ONNX_IMPORTER_H_
#define TILEFARM_COMPILER_ONNX_IMPORTER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/graph/builder.h"
#include "compiler/graph/graph.h"

namespace tilefarm::onnx {

struct ImportOptions {
  // Values of symbolic dimensions, by name.
  std::map<std::string, int64_t> dims;
};

// Reads the model and its external data. Errors:
//   NotFound         the file, or a file of external data
//   InvalidArgument  not an ONNX model, or one that is not well-formed
//   Unimplemented    lists every operator and attribute without support, with
//                    the names of the nodes
absl::StatusOr<graph::Graph> ImportFile(const std::string& path,
                                        const ImportOptions& options,
                                        graph::RunFunction run);
// The same for a serialised ModelProto. Files of external data are looked up in
// `directory`; if it is empty, external data is an error.
absl::StatusOr<graph::Graph> ImportBytes(std::string_view model,
                                         const std::string& directory,
                                         const ImportOptions& options,
                                         graph::RunFunction run);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_IMPORTER_H_
