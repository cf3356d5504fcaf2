#include "compiler/driver/read_model.h"

#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "compiler/driver/host_functions.h"
#include "compiler/onnx/importer.h"

namespace tilefarm::driver {
namespace {

// The sizes in SIZE,SIZE,... of NAME=...
absl::StatusOr<std::vector<int64_t>> Sizes(const std::string& dim,
                                           std::string_view list) {
  std::vector<int64_t> sizes;
  for (const absl::string_view text :
       absl::StrSplit(absl::string_view(list.data(), list.size()), ',')) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(text, &size) || size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dim ", dim,
                       ": positive integers are expected, as in N=8 or "
                       "N=1,8,32"));
    }
    if (absl::c_linear_search(sizes, size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dim ", dim, ": ", size, " is given twice"));
    }
    sizes.push_back(size);
  }
  return sizes;
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

std::string PrintDims(const Dims& dims) {
  return absl::StrJoin(dims, ", ", absl::PairFormatter("="));
}

absl::StatusOr<std::vector<Dims>> ParseDims(
    const std::vector<std::string>& dims) {
  std::vector<Dims> all(1);
  for (const std::string& dim : dims) {
    TF_ASSIGN_OR_RETURN(const auto parts, SplitNamed(dim, "--dim"));
    TF_ASSIGN_OR_RETURN(const auto sizes, Sizes(dim, parts.second));
    if (all[0].contains(parts.first)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dim ", dim, ": ", parts.first, " is given twice"));
    }
    if (all.size() * sizes.size() > kMostVariants) {
      return absl::InvalidArgumentError(
          absl::StrCat("--dim ", dim, ": ", all.size() * sizes.size(),
                       " combinations of sizes; at most ", kMostVariants,
                       " are compiled into one library"));
    }
    std::vector<Dims> longer;
    for (const Dims& one : all) {
      for (const int64_t size : sizes) {
        longer.push_back(one);
        longer.back()[parts.first] = size;
      }
    }
    all = std::move(longer);
  }
  return all;
}

graph::Options GraphOptionsFor(const target::Target& target) {
  return {.strided_results = !target.is_gpu(),
          .packed_weights = !target.is_gpu(),
          .scattered_rows = target.is_gpu()};
}

absl::StatusOr<graph::Graph> ReadModel(const std::string& path,
                                       const Dims& dims,
                                       const target::Target& target,
                                       const SeeGraph& after) {
  TF_ASSIGN_OR_RETURN(graph::Graph graph,
                      onnx::ImportFile(path, {.dims = dims}, RunOnHost));
  if (after) after(kImportPass, graph);
  return graph::Optimize(std::move(graph), RunOnHost, GraphOptionsFor(target),
                         after);
}

absl::StatusOr<ModelVariants> ReadModelVariants(
    const std::string& path, const std::vector<std::string>& dims,
    const target::Target& target, const SeeGraph& after) {
  ModelVariants variants;
  TF_ASSIGN_OR_RETURN(variants.dims, ParseDims(dims));
  for (const Dims& one : variants.dims) {
    TF_ASSIGN_OR_RETURN(graph::Graph graph,
                        ReadModel(path, one, target, after));
    variants.graphs.push_back(std::move(graph));
  }
  if (variants.dims.size() > 1) {
    variants.sizes = absl::StrJoin(variants.dims, "; ",
                                   [](std::string* to, const Dims& one) {
                                     absl::StrAppend(to, PrintDims(one));
                                   });
  }
  return variants;
}

absl::StatusOr<graph::Graph> ReadUnfusedModel(const std::string& path,
                                              const Dims& dims) {
  TF_ASSIGN_OR_RETURN(graph::Graph graph,
                      onnx::ImportFile(path, {.dims = dims}, RunOnHost));
  for (const graph::Pass& pass : graph::AllPasses()) {
    if (pass.name == graph::kFusionPass) continue;
    TF_ASSIGN_OR_RETURN(graph, pass.apply(std::move(graph), RunOnHost));
    TF_RETURN_IF_ERROR(graph::Verify(graph));
  }
  return graph;
}

}  // namespace tilefarm::driver
