#include "server/http/metrics_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tilefarm::http {
namespace {

absl::string_view View(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}

// Without a fraction if it is an integer, otherwise with all significant
// digits.
std::string Number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    return absl::StrFormat("%.0f", value);
  }
  return absl::StrFormat("%.12g", value);
}

}  // namespace

void MetricsText::Add(std::string_view name, Kind kind, std::string_view help) {
  name_ = std::string(name);
  absl::StrAppend(
      &text_, "# HELP ", name_, " ",
      absl::StrReplaceAll(View(help), {{"\\", "\\\\"}, {"\n", "\\n"}}),
      "\n# TYPE ", name_, " ",
      kind == Kind::kCounter ? "counter"
      : kind == Kind::kGauge ? "gauge"
                             : "histogram",
      "\n");
}

void MetricsText::Add(std::string_view name, Kind kind, std::string_view help,
                      double value) {
  Add(name, kind, help);
  Sample({}, value);
}

void MetricsText::Line(std::string_view suffix, Labels labels, double value) {
  absl::StrAppend(&text_, name_, View(suffix));
  char separator = '{';
  for (const auto& [label, text] : labels) {
    absl::StrAppend(
        &text_, std::string(1, separator), View(label), "=\"",
        absl::StrReplaceAll(View(text),
                            {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
        "\"");
    separator = ',';
  }
  absl::StrAppend(&text_, separator == ',' ? "} " : " ", Number(value), "\n");
}

void MetricsText::Sample(Labels labels, double value) {
  Line("", labels, value);
}

void MetricsText::Sample(const Histogram& histogram) {
  int64_t below = 0;
  for (size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    below += histogram.counts()[i];
    Line("_bucket", {{"le", Number(Histogram::kBounds[i])}},
         static_cast<double>(below));
  }
  const double count = static_cast<double>(histogram.count());
  Line("_bucket", {{"le", "+Inf"}}, count);
  Line("_sum", {}, histogram.sum());
  Line("_count", {}, count);
}

}  // namespace tilefarm::http
