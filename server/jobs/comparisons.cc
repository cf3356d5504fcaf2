#include "server/jobs/comparisons.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "compiler/ir/parser.h"
#include "compiler/lower/check_program.h"
#include "server/farm/random_id.h"
#include "server/farm/requirement.h"
#include "server/jobs/job.h"
#include "server/jobs/measure_options.h"
#include "server/jobs/roofline.h"

namespace tilefarm::jobs {
namespace {

constexpr size_t kMostClusters = 64;
// Bounds of what a client may ask for.
constexpr absl::Duration kLongestCluster = absl::Seconds(10);
constexpr int kMostRounds = 128;
// Winograd's largest tile (schedule::WinogradSpread).
constexpr double kMostSpread = 1;
// A device that fetches an artifact slower than this is given up.
constexpr int64_t kSlowestBytesPerSecond = 1 << 20;
// Runs of both artifacts that are not samples: first runs, warm-up, and an
// untimed run before each sample.
constexpr double kRunsBesideSamples = 4;

// Separates the ticket from the cluster's index in a candidate's id.
std::string CandidateOf(const std::string& ticket, size_t cluster) {
  return absl::StrCat(ticket, "-", cluster);
}

absl::Status CheckSizes(const CompareSpec& spec) {
  if (spec.candidate_first.empty() ||
      spec.candidate_first.size() > kMostClusters) {
    return absl::InvalidArgumentError(
        absl::StrCat("a comparison has 1 to ", kMostClusters, " clusters"));
  }
  if (spec.sample < absl::ZeroDuration() || spec.sample > kLongestCluster ||
      spec.cluster < absl::ZeroDuration() || spec.cluster > kLongestCluster) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a cluster lasts ", absl::FormatDuration(kLongestCluster), " at most"));
  }
  if (spec.fewest_rounds < 0 || spec.fewest_rounds > kMostRounds ||
      spec.most_rounds < 0 || spec.most_rounds > kMostRounds) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cluster has ", kMostRounds, " rounds at most"));
  }
  return absl::OkStatus();
}

constexpr const char* kOfPrograms[] = {""};
// docs/formats.md, "Model artifacts".
constexpr const char* kOfModels[] = {"_inputs",  "_outputs", "_input",
                                     "_output",  "_create",  "_run",
                                     "_destroy", "_error"};
constexpr int64_t kMostModelElements = int64_t{1} << 28;  // of one tensor
constexpr absl::Duration kModelTime = absl::Minutes(3);

absl::Status CheckModel(const farm::ModelSignature& model) {
  if (model.inputs.empty() || model.outputs.empty()) {
    return absl::InvalidArgumentError("a model has inputs and outputs");
  }
  for (const auto* tensors : {&model.inputs, &model.outputs}) {
    for (const farm::ModelSignature::Tensor& tensor : *tensors) {
      if (!ir::DataType::Parse(tensor.dtype).has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", tensor.dtype, "' is no type of a tensor"));
      }
      if (tensor.elements < 1 || tensor.elements > kMostModelElements) {
        return absl::InvalidArgumentError(absl::StrCat(
            "a tensor of a model has 1 to ", kMostModelElements, " elements"));
      }
    }
  }
  return absl::OkStatus();
}

// Fills in what is measured, and its limits.
absl::Status DescribeProgram(const std::string& text,
                             const target::Target& target,
                             farm::WorkItem& item) {
  TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr program, ir::ParseFunction(text));
  TF_RETURN_IF_ERROR(lower::CheckProgram(ir::IRModule{{program}}));
  const TaskSpec task = MakeTask(*program);
  item.program = task.program;
  item.workload_hash = task.workload_hash;
  item.options = MeasureOptionsFor(*program);
  item.least_seconds = LeastSeconds(*program, target);
  return absl::OkStatus();
}

}  // namespace

Comparisons::Comparisons(database::Store& store, farm::Farm& farm,
                         ComparisonsOptions options)
    : store_(store), farm_(farm), options_(std::move(options)) {}

absl::Status Comparisons::CheckAllowed() const {
  if (options_.allowed) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this server takes no artifacts: they are machine code, which devices "
      "run in a sandbox. Start tune-server with --allow-artifacts to take "
      "them");
}

absl::StatusOr<farm::QueueTerms> Comparisons::Terms(
    const target::Target& target, const std::string& user,
    const std::vector<std::string>& requirements) const {
  std::vector<std::string> all = requirements;
  all.push_back("artifacts=true");
  if (options_.isolation != "none") {
    all.push_back(absl::StrCat("isolation>=", options_.isolation));
  }
  farm::QueueTerms terms{.user = user};
  TF_ASSIGN_OR_RETURN(terms.requirements, farm::ParseRequirements(all, target));
  return terms;
}

