#include "server/services/convert.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "server/services/device_clock.h"

namespace tilefarm::services {
namespace {

constexpr size_t kMaxErrorText = 16 << 10;
constexpr uint32_t kMaxCores = 4096;
constexpr uint64_t kMaxDeviceBytes = uint64_t{1} << 50;
// Relative error allowed between an interval and its samples: JSON rounds.
constexpr double kRounding = 1e-9;

// Whether a time, an error or a rate can be stored and compared.
bool Sane(double value) { return std::isfinite(value) && value >= 0; }

// The problem of the measurement; empty: none.
std::string Nonsense(const v1::Measurement& measurement) {
  const auto status = database::ParseStatus(measurement.status());
  if (!status.has_value()) {
    return absl::StrCat("status '", measurement.status(), "'");
  }
  if (!measurement.layout().empty() && measurement.layout() != "as_stated" &&
      measurement.layout() != "packed") {
    return "an unknown layout";
  }
  if (measurement.cores() > kMaxCores) return "a number of cores";
  for (const double seconds : measurement.seconds()) {
    if (!Sane(seconds)) return "a sample that is no time";
  }
  if (!Sane(measurement.median_seconds()) ||
      !Sane(measurement.ci_low_seconds()) ||
      !Sane(measurement.ci_high_seconds()) ||
      !Sane(measurement.compile_seconds())) {
    return "a time that is none";
  }
  if (*status != database::Status::kOk) return "";
  const double median = measurement.median_seconds();
  if (median <= 0) return "success in no time";
  // The median is one of the samples, or lies between two of them.
  const auto& samples = measurement.seconds();
  if (!samples.empty()) {
    const auto [least, most] =
        std::minmax_element(samples.begin(), samples.end());
    if (median < *least * (1 - kRounding) || median > *most * (1 + kRounding)) {
      return "a median that is none of its samples";
    }
  }
  // An interval of zeros means that there is none.
  const double low = measurement.ci_low_seconds();
  const double high = measurement.ci_high_seconds();
  if ((low != 0 || high != 0) &&
      (low > median * (1 + kRounding) || high < median * (1 - kRounding))) {
    return "an interval without the median";
  }
  return "";
}

// The problem of the pairs of a comparison; empty: none.
std::string Nonsense(const v1::ComparedPairs& compared, bool ok) {
  const auto& baseline = compared.baseline_seconds();
  const auto& candidate = compared.candidate_seconds();
  if (baseline.size() != candidate.size()) return "samples without their pairs";
  if (ok && baseline.empty()) return "a comparison without samples";
  for (const auto* samples : {&baseline, &candidate}) {
    for (const double seconds : *samples) {
      if (!Sane(seconds) || seconds <= 0) return "a sample that is no time";
    }
  }
  if (!Sane(compared.canary_seconds()) || !Sane(compared.device_seconds())) {
    return "a time that is none";
  }
  return "";
}

// What the device announced: numbers, texts and flags by name.
absl::Status CheckDeviceState(const std::string& text) {
  if (text.empty()) return absl::OkStatus();
  const auto json = ParseJson(text);
  const bool flat =
      json.is_object() &&
      std::all_of(json.begin(), json.end(),
                  [](const auto& value) { return value.is_primitive(); });
  if (flat) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "Measurement.device_state is not a flat JSON object");
}

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

// The caches in a SubmitRequest or a JobTarget.
template <typename Message>
jobs::JobTarget ToTarget(const std::string& key, const Message& message) {
  jobs::JobTarget target = {.key = key, .caches = std::nullopt};
  if (message.has_caches()) {
    target.caches = {
        .l1_bytes = static_cast<int64_t>(message.caches().l1_bytes()),
        .l2_bytes = static_cast<int64_t>(message.caches().l2_bytes()),
        .l3_bytes = static_cast<int64_t>(message.caches().l3_bytes())};
  }
  return target;
}

uint32_t Milliseconds(absl::Duration duration) {
  return static_cast<uint32_t>(absl::ToInt64Milliseconds(duration));
}

v1::ComparedArtifact ToProtoArtifact(const farm::ComparedArtifact& artifact) {
  v1::ComparedArtifact out;
  out.set_sha256(artifact.sha256);
  out.set_bytes(static_cast<uint64_t>(artifact.bytes));
  out.set_symbol(artifact.symbol);
  out.set_spread(artifact.spread);
  return out;
}

}  // namespace

