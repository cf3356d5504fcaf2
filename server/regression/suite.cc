#include "server/regression/suite.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/near_name.h"
#include "base/status_macros.h"
#include "base/toml.h"

namespace tilefarm::regression {
namespace {

constexpr size_t kMostBenchmarks = 10'000;
constexpr size_t kMostNameBytes = 200;
constexpr double kLeastThreshold = 0.001;
constexpr double kMostThreshold = 1;
constexpr absl::Duration kMostBudget = absl::Hours(1);

const std::vector<std::string>& SuiteKeys() {
  static const auto* const keys = new std::vector<std::string>{
      "name", "threshold", "budget", "target", "require", "benchmark"};
  return *keys;
}

const std::vector<std::string>& BenchmarkKeys() {
  static const auto* const keys = new std::vector<std::string>{
      "name",       "program", "function", "trace",   "schedule",  "model",
      "dimensions", "command", "target",   "require", "threshold", "budget"};
  return *keys;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {
    suite_.folder = std::filesystem::path(file).parent_path().string();
  }

  absl::StatusOr<Suite> Read(const toml::table& table) {
    TF_RETURN_IF_ERROR(CheckKeys(table, SuiteKeys(), "a suite"));
    if (const toml::node* node = table.get("name")) {
      TF_ASSIGN_OR_RETURN(suite_.name, Text(*node, "name"));
    } else {
      suite_.name = std::filesystem::path(file_).stem().string();
    }
    defaults_.target = "host";
    TF_RETURN_IF_ERROR(ReadLimits(table, &defaults_));
    const toml::node* const list = table.get("benchmark");
    if (list == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          file_, ": the suite has no benchmarks: it needs [[benchmark]]"));
    }
    const toml::array* const benchmarks = list->as_array();
    if (benchmarks == nullptr) {
      return Error(*list, "benchmark is a list of tables: [[benchmark]]");
    }
    if (benchmarks->empty()) return Error(*list, "the suite has no benchmarks");
    if (benchmarks->size() > kMostBenchmarks) {
      return Error(*list, absl::StrCat("the suite has ", benchmarks->size(),
                                       " benchmarks, and the limit is ",
                                       kMostBenchmarks));
    }
    for (const toml::node& node : *benchmarks) {
      const toml::table* const benchmark = node.as_table();
      if (benchmark == nullptr) {
        return Error(node, "a benchmark is a table: [[benchmark]]");
      }
      TF_RETURN_IF_ERROR(ReadBenchmark(*benchmark));
    }
    return std::move(suite_);
  }

 private:
  absl::Status Error(const toml::source_region& at,
                     const std::string& what) const {
    return TomlError(file_, at, what);
  }

  absl::Status Error(const toml::node& node, const std::string& what) const {
    return Error(node.source(), what);
  }

