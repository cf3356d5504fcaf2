// Compiles a graph to a library with the C API of docs/formats.md ("Model
// artifacts"). Several graphs, of one model with several sizes of its open
// dimensions, become one library with the kernels and weights of all.
//
//   graph --ExtractKernels--> functions --schedule--> functions
//         --CompileModel--> kernels + sequence + weights --link--> library
#ifndef TILEFARM_COMPILER_DRIVER_COMPILE_MODEL_H_
#define TILEFARM_COMPILER_DRIVER_COMPILE_MODEL_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::driver {

// The distinct functions of graphs: equal programs are one kernel. Parameters
// that are constants of the graph are declared layout-free (ir/layout_free.h).
struct ModelKernels {
  ir::IRModule module;
  // Per call of one graph after the other; -1: needs no code.
  std::vector<int> kernel_of_call;
  std::vector<int> uses;  // per kernel: calls
};
// Those for a GPU say nothing of constants and results, which it neither packs
// nor finds in its caches when it is measured.
ModelKernels ExtractKernels(std::span<const graph::Graph> graphs,
                            bool for_gpu = false);
inline ModelKernels ExtractKernels(const graph::Graph& graph,
                                   bool for_gpu = false) {
  return ExtractKernels(std::span(&graph, 1), for_gpu);
}

struct ModelArtifact {
  struct Step {
    int kernel = -1;  // -1: copies an output
    std::string op;   // of the graph's call
    // Names of the values that it reads, without constants, and computes.
    std::vector<std::string> inputs = {}, outputs = {};
  };
  std::string shared_object;  // as in Artifact (compile.h)
  std::string archive;        // the same
  std::string header;         // the same
  std::string weights_file;   // the file's bytes; empty if they are inside
  std::string code_digest;    // SHA-256 of code, constants and symbol names
  int64_t weight_bytes = 0;
  int64_t arena_bytes = 0;
  int64_t largest_live_bytes = 0;        // no arena can be smaller
  std::vector<std::vector<Step>> steps;  // per graph, in order
  // The same library with a hook around each step (profile_model.h); empty if
  // it was not asked for.
  std::string profiled_object;
};

struct ModelOptions {
  target::Target target;
  std::string symbol = "model";
  // Of the open dimensions of several graphs, for people ("N=1; N=8").
  std::string sizes = {};
  // If not empty, the weights are in a file of this name beside the library
  // (weights_file.h).
  std::string weights_name = {};
  bool archive = false;  // also make an archive
  bool profile = false;  // also make profiled_object
};

// `scheduled` has a scheduled function for every one of `kernels.module`.
// Constants that a schedule packs are packed now, on this machine.
// Errors as those of Compile (compile.h), and InvalidArgument if graphs differ
// in more than their shapes, or if the inputs of two have the same shapes.
absl::StatusOr<ModelArtifact> CompileModel(std::span<const graph::Graph> graphs,
                                           const ModelKernels& kernels,
                                           const ir::IRModule& scheduled,
                                           const ModelOptions& options);
inline absl::StatusOr<ModelArtifact> CompileModel(const graph::Graph& graph,
                                                  const ModelKernels& kernels,
                                                  const ir::IRModule& scheduled,
                                                  const ModelOptions& options) {
  return CompileModel(std::span(&graph, 1), kernels, scheduled, options);
}

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_COMPILE_MODEL_H_
