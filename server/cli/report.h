// A job as one file that a browser shows by itself: the scripts and styles of
// the dashboard, and the data.
#ifndef TILEFARM_SERVER_CLI_REPORT_H_
#define TILEFARM_SERVER_CLI_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace tilefarm::cli {

// `data`: {job, candidates, workloads, server} as the API has them (server/web/
// report.js). The file asks no other host for anything, and its policy permits
// the scripts in it alone.
std::string ReportPage(const nlohmann::ordered_json& data);

// A script of modules: the named ones in this order, without their imports and
// exports. Internal: an asset is missing. For tests.
absl::StatusOr<std::string> Bundle();

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REPORT_H_
