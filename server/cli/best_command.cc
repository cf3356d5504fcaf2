// best: the best schedule known for a program on a target.
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/kept_floats.h"
#include "compiler/driver/schedule_text.h"
#include "compiler/ir/printer.h"
#include "compiler/target/target.h"
#include "cost_model/features.h"
#include "database/explanation.h"
#include "database/layers.h"
#include "database/store.h"
#include "server/cli/client.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/format.h"
#include "server/cli/input.h"

namespace tilefarm::cli {
namespace {

using database::BestMatch;
using database::Explanation;
using database::Layers;

ir::FloatRule FloatsOf(const BestOptions& options) {
  if (options.strict_fp) return ir::FloatRule::kAsWritten;
  return options.no_winograd ? ir::FloatRule::kNoWinograd
                             : ir::FloatRule::kMayDiffer;
}

absl::StatusOr<BestMatch> FindOnServer(
    const Common& common, const BestOptions& options,
    const ir::PrimFuncPtr& function, const target::Target& target,
    std::optional<Explanation>& explanation) {
  v1::BestRequest request;
  request.set_program(ir::Print(ir::IRModule{{function}}));
  request.set_target(target.Key());
  request.set_device_model(target.device_model);
  request.set_fingerprint(driver::Fingerprint());
  request.set_allow_stale(options.allow_stale);
  request.set_allow_library(options.allow_library);
  request.set_allow_emulated(options.allow_emulated);
  request.set_strict_fp(options.strict_fp);
  request.set_no_winograd(options.no_winograd);
  request.set_explain(options.explain);
  Client client(common.server);
  TF_ASSIGN_OR_RETURN(const v1::BestResponse response, client.Best(request));
  if (options.explain) {
    if (response.explanation_json().empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "server ", common.server.address,
          " is older than this tune and cannot explain lookups: leave out "
          "--explain, or give --db"));
    }
    TF_ASSIGN_OR_RETURN(explanation, database::ExplanationFromJson(
                                         response.explanation_json()));
    if (!explanation->found) return absl::NotFoundError(response.reason());
  }
  BestMatch match;
  TF_ASSIGN_OR_RETURN(match.record,
                      database::RecordFromJson(response.record_json()));
  match.reason = response.reason();
  return match;
}

absl::StatusOr<BestMatch> FindInFiles(const Layers& layers,
                                      const BestOptions& options,
                                      const ir::PrimFuncPtr& function,
                                      const target::Target& target,
                                      std::optional<Explanation>& explanation) {
  const database::BestQuery query = {
      .program = function,
      .target = target,
      .device_model = target.device_model,
      .fingerprint = driver::Fingerprint(),
      .allow_stale = options.allow_stale,
      .allow_library = options.allow_library,
      .allow_emulated = options.allow_emulated,
      .floats = FloatsOf(options),
      .keeps_floats = driver::ObeysRule(FloatsOf(options))};
  if (options.explain) {
    TF_ASSIGN_OR_RETURN(explanation, layers.ExplainBest(query));
  }
  return layers.FindBest(query);
}

driver::StoredSchedule ScheduleOf(const database::Record& record) {
  return {.program = record.program,
          .trace = record.trace,
          .target = record.target};
}

nlohmann::ordered_json JsonOf(const Explanation& explanation) {
  return ParseJson<nlohmann::ordered_json>(
      database::ExplanationToJson(explanation));
}

