#include "compiler/driver/time_model.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/time/time.h"
#include "base/rng.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "compiler/driver/compile_model.h"
#include "compiler/driver/read_model.h"

namespace tilefarm::driver {
namespace {

// Rounds of one run of each model: enough for a steady median of fast models,
// within a time that users wait for slow ones.
constexpr size_t kFewestRounds = 5;
constexpr size_t kMostRounds = 201;
constexpr absl::Duration kEnoughTime = absl::Seconds(3);
constexpr uint64_t kInputSeed = 1;
constexpr char kSymbol[] = "model";

using Bytes = std::vector<std::byte>;

template <typename Float>
void FillRandom(Bytes& bytes, Rng& rng) {
  for (size_t at = 0; at + sizeof(Float) <= bytes.size(); at += sizeof(Float)) {
    const auto value = static_cast<Float>(2 * rng.Uniform() - 1);
    std::memcpy(bytes.data() + at, &value, sizeof(Float));
  }
}

Bytes InputOf(const graph::TensorType& type, Rng& rng) {
  Bytes bytes(static_cast<size_t>(type.num_bytes()));
  if (type.dtype == ir::DataType::Float(32)) FillRandom<float>(bytes, rng);
  if (type.dtype == ir::DataType::Float(64)) FillRandom<double>(bytes, rng);
  return bytes;
}

absl::StatusOr<LoadedModel> Load(const graph::Graph& graph,
                                 const ModelKernels& kernels,
                                 const ScheduledModule& scheduled,
                                 const target::Target& target) {
  TF_ASSIGN_OR_RETURN(const ModelArtifact artifact,
                      CompileModel(graph, kernels, scheduled.module,
                                   {.target = target, .symbol = kSymbol}));
  return LoadedModel::Load(artifact.shared_object, kSymbol);
}

absl::StatusOr<ModelTimes> TimeVariant(const std::string& path,
                                       const Dims& dims,
                                       const target::Target& target,
                                       ir::FloatRule floats,
                                       const ChooseSchedules& tuned) {
  TF_ASSIGN_OR_RETURN(const graph::Graph graph, ReadModel(path, dims, target));
  const ModelKernels kernels = ExtractKernels(graph);
  TF_ASSIGN_OR_RETURN(const ScheduledModule chosen, tuned(kernels.module));
  TF_ASSIGN_OR_RETURN(const ScheduledModule untuned,
                      ScheduleByDefault(kernels.module, target, floats, ""));
  TF_ASSIGN_OR_RETURN(const graph::Graph unfused_graph,
                      ReadUnfusedModel(path, dims));
  const ModelKernels unfused_kernels = ExtractKernels(unfused_graph);
  TF_ASSIGN_OR_RETURN(
      const ScheduledModule unfused,
      ScheduleByDefault(unfused_kernels.module, target, floats, ""));
  TF_ASSIGN_OR_RETURN(LoadedModel first,
                      Load(unfused_graph, unfused_kernels, unfused, target));
  TF_ASSIGN_OR_RETURN(LoadedModel second,
                      Load(graph, kernels, untuned, target));
  TF_ASSIGN_OR_RETURN(LoadedModel third, Load(graph, kernels, chosen, target));
  const LoadedModel models[] = {std::move(first), std::move(second),
                                std::move(third)};
  TF_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                      TimeRuns(models, graph, Clock::Real()));
  return ModelTimes{.unfused_seconds = seconds[0],
                    .untuned_seconds = seconds[1],
                    .tuned_seconds = seconds[2]};
}

}  // namespace

absl::StatusOr<std::vector<double>> TimeRuns(
    std::span<const LoadedModel> models, const graph::Graph& graph,
    Clock& clock) {
  Rng rng(kInputSeed);
  std::vector<Bytes> inputs, outputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (graph::ValueId id : graph.inputs) {
    inputs.push_back(InputOf(graph.values[id].type, rng));
    in.push_back(inputs.back().data());
  }
  for (graph::ValueId id : graph.outputs) {
    outputs.emplace_back(
        static_cast<size_t>(graph.values[id].type.num_bytes()));
    out.push_back(outputs.back().data());
  }
  // The first run of each warms up the caches and starts the threads.
  for (const LoadedModel& model : models) {
    TF_RETURN_IF_ERROR(model.Run(in, out));
  }
  std::vector<std::vector<double>> samples(models.size());
  const absl::Duration start = clock.Monotonic();
  for (size_t round = 0; round < kMostRounds; ++round) {
    if (round >= kFewestRounds && clock.Monotonic() - start >= kEnoughTime) {
      break;
    }
    for (size_t i = 0; i < models.size(); ++i) {
      const absl::Duration before = clock.Monotonic();
      TF_RETURN_IF_ERROR(models[i].Run(in, out));
      samples[i].push_back(absl::ToDoubleSeconds(clock.Monotonic() - before));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& one : samples) {
    medians.push_back(MedianOf(std::move(one)).median);
  }
  return medians;
}

absl::StatusOr<ModelTimes> TimeModel(const std::string& path,
                                     const std::vector<std::string>& dims,
                                     const target::Target& target,
                                     ir::FloatRule floats,
                                     const ChooseSchedules& tuned) {
  TF_ASSIGN_OR_RETURN(const std::vector<Dims> variants, ParseDims(dims));
  ModelTimes sum;
  for (const Dims& variant : variants) {
    TF_ASSIGN_OR_RETURN(const ModelTimes times,
                        TimeVariant(path, variant, target, floats, tuned));
    sum.unfused_seconds += times.unfused_seconds;
    sum.untuned_seconds += times.untuned_seconds;
    sum.tuned_seconds += times.tuned_seconds;
  }
  return sum;
}

}  // namespace tilefarm::driver
