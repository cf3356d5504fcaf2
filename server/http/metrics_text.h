// Metrics in Prometheus' text format (version 0.0.4).
//
//   MetricsText text;
//   text.Add("tilefarm_jobs", Kind::kGauge, "Jobs by state.");
//   text.Sample({{"state", "running"}}, 2);
//   text.text()
#ifndef TILEFARM_SERVER_HTTP_METRICS_TEXT_H_
#define TILEFARM_SERVER_HTTP_METRICS_TEXT_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/histogram.h"

namespace tilefarm::http {

inline constexpr char kMetricsContentType[] =
    "text/plain; version=0.0.4; charset=utf-8";

class MetricsText {
 public:
  enum class Kind { kCounter, kGauge, kHistogram };
  using Labels =
      std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Begins a metric; the following samples belong to it.
  void Add(std::string_view name, Kind kind, std::string_view help);
  void Sample(Labels labels, double value);
  // The samples of a kHistogram: buckets, sum and count.
  void Sample(const Histogram& histogram);
  // A metric with one sample.
  void Add(std::string_view name, Kind kind, std::string_view help,
           double value);

  const std::string& text() const { return text_; }

 private:
  void Line(std::string_view suffix, Labels labels, double value);

  std::string name_, text_;
};

}  // namespace tilefarm::http

#endif  // TILEFARM_SERVER_HTTP_METRICS_TEXT_H_
