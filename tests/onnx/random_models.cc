// Compares random models, optimised, fused and compiled, with the same graphs
// run call by call:
//
//   random_models [--seed N] [--count N] [--drafts N] [--keep DIR]
//                 [--target T] | --seed N --write FILE
//
// Model number i has the seed N + i; with --drafts N every Nth is scheduled as
// tunec does without records, the others are compiled as they are written; for
// GPUs ("sim:sm_90a", "opencl:pocl") all are scheduled. A
// model that fails is shortened to its first nodes that still fail, and written
// to DIR/SEED.onnx. Exit status 1 if there was one.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "base/status_macros.h"
#include "compiler/driver/host_functions.h"
#include "compiler/graph/run_graph.h"
#include "compiler/onnx/importer.h"
#include "tests/graph/random_inputs.h"
#include "tests/onnx/compiled_graph.h"
#include "tests/onnx/random_model.h"
#include "tests/support/close_to.h"

namespace tilefarm {
namespace {

using graph::Elements;
using graph::Interpreted;

// Internal: the results differ.
absl::Status Check(const std::string& model, uint64_t seed, bool drafts,
                   const std::string& target) {
  TF_ASSIGN_OR_RETURN(const graph::Graph graph,
                      onnx::ImportBytes(model, "", {}, Interpreted));
  Rng rng(seed);
  const std::vector<graph::TensorData> inputs = graph::RandomInputs(graph, rng);
  TF_ASSIGN_OR_RETURN(const auto expected,
                      graph::RunGraph(graph, inputs, Interpreted));
  TF_ASSIGN_OR_RETURN(
      const testing::CompiledGraph compiled,
      testing::CompiledGraph::Compile(graph,
                                      drafts ? testing::Schedules::kDefault
                                             : testing::Schedules::kAsWritten,
                                      target));
  TF_ASSIGN_OR_RETURN(const auto actual, compiled.Run(inputs));
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto exact_values = Elements<float>(expected[i]);
    const auto values = Elements<float>(actual[i]);
    for (size_t k = 0; k < exact_values.size(); ++k) {
      const float exact = exact_values[k];
      const float got = values[k];
      // Values are about 1; norms enlarge their rounding.
      if (CloseTo(got, exact, 1e-3, 1e-3)) continue;
      return absl::InternalError(absl::StrCat("output ", i, ", element ", k,
                                              ": ", got, ", not ", exact));
    }
  }
  return absl::OkStatus();
}

struct Options {
  uint64_t seed = 1;
  int count = 100;
  int drafts = 0;
  std::string keep = ".", target = "host,cores=1", write;
};

int Run(const Options& options) {
  if (!options.write.empty()) {
    std::ofstream file(options.write, std::ios::binary);
    file << onnx::RandomModel(options.seed);
    return file.flush() ? 0 : 1;
  }
  int failures = 0, nodes = 0;
  for (int i = 0; i < options.count; ++i) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(i);
    const bool drafts = !options.target.starts_with("host") ||
                        (options.drafts > 0 && i % options.drafts == 0);
    std::string model = onnx::RandomModel(seed);
    nodes += onnx::NodeCount(model);
    const absl::Status status = Check(model, seed, drafts, options.target);
    if (status.ok()) continue;
    ++failures;
    for (int n = 1; n < onnx::NodeCount(model); ++n) {
      const std::string shorter = onnx::Shortened(model, n);
      if (Check(shorter, seed, drafts, options.target).ok()) continue;
      model = shorter;
      break;
    }
    const std::string path = absl::StrCat(options.keep, "/", seed, ".onnx");
    std::ofstream(path, std::ios::binary) << model;
    std::printf("seed %llu: %s; %d nodes of it in %s\n",
                static_cast<unsigned long long>(seed),
                status.ToString().c_str(), onnx::NodeCount(model),
                path.c_str());
  }
  std::printf("%d models of %d nodes, %d failures\n", options.count, nodes,
              failures);
  return failures == 0 ? 0 : 1;
}

int Main(int argc, char** argv) {
  CLI::App app("Compares compiled random models with their graphs.");
  Options options;
  app.add_option("--seed", options.seed, "of the first model");
  app.add_option("--count", options.count, "models");
  app.add_option("--drafts", options.drafts, "every Nth gets schedules");
  app.add_option("--keep", options.keep, "folder for models that fail");
  app.add_option("--target", options.target, "as of tunec");
  app.add_option("--write", options.write,
                 "file that gets the first model, and no more is done");
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}

}  // namespace
}  // namespace tilefarm

int main(int argc, char** argv) { return tilefarm::Main(argc, argv); }
