#include "server/regression/google_benchmark.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/json.h"
#include "base/statistics.h"
#include "base/status_macros.h"

namespace tilefarm::regression {
namespace {

using Json = nlohmann::ordered_json;

// More than any repetition runs; sums of them cannot overflow.
constexpr int64_t kMostIterations = int64_t{1} << 40;

absl::string_view View(const std::string& text) { return text; }

std::string StringOf(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

bool IsTrue(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

std::optional<double> ScaleOf(const std::string& unit) {
  if (unit == "ns" || unit.empty()) return 1e-9;
  if (unit == "us") return 1e-6;
  if (unit == "ms") return 1e-3;
  if (unit == "s") return 1.0;
  return std::nullopt;
}

// "BM_x/8/repeats:3" -> "BM_x/8"
std::string WithoutRepeats(const std::string& name) {
  const size_t at = name.find("/repeats:");
  if (at == std::string::npos || at == 0) return name;
  const size_t end = name.find('/', at + 1);
  return name.substr(0, at) +
         (end == std::string::npos ? "" : name.substr(end));
}

// Library versions before 1.5 tell aggregates by the name alone.
std::string AggregateOf(const Json& entry, const std::string& name) {
  if (entry.contains("run_type")) {
    return StringOf(entry, "run_type") == "aggregate"
               ? StringOf(entry, "aggregate_name")
               : "";
  }
  for (const char* suffix : {"mean", "median", "stddev", "cv", "BigO", "RMS"}) {
    if (absl::EndsWith(View(name), absl::StrCat("_", suffix))) return suffix;
  }
  return "";
}

absl::Status Error(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("Google Benchmark JSON: ",
                   name.empty() ? "" : absl::StrCat("'", name, "': "), what));
}

class Parser {
 public:
  absl::StatusOr<BenchmarkRun> Parse(const Json& json) {
    if (const auto context = json.find("context"); context != json.end()) {
      run_.date = StringOf(*context, "date");
      run_.host_name = StringOf(*context, "host_name");
      run_.build_type = StringOf(*context, "library_build_type");
      run_.cpu_scaling = IsTrue(*context, "cpu_scaling_enabled");
    }
    const auto benchmarks = json.find("benchmarks");
    if (benchmarks == json.end() || !benchmarks->is_array()) {
      return Error("", "there is no list \"benchmarks\"");
    }
    for (const Json& entry : *benchmarks) {
      TF_RETURN_IF_ERROR(ParseEntry(entry));
    }
    for (size_t i = 0; i < run_.benchmarks.size(); ++i) {
      BenchmarkSamples& samples = run_.benchmarks[i];
      if (!samples.seconds.empty() || !samples.error.empty()) continue;
      const Aggregates& aggregates = aggregates_[i];
      const std::optional<double>& only =
          aggregates.median.has_value() ? aggregates.median : aggregates.mean;
      // Only a standard deviation, say: there is nothing to compare.
      if (!only.has_value()) return Error(samples.name, "it has no time");
      samples.seconds.push_back(*only);
      samples.aggregate_only = true;
    }
    return std::move(run_);
  }

 private:
  struct Aggregates {
    std::optional<double> mean, median;
  };

  absl::Status ParseEntry(const Json& entry) {
    if (!entry.is_object()) return Error("", "a benchmark is an object");
    const std::string name = StringOf(entry, "name");
    if (name.empty()) return Error("", "a benchmark has no name");
    const std::string aggregate = AggregateOf(entry, name);
    if (aggregate == "BigO" || aggregate == "RMS") return absl::OkStatus();
    std::string run_name = StringOf(entry, "run_name");
    if (run_name.empty()) {
      const std::string suffix = absl::StrCat("_", aggregate);
      run_name = std::string(aggregate.empty()
                                 ? View(name)
                                 : absl::StripSuffix(View(name), suffix));
      if (run_name.empty()) run_name = name;
    }
    const size_t at = IndexOf(WithoutRepeats(run_name));
    BenchmarkSamples& samples = run_.benchmarks[at];
    if (IsTrue(entry, "error_occurred")) {
      samples.error = StringOf(entry, "error_message");
      if (samples.error.empty()) samples.error = "it reported an error";
      samples.seconds.clear();
      return absl::OkStatus();
    }
    if (IsTrue(entry, "skipped")) {
      samples.error =
          absl::StrCat("skipped: ", StringOf(entry, "skip_message"));
      samples.seconds.clear();
      return absl::OkStatus();
    }
    if (!samples.error.empty()) return absl::OkStatus();
    if (!aggregate.empty() && aggregate != "mean" && aggregate != "median") {
      return absl::OkStatus();
    }
    TF_ASSIGN_OR_RETURN(const double seconds, SecondsOf(entry, name));
    if (aggregate == "mean") {
      aggregates_[at].mean = seconds;
    } else if (aggregate == "median") {
      aggregates_[at].median = seconds;
    } else {
      samples.seconds.push_back(seconds);
      const auto iterations = entry.find("iterations");
      if (iterations != entry.end() && iterations->is_number_integer()) {
        samples.iterations +=
            std::clamp<int64_t>(iterations->get<int64_t>(), 0, kMostIterations);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> SecondsOf(const Json& entry,
                                   const std::string& name) const {
    const std::string unit = StringOf(entry, "time_unit");
    const std::optional<double> scale = ScaleOf(unit);
    if (!scale.has_value()) {
      return Error(name, absl::StrCat("the time unit '", unit,
                                      "' is none of ns, us, ms and s"));
    }
    const auto time = entry.find("real_time");
    if (time == entry.end() || !time->is_number()) {
      return Error(name, "it has no number \"real_time\"");
    }
    const double seconds = time->get<double>() * *scale;
    if (!std::isfinite(seconds) || seconds < 0) {
      return Error(name, "its time is negative or not finite");
    }
    return seconds;
  }

  size_t IndexOf(const std::string& name) {
    const auto [at, inserted] = index_.emplace(name, run_.benchmarks.size());
    if (inserted) {
      run_.benchmarks.push_back({.name = name});
      aggregates_.emplace_back();
    }
    return at->second;
  }

  BenchmarkRun run_;
  std::vector<Aggregates> aggregates_;  // as run_.benchmarks
  std::map<std::string, size_t> index_;
};

// From the first line that begins with a brace.
std::string_view WithoutPreamble(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && text[at] != '{') {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return "";
    ++at;
  }
  return text.substr(std::min(at, text.size()));
}

Json EntryOf(const BenchmarkSamples& samples, const char* run_type) {
  Json entry;
  entry["name"] = samples.name;
  entry["run_name"] = samples.name;
  entry["run_type"] = run_type;
  entry["repetitions"] = std::max<size_t>(samples.seconds.size(), 1);
  return entry;
}

void AddTime(double seconds, Json* entry) {
  (*entry)["real_time"] = seconds * 1e9;
  (*entry)["cpu_time"] = seconds * 1e9;
  (*entry)["time_unit"] = "ns";
}

void AddAggregates(const BenchmarkSamples& samples, Json* entries) {
  const auto n = static_cast<double>(samples.seconds.size());
  double mean = 0;
  for (const double seconds : samples.seconds) mean += seconds / n;
  double squares = 0;
  for (const double seconds : samples.seconds) {
    squares += (seconds - mean) * (seconds - mean);
  }
  const double deviation = std::sqrt(squares / (n - 1));
  const auto add = [&](const char* aggregate, double value, bool percentage) {
    Json entry = EntryOf(samples, "aggregate");
    entry["name"] = absl::StrCat(samples.name, "_", aggregate);
    entry["aggregate_name"] = aggregate;
    entry["aggregate_unit"] = percentage ? "percentage" : "time";
    entry["iterations"] = samples.seconds.size();
    if (percentage) {
      entry["real_time"] = value;
      entry["cpu_time"] = value;
      entry["time_unit"] = "ns";
    } else {
      AddTime(value, &entry);
    }
    entries->push_back(std::move(entry));
  };
  add("mean", mean, false);
  add("median", MedianOf(samples.seconds).median, false);
  add("stddev", deviation, false);
  add("cv", mean > 0 ? deviation / mean : 0, true);
}

}  // namespace

absl::StatusOr<BenchmarkRun> ParseGoogleBenchmark(std::string_view text) {
  const Json json = ParseJson<Json>(WithoutPreamble(text));
  if (json.is_discarded() || !json.is_object()) {
    return Error("",
                 "this is no JSON object; does the program run with "
                 "--benchmark_format=json?");
  }
  return Parser().Parse(json);
}

std::string WriteGoogleBenchmark(const BenchmarkRun& run) {
  Json context;
  context["date"] = run.date;
  context["host_name"] = run.host_name;
  context["cpu_scaling_enabled"] = run.cpu_scaling;
  context["library_build_type"] = run.build_type;
  Json entries = Json::array();
  for (const BenchmarkSamples& samples : run.benchmarks) {
    if (!samples.error.empty()) {
      Json entry = EntryOf(samples, "iteration");
      entry["error_occurred"] = true;
      entry["error_message"] = samples.error;
      entries.push_back(std::move(entry));
      continue;
    }
    const auto count = static_cast<int64_t>(samples.seconds.size());
    for (int64_t i = 0; i < count; ++i) {
      Json entry = EntryOf(samples, "iteration");
      entry["repetition_index"] = i;
      entry["threads"] = 1;
      entry["iterations"] = std::max<int64_t>(samples.iterations / count, 1);
      AddTime(samples.seconds[static_cast<size_t>(i)], &entry);
      entries.push_back(std::move(entry));
    }
    if (count > 1) AddAggregates(samples, &entries);
  }
  Json json;
  json["context"] = std::move(context);
  json["benchmarks"] = std::move(entries);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tilefarm::regression
