// What the builders' threads do with a lease: its reference and its candidate,
// or the artifacts of a comparison.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/pipeline.h"
#include "worker/pipeline_job.h"

namespace tilefarm::worker {
namespace {

// Limit for leases without their own.
constexpr absl::Duration kBuildTimeout = absl::Seconds(10);
// Limit for the reference, which is made once per workload, and how many are
// cached.
constexpr absl::Duration kReferenceBuildTimeout = absl::Seconds(60);
constexpr size_t kCachedReferences = 32;
// A builder cannot be started if the installation is damaged, or for a moment
// if memory is short: starting is tried so often, and then recorded as an
// error.
constexpr int kStartAttempts = 4;

void Fail(v1::Measurement& measurement, const char* status,
          const std::string& error) {
  measurement.set_status(status);
  measurement.set_error(error);
}

}  // namespace

void Pipeline::BuilderLoop(BuilderClient& builder) {
  for (;;) {
    JobPtr job;
    {
      MutexLock lock(mutex_);
      while (!ending_ && (queue_.empty() || builders_paused_)) {
        changed_.Wait(mutex_);
      }
      if (ending_) return;
      job = queue_.front();
      queue_.pop_front();
      job->phase = v1::LEASE_PHASE_BUILDING;
    }
    Progress();
    job->built.from = Moment();
    const bool built = BuildJob(builder, *job);
    job->built.to = Moment();
    if (!built) {
      Finish(job);
      continue;
    }
    {
      MutexLock lock(mutex_);
      job->phase = v1::LEASE_PHASE_BUILT;
      ready_.push_back(job);
      changed_.NotifyAll();
    }
    Progress();
  }
}

absl::StatusOr<BuildReply> Pipeline::BuildOnce(BuilderClient& builder,
                                               const BuildRequest& request,
                                               absl::Duration timeout) {
  for (int attempt = 1;; ++attempt) {
    absl::StatusOr<BuildReply> reply = builder.Build(request, timeout);
    if (!absl::IsUnavailable(reply.status()) &&
        !absl::IsNotFound(reply.status())) {
      return reply;
    }
    {
      MutexLock lock(mutex_);
      if (ending_ || attempt == kStartAttempts) return reply;
    }
    Log(LogLevel::kWarning, "worker", std::string(reply.status().message()));
    absl::SleepFor(absl::Milliseconds(200) * attempt);
  }
}

absl::StatusOr<Pipeline::ReferencePtr> Pipeline::ReferenceFor(
    BuilderClient& builder, const Job& job) {
  const v1::Lease& lease = job.lease;
  const std::string key =
      absl::StrCat(lease.workload_hash(), "/", lease.options().input_seed(),
                   "/", lease.target());
  {
    MutexLock lock(mutex_);
    for (auto it = references_.begin(); it != references_.end(); ++it) {
      if ((*it)->key != key) continue;
      references_.splice(references_.begin(), references_, it);
      return references_.front();
    }
  }
  BuildRequest request;
  request.program = lease.program();
  request.target = lease.target();
  request.reference = true;
  request.memory_bytes = lease.options().build_memory_bytes();
  TF_ASSIGN_OR_RETURN(BuildReply reply,
                      BuildOnce(builder, request, kReferenceBuildTimeout));
  if (reply.status != BuildStatus::kOk) {
    return absl::InvalidArgumentError(reply.error);
  }
  auto reference = std::make_shared<Reference>();
  reference->key = key;
  reference->build = std::move(reply);
  MutexLock lock(mutex_);
  // Another builder may have made it meanwhile; both are equal.
  references_.push_front(std::move(reference));
  if (references_.size() > kCachedReferences) references_.pop_back();
  return references_.front();
}

bool Pipeline::BuildJob(BuilderClient& builder, Job& job) {
  const v1::Lease& lease = job.lease;
  absl::StatusOr<ReferencePtr> reference = lease.comparison().has_model()
                                               ? ModelReference(lease)
                                               : ReferenceFor(builder, job);
  if (!reference.ok()) {
    Fail(
        job.measurement,
        absl::IsDeadlineExceeded(reference.status()) ? "compile_timeout"
                                                     : "compile_error",
        absl::StrCat("reference: ", std::string(reference.status().message())));
    return false;
  }
  job.reference = *std::move(reference);
  if (lease.has_comparison()) return FetchArtifacts(job);

  BuildRequest request;
  request.program = lease.program();
  request.trace = lease.trace();
  request.scheduled_hash = lease.scheduled_hash();
  request.target = lease.target();
  request.memory_bytes = lease.options().build_memory_bytes();
  const absl::Duration timeout =
      lease.options().build_timeout_ms() == 0
          ? kBuildTimeout
          : absl::Milliseconds(lease.options().build_timeout_ms());
  std::optional<BuildReply> known = built_.Find(request);
  const bool is_known = known.has_value();
  absl::StatusOr<BuildReply> build =
      is_known ? *std::move(known) : BuildOnce(builder, request, timeout);
  if (build.ok() && !is_known) built_.Add(request, *build);
  if (!build.ok()) {
    Fail(job.measurement,
         absl::IsDeadlineExceeded(build.status()) ? "compile_timeout"
                                                  : "compile_error",
         std::string(build.status().message()));
    return false;
  }
  job.measurement.set_compile_seconds(build->compile_seconds);
  job.measurement.set_cores(build->cores);
  job.measurement.set_code_digest(build->code_digest);
  if (build->status != BuildStatus::kOk) {
    Fail(job.measurement,
         build->status == BuildStatus::kInvalidSchedule ? "invalid_schedule"
                                                        : "compile_error",
         build->error);
    return false;
  }
  job.build = *std::move(build);
  return true;
}

absl::StatusOr<Pipeline::ReferencePtr> Pipeline::ModelReference(
    const v1::Lease& lease) {
  const v1::ModelSignature& model = lease.comparison().model();
  auto reference = std::make_shared<Reference>();
  reference->key = absl::StrCat("model/", Sha256Hex(model.SerializeAsString()),
                                "/", lease.options().input_seed());
  reference->build.cores = std::max(model.cores(), 1u);
  std::vector<BufferSpec>& buffers = reference->build.program.buffers;
  for (const auto* tensors : {&model.inputs(), &model.outputs()}) {
    for (const v1::ModelSignature::Tensor& tensor : *tensors) {
      const std::optional<ElementType> type = ParseElementType(tensor.dtype());
      if (!type.has_value() || tensor.elements() == 0 ||
          buffers.size() >= kMaxBuffers) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a tensor of ", tensor.elements(), " ", tensor.dtype()));
      }
      BufferSpec& spec = buffers.emplace_back();
      spec.type = *type;
      spec.elements = tensor.elements();
      spec.read = tensors == &model.inputs();
      spec.written = !spec.read;
      // Indices must be in bounds of whatever they choose from.
      spec.low = 0;
      spec.high = IsFloat(*type) ? 0 : 1;
    }
  }
  return reference;
}

