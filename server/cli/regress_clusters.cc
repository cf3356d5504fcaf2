#include "server/cli/regress_clusters.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/statistics.h"
#include "base/status_macros.h"
#include "server/cli/commands.h"
#include "server/cli/regress_model.h"
#include "server/regression/paired_ratio.h"

namespace tilefarm::cli {
namespace {

// A cluster takes a second or two; a device may be busy with others' work.
constexpr absl::Duration kSilence = absl::Minutes(5);
// Rounds of asking for clusters that were lost, over all devices.
constexpr int kMostAttempts = 4;
// Clusters of one request (the server's bound is 64).
constexpr int kMostOfRequest = 32;

v1::CompareRequest::Side ToProto(const ComparedPair::Side& side) {
  v1::CompareRequest::Side out;
  out.set_sha256(side.sha256);
  out.set_symbol(side.symbol);
  out.set_spread(side.spread);
  return out;
}

}  // namespace

absl::StatusOr<v1::FindDevicesResponse> FarmClusters::Find() {
  v1::FindDevicesRequest request;
  request.set_target(pair_.target);
  for (const std::string& one : pair_.requirements) {
    request.add_requirements(one);
  }
  request.set_user(UserName());
  return client_.FindDevices(request);
}

absl::StatusOr<std::vector<std::string>> FarmClusters::DeviceClasses() {
  TF_ASSIGN_OR_RETURN(const v1::FindDevicesResponse found, Find());
  std::vector<std::string> classes;
  for (const auto& choice : found.devices()) {
    if (std::find(classes.begin(), classes.end(), choice.device_class()) ==
        classes.end()) {
      classes.push_back(choice.device_class());
    }
  }
  if (!classes.empty()) return classes;
  return absl::FailedPreconditionError(
      absl::StrCat("no device: ", found.why_none()));
}

absl::Status FarmClusters::ChooseDevice(const std::string& device_class) {
  TF_ASSIGN_OR_RETURN(const v1::FindDevicesResponse found, Find());
  for (const bool takes_unsteady : {false, true}) {
    for (const auto& choice : found.devices()) {
      if (choice.device_class() != device_class ||
          (choice.unsteady() && !takes_unsteady)) {
        continue;
      }
      device_ = choice.name();
      device_class_ = device_class;
      return absl::OkStatus();
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "no device of the class ", device_class, " takes comparisons now",
      found.why_none().empty() ? "" : ": ", found.why_none()));
}

absl::StatusOr<bool> FarmClusters::ChooseAnotherDevice() {
  TF_ASSIGN_OR_RETURN(const v1::FindDevicesResponse found, Find());
  for (const auto& choice : found.devices()) {
    if (choice.name() == device_ || choice.device_class() != device_class_) {
      continue;
    }
    device_ = choice.name();
    return true;
  }
  return false;
}

absl::StatusOr<double> FarmClusters::Take(const v1::CompareUpdate& update,
                                          bool* lost) {
  if (update.status() != "ok") {
    *lost = update.failed_side().empty();
    return absl::AbortedError(absl::StrCat(
        update.status(), update.error().empty() ? "" : ": ", update.error()));
  }
  const std::vector<double> baseline(update.baseline_seconds().begin(),
                                     update.baseline_seconds().end());
  const std::vector<double> candidate(update.candidate_seconds().begin(),
                                      update.candidate_seconds().end());
  std::vector<regression::Pair> pairs;
  for (size_t i = 0; i < baseline.size() && i < candidate.size(); ++i) {
    pairs.push_back(
        {.baseline_seconds = baseline[i], .candidate_seconds = candidate[i]});
  }
  TF_ASSIGN_OR_RETURN(const double ratio, regression::ClusterLogRatio(pairs));
  totals_.baseline_seconds.push_back(MedianOf(baseline).median);
  totals_.candidate_seconds.push_back(MedianOf(candidate).median);
  if (update.canary_seconds() > 0) {
    totals_.canary_seconds.push_back(update.canary_seconds());
  }
  totals_.devices.insert(update.device());
  totals_.unsteady |= update.unsteady();
  return ratio;
}

absl::StatusOr<std::vector<double>> FarmClusters::Measure(int count) {
  if (device_.empty()) {
    return absl::FailedPreconditionError("no device was chosen");
  }
  std::vector<double> ratios;
  absl::Status last = absl::OkStatus();
  for (int attempt = 1; static_cast<int>(ratios.size()) < count; ++attempt) {
    if (attempt > kMostAttempts) return last;
    v1::CompareRequest request;
    if (IsSignature(pair_.program)) {
      TF_ASSIGN_OR_RETURN(*request.mutable_model(),
                          ParseSignature(pair_.program));
    } else {
      request.set_program(pair_.program);
    }
    request.set_target(pair_.target);
    *request.mutable_baseline() = ToProto(pair_.baseline);
    *request.mutable_candidate() = ToProto(pair_.candidate);
    request.set_device(device_);
    for (const std::string& one : pair_.requirements) {
      request.add_requirements(one);
    }
    request.set_user(UserName());
    const int wanted =
        std::min(count - static_cast<int>(ratios.size()), kMostOfRequest);
    for (int i = 0; i < wanted; ++i) {
      request.add_candidate_first(
          regression::CandidateFirst(seed_, next_cluster_++));
    }
    absl::Status failed = absl::OkStatus();
    int done = 0;
    const absl::Status called = client_.Compare(
        request, kSilence, [&](const v1::CompareUpdate& update) {
          totals_.device_seconds += update.device_seconds();
          bool lost = false;
          const absl::StatusOr<double> ratio = Take(update, &lost);
          if (ratio.ok()) {
            ratios.push_back(*ratio);
            ++done;
          } else if (lost) {
            last = ratio.status();
          } else {
            failed = ratio.status();
          }
        });
    if (!failed.ok()) return failed;
    // An attempt that brought something is none that failed.
    if (done == wanted) attempt = 0;
    if (called.ok()) continue;
    last = called;
    if (!absl::IsFailedPrecondition(called) &&
        !absl::IsDeadlineExceeded(called)) {
      return called;
    }
    // The device takes no more, or hangs.
    TF_ASSIGN_OR_RETURN(const bool another, ChooseAnotherDevice());
    if (!another) TF_RETURN_IF_ERROR(ChooseDevice(device_class_));
  }
  return ratios;
}

}  // namespace tilefarm::cli
