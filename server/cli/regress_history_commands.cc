// history, ack.
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/cli/exit_codes.h"
#include "server/cli/regress_history.h"
#include "server/cli/regress_output.h"
#include "server/cli/regress_run.h"
#include "server/regression/suite.h"

namespace tilefarm::cli {
namespace {

constexpr int64_t kDefaultPoints = 50;

absl::Status ShowHistory(const Common& common, const RegressOptions& options) {
  RegressClient client(common.server, Say);
  v1::ReadHistoryRequest request;
  request.set_series(options.series);
  request.set_benchmark(options.benchmark);
  request.set_device_class(options.device_class);
  request.set_branch(options.branch);
  request.set_latest(options.limit > 0 ? options.limit : kDefaultPoints);
  TF_ASSIGN_OR_RETURN(const History history, client.ReadHistory(request));
  regression::SeriesOptions analysis;
  if (!options.threshold.empty()) {
    TF_ASSIGN_OR_RETURN(analysis.threshold,
                        regression::ParseThreshold(options.threshold));
  }
  const auto all = SplitSeries(history);
  std::map<regression::SeriesKey, regression::SeriesAnalysis> analyses;
  for (const auto& [key, series] : all) {
    TF_ASSIGN_OR_RETURN(analyses[key], series.Analyse(analysis));
  }
  std::printf(
      "%s", common.json
                ? absl::StrCat(HistoryJson(all, analyses).dump(), "\n").c_str()
                : HistoryText(all, analyses).c_str());
  return absl::OkStatus();
}

int HistoryCodeOf(const absl::Status& status) {
  if (status.ok()) return kSuccess;
  Say(std::string(status.message()));
  if (absl::IsInvalidArgument(status)) return kBadUsage;
  return absl::IsNotFound(status) ? kNothingFound : regression::kGateNoVerdict;
}

}  // namespace

int RegressHistory(const Common& common, const RegressOptions& options) {
  return HistoryCodeOf(ShowHistory(common, options));
}

int RegressAck(const Common& common, const RegressOptions& given) {
  RegressOptions options = given;
  if (options.branch.empty()) options.branch = kDefaultBranch;
  RegressClient client(common.server, Say);
  v1::AcknowledgeRequest request;
  v1::Acknowledgement& ack = *request.mutable_acknowledgement();
  ack.set_series(options.series);
  ack.set_benchmark(options.benchmark);
  ack.set_device_class(options.device_class);
  ack.set_branch(options.branch);
  ack.set_commit(options.commit);
  ack.set_reason(options.reason);
  ack.set_user(UserName());
  const int code = HistoryCodeOf(client.Acknowledge(request));
  if (code != kSuccess) return code;
  if (common.json) {
    std::printf("%s\n", nlohmann::ordered_json{{"series", options.series},
                                               {"benchmark", options.benchmark},
                                               {"branch", options.branch},
                                               {"commit", options.commit}}
                            .dump()
                            .c_str());
  } else {
    std::printf("from %s on, the time of %s on branch %s is expected\n",
                options.commit.c_str(), options.benchmark.c_str(),
                options.branch.c_str());
  }
  return code;
}

}  // namespace tilefarm::cli