bool Pipeline::FetchArtifacts(Job& job) {
  const v1::Lease& lease = job.lease;
  job.measurement.mutable_compared();
  job.build.cores = job.reference->build.cores;
  job.measurement.set_cores(job.build.cores);
  if (!options_.fetch_artifact) {
    Fail(job.measurement, "run_error", "this worker takes no artifacts");
    return false;
  }
  const absl::Duration limit =
      lease.options().build_timeout_ms() == 0
          ? kBuildTimeout
          : absl::Milliseconds(lease.options().build_timeout_ms());
  const auto get = [&](const v1::ComparedArtifact& artifact) {
    return artifacts_.Get(artifact.sha256(), [&] {
      return options_.fetch_artifact(lease, artifact, limit);
    });
  };
  for (const auto& [artifact, bytes] :
       {std::pair(&lease.comparison().baseline(), &job.baseline),
        std::pair(&lease.comparison().candidate(), &job.candidate)}) {
    absl::StatusOr<ArtifactCache::Bytes> got = get(*artifact);
    if (!got.ok()) {
      Fail(job.measurement, "run_error",
           absl::StrCat("an artifact cannot be fetched: ",
                        std::string(got.status().message())));
      return false;
    }
    *bytes = *std::move(got);
  }
  return true;
}

}  // namespace tilefarm::worker