  absl::Status CheckKeys(const toml::table& table,
                         const std::vector<std::string>& known,
                         const std::string& what) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      return Error(key.source(), absl::StrCat(what, " has no key '", name, "'",
                                              SuggestName(name, known)));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Text(const toml::node& node,
                                   const std::string& key) const {
    const auto text = node.value_exact<std::string>();
    if (!text.has_value()) {
      return Error(node, absl::StrCat(key, " is a string"));
    }
    if (text->empty()) return Error(node, absl::StrCat(key, " is empty"));
    if (std::any_of(text->begin(), text->end(),
                    [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
      return Error(node, absl::StrCat(key, " contains a control character"));
    }
    return *text;
  }

  absl::StatusOr<std::vector<std::string>> Texts(const toml::node& node,
                                                 const std::string& key) const {
    const toml::array* const array = node.as_array();
    if (array == nullptr) {
      return Error(node, absl::StrCat(key, " is a list of strings"));
    }
    std::vector<std::string> texts;
    for (const toml::node& element : *array) {
      const auto text = element.value_exact<std::string>();
      if (!text.has_value()) {
        return Error(element, absl::StrCat(key, " is a list of strings"));
      }
      if (text->find('\0') != std::string::npos) {
        return Error(element, absl::StrCat(key, " contains a NUL character"));
      }
      texts.push_back(*text);
    }
    return texts;
  }

  // The keys that a suite states for all of its benchmarks, or a benchmark for
  // itself.
  absl::Status ReadLimits(const toml::table& table,
                          SuiteBenchmark* benchmark) const {
    if (const toml::node* node = table.get("threshold")) {
      TF_ASSIGN_OR_RETURN(benchmark->threshold, Threshold(*node));
    }
    if (const toml::node* node = table.get("budget")) {
      TF_ASSIGN_OR_RETURN(benchmark->budget, Budget(*node));
    }
    if (const toml::node* node = table.get("target")) {
      TF_ASSIGN_OR_RETURN(benchmark->target, Text(*node, "target"));
    }
    if (const toml::node* node = table.get("require")) {
      TF_ASSIGN_OR_RETURN(benchmark->require, Texts(*node, "require"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<double> Threshold(const toml::node& node) const {
    std::string text;
    if (const auto number = node.value_exact<double>()) {
      text = absl::StrCat(*number);
    } else if (const auto quoted = node.value_exact<std::string>()) {
      text = *quoted;
    } else {
      return Error(node, "threshold is \"3%\" or 0.03");
    }
    absl::StatusOr<double> threshold = ParseThreshold(text);
    if (!threshold.ok()) {
      return Error(node, std::string(threshold.status().message()));
    }
    return *threshold;
  }

  absl::StatusOr<absl::Duration> Budget(const toml::node& node) const {
    TF_ASSIGN_OR_RETURN(const std::string text, Text(node, "budget"));
    absl::Duration budget;
    if (!absl::ParseDuration(text, &budget)) {
      return Error(node, absl::StrCat("budget is a duration like \"10s\" or "
                                      "\"1m30s\", not '",
                                      text, "'"));
    }
    if (budget <= absl::ZeroDuration() || budget > kMostBudget) {
      return Error(node, "budget is above 0 and at most 1h");
    }
    return budget;
  }

  absl::Status ReadBenchmark(const toml::table& table) {
    TF_RETURN_IF_ERROR(CheckKeys(table, BenchmarkKeys(), "a benchmark"));
    SuiteBenchmark benchmark = defaults_;
    benchmark.line = static_cast<int>(table.source().begin.line);
    const toml::node* const name = table.get("name");
    if (name == nullptr) return Error(table, "the benchmark has no name");
    TF_ASSIGN_OR_RETURN(benchmark.name, Text(*name, "name"));
    if (benchmark.name.size() > kMostNameBytes) {
      return Error(
          *name, absl::StrCat("a name has at most ", kMostNameBytes, " bytes"));
    }
    if (!names_.insert(benchmark.name).second) {
      return Error(*name, absl::StrCat("there are two benchmarks '",
                                       benchmark.name, "'"));
    }
    TF_RETURN_IF_ERROR(ReadKind(table, &benchmark));
    TF_RETURN_IF_ERROR(ReadLimits(table, &benchmark));
    suite_.benchmarks.push_back(std::move(benchmark));
    return absl::OkStatus();
  }

  absl::Status ReadKind(const toml::table& table, SuiteBenchmark* benchmark) {
    std::vector<std::string> kinds;
    for (const char* kind : {"program", "model", "command"}) {
      if (table.contains(kind)) kinds.push_back(kind);
    }
    if (kinds.size() != 1) {
      return Error(
          table,
          absl::StrCat("benchmark '", benchmark->name, "' has ",
                       kinds.empty() ? "none" : absl::StrJoin(kinds, " and "),
                       ", and needs exactly one of program, model and "
                       "command"));
    }
    if (kinds[0] == "program") return ReadProgram(table, benchmark);
    for (const char* key : {"trace", "schedule", "function"}) {
      TF_RETURN_IF_ERROR(Only(table, key, "program"));
    }
    if (kinds[0] == "model") {
      benchmark->kind = SuiteBenchmark::Kind::kModel;
      TF_ASSIGN_OR_RETURN(benchmark->model, Path(table, "model"));
      return ReadDimensions(table, benchmark);
    }
    for (const char* key : {"dimensions", "target"}) {
      TF_RETURN_IF_ERROR(Only(table, key, "program or model"));
    }
    benchmark->kind = SuiteBenchmark::Kind::kCommand;
    benchmark->target.clear();
    const toml::node& command = *table.get("command");
    TF_ASSIGN_OR_RETURN(benchmark->command, Texts(command, "command"));
    if (benchmark->command.empty() || benchmark->command[0].empty()) {
      return Error(command, "command is empty");
    }
    return absl::OkStatus();
  }

  absl::Status ReadProgram(const toml::table& table,
                           SuiteBenchmark* benchmark) {
    TF_RETURN_IF_ERROR(Only(table, "dimensions", "model"));
    TF_ASSIGN_OR_RETURN(benchmark->program, Path(table, "program"));
    if (const toml::node* node = table.get("function")) {
      TF_ASSIGN_OR_RETURN(benchmark->function, Text(*node, "function"));
    }
    benchmark->kind = SuiteBenchmark::Kind::kBest;
    if (const toml::node* node = table.get("schedule")) {
      TF_ASSIGN_OR_RETURN(const std::string schedule, Text(*node, "schedule"));
      if (schedule != "best") {
        return Error(*node,
                     absl::StrCat("schedule is \"best\", not '", schedule,
                                  "'; a pinned schedule is "
                                  "trace = \"FILE\""));
      }
      if (table.contains("trace")) {
        return Error(*node, "a benchmark has a schedule or a trace, not both");
      }
    } else if (!table.contains("trace")) {
      return Error(table, absl::StrCat("benchmark '", benchmark->name,
                                       "' needs trace = \"FILE\" for a pinned "
                                       "schedule, or schedule = \"best\""));
    }
    if (table.contains("trace")) {
      benchmark->kind = SuiteBenchmark::Kind::kPinned;
      TF_ASSIGN_OR_RETURN(benchmark->trace, Path(table, "trace"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadDimensions(const toml::table& table,
                              SuiteBenchmark* benchmark) const {
    const toml::node* const node = table.get("dimensions");
    if (node == nullptr) return absl::OkStatus();
    const toml::table* const dimensions = node->as_table();
    if (dimensions == nullptr) {
      return Error(*node, "dimensions is a table: { batch = 8 }");
    }
    for (const auto& [key, value] : *dimensions) {
      const auto extent = value.value_exact<int64_t>();
      if (!extent.has_value() || *extent < 1) {
        return Error(value, absl::StrCat("dimension ", std::string(key.str()),
                                         " is a positive integer"));
      }
      benchmark->dimensions[std::string(key.str())] = *extent;
    }
    return absl::OkStatus();
  }

  // A key that other kinds of benchmarks do not have.
  absl::Status Only(const toml::table& table, const char* key,
                    const char* kinds) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return absl::OkStatus();
    return Error(*node, absl::StrCat(key, " is for a benchmark with ", kinds));
  }

  absl::StatusOr<std::string> Path(const toml::table& table,
                                   const char* key) const {
    TF_ASSIGN_OR_RETURN(const std::string text, Text(*table.get(key), key));
    return (std::filesystem::path(suite_.folder) / text)
        .lexically_normal()
        .string();
  }

  const std::string& file_;
  Suite suite_;
  SuiteBenchmark defaults_;
  std::set<std::string> names_;
};

}  // namespace

absl::StatusOr<Suite> ParseSuite(std::string_view text,
                                 const std::string& file) {
  TF_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, file));
  return Reader(file).Read(table);
}

absl::StatusOr<Suite> ReadSuite(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) {
    return absl::NotFoundError(
        absl::StrCat(file, ": no such file, or it is empty or unreadable"));
  }
  return ParseSuite(text.str(), file);
}

absl::StatusOr<double> ParseThreshold(std::string_view text) {
  absl::string_view number(text.data(), text.size());
  const bool percent = absl::ConsumeSuffix(&number, "%");
  double threshold = 0;
  // StripAsciiWhitespace happens in SimpleAtod, so "3 %" is fine, too.
  if (!absl::SimpleAtod(number, &threshold)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a threshold is \"3%\" or 0.03, not '",
                     absl::string_view(text.data(), text.size()), "'"));
  }
  if (percent) threshold /= 100;
  if (!(threshold >= kLeastThreshold && threshold <= kMostThreshold)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a threshold is between 0.1% and 100%, and '",
                     absl::string_view(text.data(), text.size()), "' is ",
                     100 * threshold, "%"));
  }
  return threshold;
}

}  // namespace tilefarm::regression