absl::StatusOr<farm::WorkerHello> FromProto(const v1::Hello& hello) {
  const v1::DeviceProperties& device = hello.device();
  for (const uint64_t bytes : {device.l1_bytes(), device.l2_bytes(),
                               device.l3_bytes(), device.memory_bytes()}) {
    if (bytes > kMaxDeviceBytes) {
      return absl::InvalidArgumentError("a worker's size that no machine has");
    }
  }
  if (device.cores() > kMaxCores) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker has at most ", kMaxCores, " cores"));
  }
  farm::WorkerHello out;
  out.protocol_version = hello.protocol_version();
  out.name = hello.name();
  out.boot_id = hello.boot_id();
  out.fingerprint = hello.fingerprint();
  out.device.target = device.target();
  out.device.triple = device.triple();
  out.device.cpu = device.cpu();
  out.device.features.assign(device.features().begin(),
                             device.features().end());
  out.device.brand = device.brand();
  out.device.cores = static_cast<int>(device.cores());
  out.device.l1_bytes = static_cast<int64_t>(device.l1_bytes());
  out.device.l2_bytes = static_cast<int64_t>(device.l2_bytes());
  out.device.l3_bytes = static_cast<int64_t>(device.l3_bytes());
  out.device.memory_bytes = static_cast<int64_t>(device.memory_bytes());
  out.device.emulated = device.emulated();
  out.device.takes_artifacts = device.takes_artifacts();
  out.device.isolation = device.isolation();
  out.device.libraries.insert(device.libraries().begin(),
                              device.libraries().end());
  for (const auto& [label, value] : hello.labels()) {
    if (label.empty()) {
      return absl::InvalidArgumentError("a worker's label has no name");
    }
    out.device.labels[label] = value;
  }
  return out;
}

std::vector<farm::HeldLease> FromProto(const v1::State& state) {
  std::vector<farm::HeldLease> held;
  for (const v1::State::Held& one : state.held()) {
    farm::Phase phase = farm::Phase::kGranted;
    if (one.phase() == v1::LEASE_PHASE_BUILDING) phase = farm::Phase::kBuilding;
    if (one.phase() == v1::LEASE_PHASE_BUILT) phase = farm::Phase::kBuilt;
    const bool reported = one.phase() == v1::LEASE_PHASE_REPORTED;
    if (reported || one.phase() == v1::LEASE_PHASE_RUNNING) {
      phase = farm::Phase::kRunning;
    }
    held.push_back({.lease_id = one.lease_id(),
                    .attempt = one.attempt(),
                    .phase = phase,
                    .reported = reported});
  }
  return held;
}

absl::StatusOr<farm::WorkerResult> FromProto(const v1::Result& result) {
  const v1::Measurement& in = result.measurement();
  TF_RETURN_IF_ERROR(CheckDeviceState(in.device_state()));
  farm::WorkerResult out;
  out.lease_id = result.lease_id();
  out.attempt = result.attempt();
  out.candidate_id = result.candidate_id();
  farm::Measurement& measured = out.measurement;
  measured.isolation = in.isolation();
  measured.emulated = in.emulated();
  measured.fingerprint = in.fingerprint();
  measured.cores = static_cast<int>(std::min(in.cores(), kMaxCores));
  measured.cold_cache = in.cold_cache();
  if (in.layout() == "packed") measured.layout = in.layout();
  measured.device_state = in.device_state();
  std::string nonsense = Nonsense(in);
  if (in.has_compared()) {
    const v1::ComparedPairs& pairs = in.compared();
    if (nonsense.empty()) nonsense = Nonsense(pairs, in.status() == "ok");
    farm::ComparedPairs& compared = measured.compared.emplace();
    if (nonsense.empty()) {
      compared.baseline_seconds.assign(pairs.baseline_seconds().begin(),
                                       pairs.baseline_seconds().end());
      compared.candidate_seconds.assign(pairs.candidate_seconds().begin(),
                                        pairs.candidate_seconds().end());
      compared.canary_seconds = pairs.canary_seconds();
      compared.device_seconds = pairs.device_seconds();
    }
    if (pairs.failed_side() == "baseline" ||
        pairs.failed_side() == "candidate") {
      compared.failed_side = pairs.failed_side();
    }
  }
  if (!nonsense.empty()) {
    measured.status = database::Status::kRunError;
    measured.error = absl::StrCat("the worker reported ", nonsense);
    return out;
  }
  measured.status = *database::ParseStatus(in.status());
  measured.error = in.error().substr(0, kMaxErrorText);
  measured.seconds.assign(in.seconds().begin(), in.seconds().end());
  measured.median_seconds = in.median_seconds();
  measured.ci_low_seconds = in.ci_low_seconds();
  measured.ci_high_seconds = in.ci_high_seconds();
  measured.stopped_early = in.stopped_early();
  measured.verified = in.verified() && measured.status == database::Status::kOk;
  // The errors of a wrong result may be infinite or NaN, and are kept.
  measured.max_abs_error = in.max_abs_error();
  measured.max_rel_error = in.max_rel_error();
  measured.compile_seconds = in.compile_seconds();
  measured.code_digest = in.code_digest();
  return out;
}

