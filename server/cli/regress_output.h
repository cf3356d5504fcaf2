// What `tune regress` says about a report: on standard output, in files, and to
// a webhook.
#ifndef TILEFARM_SERVER_CLI_REGRESS_OUTPUT_H_
#define TILEFARM_SERVER_CLI_REGRESS_OUTPUT_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "server/cli/regress_history.h"
#include "server/cli/regress_options.h"
#include "server/regression/report.h"

namespace tilefarm::cli {

// A table of the benchmarks, worst first, and the gate in a line.
std::string ReportText(const regression::Report& report);

// [{series, benchmark, device_class, branch, commit, at, device, seconds,
// low_seconds, high_seconds, ratio, ratio_low, ratio_high, clusters, verdict,
// baseline_commit, canary_seconds, unsteady, artifact}], docs/formats.md.
nlohmann::ordered_json HistoryPointJson(const v1::HistoryPoint& point);
// [{benchmark, device_class, branch, points: [...], changes: [...],
// acknowledgements: [...], baseline_commit, baseline_seconds, current_ratio}]
nlohmann::ordered_json HistoryJson(
    const std::map<regression::SeriesKey, SeriesHistory>& all,
    const std::map<regression::SeriesKey, regression::SeriesAnalysis>&
        analyses);
std::string HistoryText(
    const std::map<regression::SeriesKey, SeriesHistory>& all,
    const std::map<regression::SeriesKey, regression::SeriesAnalysis>&
        analyses);

// Writes the files that were asked for. Errors of driver::WriteFile.
absl::Status WriteReports(const regression::Report& report,
                          const ReportFiles& files);

// The secret of a webhook: the file's content without its last newline.
// InvalidArgument: it is empty, or others may read the file.
absl::StatusOr<std::string> ReadWebhookSecret(const std::string& path);

// Tells the webhook, unless the gate passes and it is not to be told then.
// Unavailable: nobody took the notification, after all attempts.
absl::Status Notify(const regression::Report& report,
                    const WebhookOptions& options);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_OUTPUT_H_