absl::StatusOr<farm::ComparedArtifact> Comparisons::Find(
    const CompareSpec::Side& side, const target::Target& target,
    const char* which, std::span<const char* const> suffixes) const {
  TF_ASSIGN_OR_RETURN(const database::ArtifactRow row,
                      store_.regression_tables().FindArtifact(side.sha256));
  const auto say = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("the ", which, " ", what));
  };
  TF_ASSIGN_OR_RETURN(const target::Target made_for,
                      target::ParseKey(row.target));
  if (made_for.kind != target.kind || made_for.triple != target.triple) {
    return say(absl::StrCat("was compiled for ", row.target, ", not for ",
                            target.Key()));
  }
  for (const char* suffix : suffixes) {
    const std::string symbol = side.symbol + suffix;
    if (std::find(row.symbols.begin(), row.symbols.end(), symbol) ==
        row.symbols.end()) {
      return say(absl::StrCat("was not stored with a function ", symbol));
    }
  }
  if (!(side.spread >= 0) || side.spread > kMostSpread) {
    return say(absl::StrCat("has a spread of ", side.spread,
                            "; it must be 0 to ", kMostSpread));
  }
  return farm::ComparedArtifact{.sha256 = row.sha256,
                                .bytes = row.bytes,
                                .symbol = side.symbol,
                                .spread = side.spread};
}

absl::StatusOr<std::string> Comparisons::Start(const CompareSpec& spec,
                                               Done done) {
  TF_RETURN_IF_ERROR(CheckAllowed());
  TF_RETURN_IF_ERROR(CheckSizes(spec));
  TF_ASSIGN_OR_RETURN(const target::Target target,
                      target::ParseKey(spec.target));
  farm::WorkItem item;
  if (spec.program.empty() != spec.model.has_value()) {
    return absl::InvalidArgumentError(
        "a comparison needs either a program or a model");
  }
  if (spec.model.has_value()) {
    TF_RETURN_IF_ERROR(CheckModel(*spec.model));
    item.options.run_timeout = kModelTime;
  } else {
    TF_RETURN_IF_ERROR(DescribeProgram(spec.program, target, item));
  }
  const std::span<const char* const> suffixes =
      spec.model.has_value() ? std::span<const char* const>(kOfModels)
                             : std::span<const char* const>(kOfPrograms);
  farm::Comparison comparison;
  comparison.model = spec.model;
  TF_ASSIGN_OR_RETURN(comparison.baseline,
                      Find(spec.baseline, target, "baseline", suffixes));
  TF_ASSIGN_OR_RETURN(comparison.candidate,
                      Find(spec.candidate, target, "candidate", suffixes));
  if (spec.sample > absl::ZeroDuration()) comparison.sample = spec.sample;
  if (spec.cluster > absl::ZeroDuration()) comparison.cluster = spec.cluster;
  if (spec.fewest_rounds > 0) comparison.fewest_rounds = spec.fewest_rounds;
  if (spec.most_rounds > 0) comparison.most_rounds = spec.most_rounds;
  TF_ASSIGN_OR_RETURN(const farm::QueueTerms terms,
                      Terms(target, spec.user, spec.requirements));
  const std::vector<farm::Farm::Choice> choices = farm_.Choices(target, terms);
  if (choices.empty()) {
    return absl::FailedPreconditionError(farm_.WhyNoDevice(target, terms));
  }
  if (std::none_of(choices.begin(), choices.end(), [&](const auto& choice) {
        return choice.name == spec.device;
      })) {
    return absl::FailedPreconditionError(
        spec.device.empty() ? "a comparison names its device"
                            : absl::StrCat("device ", spec.device,
                                           " takes no such comparison now"));
  }
  TF_RETURN_IF_ERROR(store_.regression_tables().NoteCompared(
      comparison.baseline.sha256, comparison.candidate.sha256));

  const std::string ticket = absl::StrCat("compare-", farm::RandomId(128));
  item.queue = ticket;
  item.purpose = farm::Purpose::kCompare;
  item.target = target;
  item.device = spec.device;
  item.options.flush_cache = spec.flush_cache;
  item.options.run_timeout =
      item.options.run_timeout * kRunsBesideSamples + 2 * comparison.cluster;
  item.options.build_timeout +=
      absl::Seconds((comparison.baseline.bytes + comparison.candidate.bytes) /
                    kSlowestBytesPerSecond);
  // Bytes of both artifacts, in files and mapped.
  item.options.run_memory_bytes +=
      2 * (comparison.baseline.bytes + comparison.candidate.bytes);
  {
    MutexLock lock(mutex_);
    running_[ticket] = std::move(done);
  }
  farm_.OpenQueue(ticket, terms);
  farm_.SetUrgent(ticket);
  for (size_t i = 0; i < spec.candidate_first.size(); ++i) {
    item.candidate_id = CandidateOf(ticket, i);
    comparison.candidate_first = spec.candidate_first[i];
    item.comparison = comparison;
    const absl::Status added = farm_.Add(item);
    if (added.ok()) continue;
    Abandon(ticket);
    return added;
  }
  return ticket;
}

void Comparisons::Abandon(const std::string& ticket) {
  {
    MutexLock lock(mutex_);
    running_.erase(ticket);
  }
  farm_.RemoveQueue(ticket);
}

void Comparisons::OnCompleted(const farm::Completion& completion) {
  const std::string& ticket = completion.item.queue;
  const std::string& id = completion.item.candidate_id;
  ClusterResult result;
  result.cluster = std::atoi(id.c_str() + ticket.size() + 1);
  result.device =
      completion.device_id.substr(0, completion.device_id.rfind('@'));
  result.unsteady = completion.unsteady;
  result.measurement = completion.measurement;
  // Called under the lock, so that it is not called after Abandon.
  MutexLock lock(mutex_);
  const auto found = running_.find(ticket);
  if (found != running_.end()) found->second(std::move(result));
}

}  // namespace tilefarm::jobs