jobs::JobSpec FromProto(const v1::SubmitRequest& request) {
  jobs::JobSpec spec;
  spec.request_id = request.request_id();
  spec.user = request.user();
  spec.program = request.program();
  spec.program_name = request.program_name();
  spec.trials = request.trials();
  spec.seconds = request.seconds();
  spec.patience = request.patience();
  spec.seed = request.seed();
  spec.model = request.model();
  spec.search = request.search();
  spec.space_trace = request.space_trace();
  spec.flush_cache = request.flush_cache();
  spec.allow_library = request.allow_library();
  spec.strict_fp = request.strict_fp();
  spec.no_winograd = request.no_winograd();
  spec.priority = request.priority();
  spec.requirements.assign(request.requirements().begin(),
                           request.requirements().end());
  spec.weights.insert(request.weights().begin(), request.weights().end());
  spec.targets.push_back(ToTarget(request.target(), request));
  for (const v1::JobTarget& one : request.more_targets()) {
    spec.targets.push_back(ToTarget(one.target(), one));
  }
  return spec;
}

double NumberIn(const std::string& object, const char* key) {
  const auto json = ParseJson(object);
  if (!json.is_object() || !json.contains(key)) return 0;
  const auto& value = json[key];
  return value.is_number() ? value.get<double>() : 0;
}

v1::Lease ToProto(const farm::Lease& lease) {
  v1::Lease out;
  out.set_lease_id(lease.lease_id);
  out.set_attempt(lease.attempt);
  out.set_candidate_id(lease.item.candidate_id);
  out.set_program(lease.item.program);
  out.set_trace(lease.item.trace);
  out.set_scheduled_hash(lease.item.scheduled_hash);
  out.set_target(lease.item.target.Key());
  out.set_workload_hash(lease.item.workload_hash);
  const farm::MeasureOptions& options = lease.item.options;
  v1::MeasureOptions& wire = *out.mutable_options();
  wire.set_build_timeout_ms(Milliseconds(options.build_timeout));
  wire.set_run_timeout_ms(Milliseconds(options.run_timeout));
  wire.set_build_memory_bytes(options.build_memory_bytes);
  wire.set_run_memory_bytes(options.run_memory_bytes);
  wire.set_flush_cache(options.flush_cache);
  wire.set_min_samples(options.min_samples);
  wire.set_max_samples(options.max_samples);
  wire.set_target_ms(Milliseconds(options.target_time));
  wire.set_best_seconds(lease.best_seconds);
  wire.set_input_seed(options.input_seed);
  if (lease.item.comparison.has_value()) {
    const farm::Comparison& comparison = *lease.item.comparison;
    v1::Comparison& compared = *out.mutable_comparison();
    *compared.mutable_baseline() = ToProtoArtifact(comparison.baseline);
    *compared.mutable_candidate() = ToProtoArtifact(comparison.candidate);
    compared.set_candidate_first(comparison.candidate_first);
    compared.set_sample_us(
        static_cast<uint32_t>(absl::ToInt64Microseconds(comparison.sample)));
    compared.set_cluster_ms(Milliseconds(comparison.cluster));
    compared.set_fewest_rounds(comparison.fewest_rounds);
    compared.set_most_rounds(comparison.most_rounds);
    if (comparison.model.has_value()) {
      v1::ModelSignature& model = *compared.mutable_model();
      const auto add = [](const farm::ModelSignature::Tensor& tensor,
                          v1::ModelSignature::Tensor& wire) {
        wire.set_dtype(tensor.dtype);
        wire.set_elements(static_cast<uint64_t>(tensor.elements));
      };
      for (const auto& one : comparison.model->inputs) {
        add(one, *model.add_inputs());
      }
      for (const auto& one : comparison.model->outputs) {
        add(one, *model.add_outputs());
      }
      model.set_cores(static_cast<uint32_t>(lease.item.target.cores));
    }
  }
  return out;
}

