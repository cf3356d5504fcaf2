#include "server/api/route.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "server/api/handlers.h"

namespace tilefarm::api {
namespace {

constexpr bool kGet = false, kPost = true;

constexpr Route kRoutes[] = {
    {kGet, "/api/v1", GetServer},
    {kGet, "/api/v1/caller", GetCaller},
    {kGet, "/api/v1/events", nullptr},

    {kGet, "/api/v1/jobs", ListJobs},
    {kPost, "/api/v1/jobs", SubmitJob},
    {kGet, "/api/v1/jobs/{job}", GetJob},
    {kGet, "/api/v1/jobs/{job}/program", GetJobProgram},
    {kGet, "/api/v1/jobs/{job}/candidates", GetJobCandidates},
    {kGet, "/api/v1/jobs/{job}/timeline", GetJobTimeline},
    {kGet, "/api/v1/jobs/{job}/events", nullptr},
    {kPost, "/api/v1/jobs/{job}/cancel", CancelJob},

    {kGet, "/api/v1/devices", ListDevices},
    {kGet, "/api/v1/devices/{device}", GetDevice},
    {kPost, "/api/v1/devices/{device}/{action}", ChangeDevice},
    {kGet, "/api/v1/history", ListHistory},

    {kGet, "/api/v1/database", GetDatabase},
    {kGet, "/api/v1/records", ListRecords},
    {kGet, "/api/v1/records/{record}", GetRecord},
    {kGet, "/api/v1/records/{record}/schedule", GetSchedule},
    {kGet, "/api/v1/records/{record}/assembly", GetAssembly},

    {kGet, "/api/v1/workloads", ListWorkloads},
    {kGet, "/api/v1/workloads/{workload}", GetWorkload},
    {kGet, "/api/v1/workloads/{workload}/candidates", GetWorkloadCandidates},
    {kGet, "/api/v1/workloads/{workload}/decisions", GetDecisions},

    {kGet, "/api/v1/benchmarks", ListBenchmarks},
    {kGet, "/api/v1/benchmarks/history", GetBenchmark},
};

bool IsParameter(absl::string_view part) { return absl::StartsWith(part, "{"); }

// Whether the parts of a path fit those of a route.
bool Fits(const std::vector<std::string>& path,
          const std::vector<absl::string_view>& route) {
  if (path.size() != route.size()) return false;
  for (size_t i = 0; i < path.size(); ++i) {
    if (!IsParameter(route[i]) && path[i] != route[i]) return false;
  }
  return true;
}

}  // namespace

std::span<const Route> Routes() { return kRoutes; }

absl::StatusOr<Match> FindRoute(bool post, std::string_view path) {
  std::vector<std::string> parts;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(path.data(), path.size()), '/')) {
    TF_ASSIGN_OR_RETURN(parts.emplace_back(),
                        Unescape({part.data(), part.size()}, false));
  }
  Match match;
  for (const Route& route : kRoutes) {
    const std::vector<absl::string_view> wanted =
        absl::StrSplit(route.path, '/');
    if (!Fits(parts, wanted)) continue;
    if (route.post != post) {
      match.other_method = true;
      continue;
    }
    match.route = &route;
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!IsParameter(wanted[i])) continue;
      match.path[std::string(wanted[i].substr(1, wanted[i].size() - 2))] =
          parts[i];
    }
    return match;
  }
  return match;
}

std::string MethodOf(const Route& route) {
  return absl::StrCat(route.post ? "POST " : "GET ", route.path);
}

}  // namespace tilefarm::api