std::string Describe(const ir::PrimFunc& function, const BestMatch& match) {
  const database::Record& record = match.record;
  const std::string algorithms =
      absl::StrJoin(driver::AlgorithmsOf(record.trace), ", ");
  std::vector<std::vector<std::string>> rows = {
      {"function", function.name},
      {"median",
       absl::StrFormat("%s (%s to %s)", Seconds(record.median_seconds),
                       Seconds(record.ci_low_seconds),
                       Seconds(record.ci_high_seconds))},
      {"rate",
       absl::StrFormat("%.1f GFLOPS", cost_model::CountFlops(function) /
                                          record.median_seconds * 1e-9)},
      {"target", record.target},
      {"device", record.device},
      {"library", record.library().empty() ? "none" : record.library()},
      {"algorithm", algorithms.empty() ? "as the program" : algorithms},
      {"floats", driver::KeepsFloats(record.program, record.trace)
                     ? "as the program, but for the order of sums"
                     : "round differently than the program, or leave out terms "
                       "(--strict-fp forbids it)"},
      {"chosen by", match.reason},
      {"measured", record.recorded_at},
      {"compiler", record.fingerprint},
      {"verified", absl::StrFormat("largest error %.3g, %.3g of its bound",
                                   record.max_abs_error, record.max_rel_error)},
  };
  if (!match.database.empty()) rows.push_back({"database", match.database});
  return Table(rows);
}

absl::StatusOr<std::string> Render(const Common& common,
                                   const BestOptions& options,
                                   const ir::PrimFunc& function,
                                   const BestMatch& match,
                                   const std::optional<Explanation>& why) {
  if (options.print == "trace") {
    std::string trace = match.record.trace;
    if (!trace.empty() && trace.back() != '\n') trace += '\n';
    return trace;
  }
  if (options.print == "program") {
    return driver::ScheduledProgram(ScheduleOf(match.record));
  }
  if (options.print == "asm") return driver::Assembly(ScheduleOf(match.record));
  if (!common.json) return Describe(function, match);
  auto json =
      ParseJson<nlohmann::ordered_json>(database::RecordToJson(match.record));
  json["function"] = function.name;
  json["reason"] = match.reason;
  json["algorithms"] = driver::AlgorithmsOf(match.record.trace);
  json["keeps_floats"] =
      driver::KeepsFloats(match.record.program, match.record.trace);
  if (!match.database.empty()) json["database"] = match.database;
  if (why) json["explanation"] = JsonOf(*why);
  return json.dump() + "\n";
}

// That there is none, with --json and --explain: what was considered.
std::string RenderNone(const ir::PrimFunc& function,
                       const Explanation& explanation) {
  return nlohmann::ordered_json{{"function", function.name},
                                {"reason", explanation.reason},
                                {"explanation", JsonOf(explanation)}}
             .dump() +
         "\n";
}

}  // namespace

int Best(const Common& common, const BestOptions& options) {
  const auto program = ReadProgram(options.program);
  if (!program.ok()) return Fail(program.status());
  const auto target = target::Parse(options.target);
  if (!target.ok()) return Fail(target.status());
  std::optional<Layers> layers;
  if (!options.dbs.empty()) {
    auto opened = Layers::Open(options.dbs);
    if (!opened.ok()) return Fail(opened.status());
    layers = *std::move(opened);
  }
  int code = kSuccess;
  for (const ir::PrimFuncPtr& function : program->module.functions) {
    std::optional<Explanation> why;
    const auto match =
        layers ? FindInFiles(*layers, options, function, *target, why)
               : FindOnServer(common, options, function, *target, why);
    const bool json = common.json && options.print.empty();
    if (why && !json) {
      // With --print, what is printed stays alone on stdout.
      std::fprintf(options.print.empty() ? stdout : stderr, "%s",
                   database::ExplanationText(*why).c_str());
    }
    if (absl::IsNotFound(match.status())) {
      std::fprintf(stderr, "tune: %s: %s\n", function->name.c_str(),
                   std::string(match.status().message()).c_str());
      if (why && json) std::printf("%s", RenderNone(*function, *why).c_str());
      code = kNothingFound;
      continue;
    }
    if (!match.ok()) return Fail(match.status());
    const auto text = Render(common, options, *function, *match, why);
    if (!text.ok()) return Fail(text.status());
    std::printf("%s", text->c_str());
  }
  return code;
}

}  // namespace tilefarm::cli
