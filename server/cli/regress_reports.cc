// Files of reports, and notifications.
#include <sys/stat.h>

#include <cstdio>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/driver/files.h"
#include "server/cli/regress_output.h"
#include "server/cli/webhook_sender.h"

namespace tilefarm::cli {

absl::Status WriteReports(const regression::Report& report,
                          const ReportFiles& files) {
  const auto markdown = [](const regression::Report& one) {
    return regression::MarkdownReport(one);
  };
  const auto google_benchmark = [](regression::ReportSide side) {
    return [side](const regression::Report& one) {
      return regression::GoogleBenchmarkReport(one, side);
    };
  };
  const std::pair<const std::string&,
                  std::function<std::string(const regression::Report&)>>
      all[] = {
          {files.markdown, markdown},
          {files.junit, regression::JUnitReport},
          {files.gbench, google_benchmark(regression::ReportSide::kCandidate)},
          {files.gbench_baseline,
           google_benchmark(regression::ReportSide::kBaseline)},
          {files.smaller_is_better, regression::SmallerIsBetterReport},
          {files.csv, regression::CsvReport}};
  for (const auto& [path, write] : all) {
    if (path.empty()) continue;
    const std::string text = write(report);
    if (path == "-") {
      std::fwrite(text.data(), 1, text.size(), stdout);
    } else {
      TF_RETURN_IF_ERROR(driver::WriteFile(path, text));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWebhookSecret(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": others may read the webhook's secret; chmod 600 it"));
  }
  TF_ASSIGN_OR_RETURN(std::string secret, driver::ReadFile(path));
  if (!secret.empty() && secret.back() == '\n') secret.pop_back();
  if (secret.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the webhook's secret is empty"));
  }
  return secret;
}

absl::Status Notify(const regression::Report& report,
                    const WebhookOptions& options) {
  if (options.url.empty() ||
      (report.gate() == regression::Gate::kPass && !options.always)) {
    return absl::OkStatus();
  }
  WebhookDelivery delivery;
  delivery.url = options.url;
  if (!options.secret_file.empty()) {
    TF_ASSIGN_OR_RETURN(delivery.secret,
                        ReadWebhookSecret(options.secret_file));
  }
  delivery.body = regression::WebhookBody(
      report, options.format == "report" ? regression::WebhookFormat::kReport
                                         : regression::WebhookFormat::kSlack);
  return Deliver(delivery);
}

}  // namespace tilefarm::cli