v1::Device ToProto(const farm::DeviceStatus& device) {
  v1::Device out;
  out.set_name(device.name);
  out.set_state(std::string(farm::DeviceStateName(device.state)));
  out.set_reason(device.reason);
  out.set_model(device.model);
  out.set_target(device.target);
  out.set_last_seen(Rfc3339(device.last_seen));
  out.set_trials_per_second(device.trials_per_second);
  out.mutable_libraries()->insert(device.libraries.begin(),
                                  device.libraries.end());
  out.mutable_labels()->insert(device.labels.begin(), device.labels.end());
  if (!device.reserved_for.empty()) {
    out.set_reserved_for(device.reserved_for);
    out.set_reserved_until(Rfc3339(device.reserved_until));
  }
  out.set_unsteady(device.unsteady);
  out.set_isolation(device.isolation);
  out.set_clock_mhz(ClockOf(device.target, device.device_state).mhz);
  out.set_temperature_c(NumberIn(device.device_state, "temperature_c"));
  return out;
}

v1::AuditEntry ToProto(const database::AuditEntry& entry) {
  v1::AuditEntry out;
  out.set_id(entry.id);
  out.set_at(entry.at);
  out.set_actor(entry.actor);
  out.set_action(entry.action);
  out.set_subject(entry.subject);
  out.set_detail(entry.detail);
  return out;
}

v1::Job ToProtoJob(const jobs::JobSnapshot& snapshot) {
  v1::Job out;
  out.set_id(snapshot.id);
  out.set_state(std::string(jobs::JobStateName(snapshot.state)));
  out.set_user(snapshot.user);
  out.set_program(snapshot.program_name);
  for (size_t i = 0; i < snapshot.targets.size(); ++i) {
    *(i == 0 ? out.mutable_target() : out.add_more_targets()) =
        snapshot.targets[i];
  }
  out.set_trials(snapshot.trials);
  out.set_trials_done(snapshot.trials_done);
  out.set_best_seconds(snapshot.best_seconds());
  out.set_error(snapshot.error);
  return out;
}

v1::JobUpdate ToProto(const jobs::JobSnapshot& snapshot,
                      const std::vector<farm::DeviceStatus>& devices) {
  v1::JobUpdate out;
  out.set_job_id(snapshot.id);
  out.set_state(std::string(jobs::JobStateName(snapshot.state)));
  out.set_trials(snapshot.trials);
  out.set_trials_done(snapshot.trials_done);
  for (const auto& [status, count] : snapshot.by_status) {
    (*out.mutable_by_status())[status] = count;
  }
  out.set_best_seconds(snapshot.best_seconds());
  out.set_best_gflops(snapshot.best_gflops());
  out.set_unscheduled_seconds(snapshot.unscheduled_seconds());
  out.set_trials_per_second(snapshot.trials_per_second);
  out.set_seconds_left(snapshot.seconds_left);
  for (const jobs::TaskSnapshot& task : snapshot.tasks) {
    v1::TaskProgress& progress = *out.add_tasks();
    progress.set_function(task.function);
    progress.set_target(task.target);
    progress.set_workload_hash(task.workload_hash);
    progress.set_trials_done(task.trials_done);
    progress.set_best_seconds(task.best_seconds);
    progress.set_best_gflops(
        task.best_seconds > 0 ? task.flops / task.best_seconds * 1e-9 : 0);
    progress.set_unscheduled_seconds(task.unscheduled_seconds);
    progress.set_flops(task.flops);
    progress.set_weight(task.weight);
    progress.set_default_seconds(task.default_seconds);
    progress.set_state(task.state);
    progress.set_shape(task.shape);
    progress.mutable_algorithms()->Add(task.algorithms.begin(),
                                       task.algorithms.end());
    progress.set_changes_floats(!task.keeps_floats);
  }
  for (const farm::DeviceStatus& device : devices) {
    *out.add_devices() = ToProto(device);
  }
  out.set_message(snapshot.message);
  out.set_error(snapshot.error);
  return out;
}

int64_t LogEntries(int64_t wanted) {
  constexpr int64_t kMostEntries = 1000;
  return wanted <= 0 ? kMostEntries : std::min(wanted, kMostEntries);
}

}  // namespace tilefarm::services
