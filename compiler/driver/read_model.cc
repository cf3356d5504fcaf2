#include "compiler/driver/read_model.h"

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/driver/host_functions.h"
#include "compiler/graph/passes.h"
#include "compiler/onnx/importer.h"

namespace tilefarm::driver {
namespace {

absl::StatusOr<onnx::ImportOptions> Dims(const std::vector<std::string>& dims) {
  onnx::ImportOptions options;
  for (const std::string& dim : dims) {
    TF_ASSIGN_OR_RETURN(const auto parts, SplitNamed(dim, "--dim"));
    int64_t size = 0;
    if (!absl::SimpleAtoi(parts.second, &size) || size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dim ", dim, ": the size must be a positive integer"));
    }
    if (!options.dims.emplace(parts.first, size).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dim ", dim, ": ", parts.first, " is given twice"));
    }
  }
  return options;
}

}  // namespace

bool IsModel(std::string_view path) { return path.ends_with(".onnx"); }

absl::StatusOr<std::pair<std::string, std::string>> SplitNamed(
    const std::string& text, const std::string& flag) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", text, ": NAME=... is expected"));
  }
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

absl::StatusOr<graph::Graph> ReadModel(
    const std::string& path, const std::vector<std::string>& dims,
    const std::function<void(std::string_view pass, const graph::Graph&)>&
        after) {
  TF_ASSIGN_OR_RETURN(const onnx::ImportOptions options, Dims(dims));
  TF_ASSIGN_OR_RETURN(graph::Graph graph,
                      onnx::ImportFile(path, options, RunOnHost));
  if (after) after(kImportPass, graph);
  return graph::Optimize(std::move(graph), RunOnHost, after);
}

absl::StatusOr<graph::Graph> ReadUnfusedModel(
    const std::string& path, const std::vector<std::string>& dims) {
  TF_ASSIGN_OR_RETURN(const onnx::ImportOptions options, Dims(dims));
  TF_ASSIGN_OR_RETURN(graph::Graph graph,
                      onnx::ImportFile(path, options, RunOnHost));
  for (const graph::Pass& pass : graph::AllPasses()) {
    if (pass.name == graph::kFusionPass) continue;
    TF_ASSIGN_OR_RETURN(graph, pass.apply(std::move(graph), RunOnHost));
    TF_RETURN_IF_ERROR(graph::Verify(graph));
  }
  return graph;
}

}  // namespace tilefarm::driver
