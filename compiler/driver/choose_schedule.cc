#include "compiler/driver/choose_schedule.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/driver/draft_schedule.h"
#include "compiler/driver/kept_floats.h"
#include "compiler/driver/zero_terms.h"
#include "compiler/ir/library_call.h"
#include "compiler/ir/parser.h"
#include "compiler/ir/printer.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/schedule/tensor_intrin.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::driver {
namespace {

// The scheduled function with the user's names for function, symbol and
// parameters. The lookup ensured equal structure, shapes and dtypes.
absl::StatusOr<ir::PrimFuncPtr> WithUsersNames(const ir::PrimFunc& scheduled,
                                               const ir::PrimFunc& user) {
  if (scheduled.params.size() != user.params.size()) {
    return absl::DataLossError(absl::StrCat(
        "the record's program has ", scheduled.params.size(),
        " parameters and function ", user.name, " has ", user.params.size()));
  }
  ir::BufferMap renamed;
  for (size_t i = 0; i < user.params.size(); ++i) {
    auto buffer = std::make_shared<ir::BufferNode>(*scheduled.params[i]);
    if (buffer->shape != user.params[i]->shape ||
        buffer->dtype != user.params[i]->dtype) {
      return absl::DataLossError(absl::StrCat(
          "parameter ", i, " of the record's program is not that of function ",
          user.name));
    }
    buffer->name = user.params[i]->name;
    renamed[scheduled.params[i].get()] = std::move(buffer);
  }
  auto result = std::make_shared<ir::PrimFunc>(scheduled);
  for (ir::Buffer& param : result->params) param = renamed.at(param.get());
  result->body = ir::ReplaceBuffers(scheduled.body, renamed);
  result->name = user.name;
  result->attrs.erase("global_symbol");
  const auto symbol = user.attrs.find("global_symbol");
  if (symbol != user.attrs.end()) result->attrs.insert(*symbol);
  return result;
}

absl::StatusOr<ir::PrimFuncPtr> ReplayRecord(const database::Record& record,
                                             const ir::PrimFunc& user) {
  TF_ASSIGN_OR_RETURN(const ir::PrimFuncPtr program,
                      ir::ParseFunction(record.program, "<record>"));
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(record.trace));
  TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                      schedule::Replay(trace, ir::IRModule{{program}}));
  return WithUsersNames(*scheduled.module().functions[0], user);
}

}  // namespace

absl::StatusOr<ScheduledModule> ScheduleFromRecords(
    const ir::IRModule& module, const target::Target& target,
    const std::string& fingerprint, const Permissions& permissions,
    const FindBest& find) {
  ScheduledModule result;
  for (const ir::PrimFuncPtr& function : module.functions) {
    database::BestQuery query;
    query.program = function;
    query.target = target;
    query.device_model = target.device_model;
    query.fingerprint = fingerprint;
    query.allow_stale = permissions.allow_stale;
    query.allow_library = permissions.allow_library;
    query.allow_emulated = permissions.allow_emulated;
    query.floats = permissions.record_floats();
    query.keeps_floats = ObeysRule(query.floats);
    const absl::StatusOr<database::BestMatch> best = find(query);
    if (best.status().code() == absl::StatusCode::kNotFound) {
      TF_ASSIGN_OR_RETURN(
          ScheduledModule fallback,
          ScheduleByDefault(ir::IRModule{{function}}, target,
                            permissions.floats(),
                            std::string(best.status().message())));
      result.module.functions.push_back(fallback.module.functions[0]);
      result.choices.push_back(std::move(fallback.choices[0]));
      continue;
    }
    TF_RETURN_IF_ERROR(best.status());
    if (!Obeys(query.floats, best->record.program, best->record.trace)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the server's record of ", function->name,
          permissions.strict_fp
              ? " changes floats, although --strict-fp was asked for"
              : " uses winograd, although --no-winograd was asked for",
          ": the server is older than this tunec"));
    }
    absl::StatusOr<ir::PrimFuncPtr> scheduled =
        ReplayRecord(best->record, *function);
    if (!scheduled.ok()) {
      return absl::Status(
          scheduled.status().code(),
          absl::StrCat("the record of ", function->name,
                       " does not replay: ", scheduled.status().message()));
    }
    result.module.functions.push_back(*std::move(scheduled));
    result.choices.push_back({.function = function->name,
                              .schedule = "record",
                              .reason = best->reason,
                              .candidate_id = best->record.candidate_id,
                              .median_seconds = best->record.median_seconds,
                              .program = best->record.program,
                              .trace = best->record.trace,
                              .database = best->database,
                              .algorithms = AlgorithmsOf(best->record.trace),
                              .keeps_floats = KeepsFloats(best->record.program,
                                                          best->record.trace)});
  }
  return result;
}

absl::StatusOr<ScheduledModule> ScheduleByDefault(const ir::IRModule& module,
                                                  const target::Target& target,
                                                  ir::FloatRule floats,
                                                  const std::string& reason) {
  ScheduledModule result;
  for (const ir::PrimFuncPtr& function : module.functions) {
    TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                        DraftSchedule(floats == ir::FloatRule::kAsWritten
                                          ? WithZeroTermsApart(function)
                                          : function,
                                      target, floats));
    result.module.functions.push_back(scheduled.module().functions[0]);
    const std::string trace = scheduled.trace().Print();
    result.choices.push_back(
        {.function = function->name,
         .schedule = "default",
         .reason = reason,
         .algorithms = AlgorithmsOf(trace),
         // With zero terms apart, the trace is of another program.
         .keeps_floats = floats == ir::FloatRule::kAsWritten ||
                         KeepsFloats(ir::Print(*function), trace)});
  }
  return result;
}

absl::StatusOr<ScheduledModule> ScheduleByTrace(const ir::IRModule& module,
                                                const target::Target& target,
                                                ir::FloatRule floats,
                                                const std::string& trace_text) {
  TF_ASSIGN_OR_RETURN(const schedule::Trace trace,
                      schedule::Trace::Parse(trace_text));
  TF_RETURN_IF_ERROR(schedule::CheckCapabilities(trace, target.capabilities));
  TF_ASSIGN_OR_RETURN(const schedule::Schedule scheduled,
                      schedule::Replay(trace, module, /*seed=*/0, floats));
  ScheduledModule result{scheduled.module(), {}};
  const bool kept =
      floats == ir::FloatRule::kAsWritten ||
      schedule::Replay(trace, module, /*seed=*/0, ir::FloatRule::kAsWritten)
          .ok();
  for (const ir::PrimFuncPtr& function : module.functions) {
    result.choices.push_back({.function = function->name,
                              .schedule = "trace",
                              .reason = "given",
                              .algorithms = AlgorithmsOf(trace_text),
                              .keeps_floats = kept});
  }
  return result;
}

absl::Status CheckLibraries(const Permissions& permissions,
                            ScheduledModule& scheduled) {
  for (size_t i = 0; i < scheduled.choices.size(); ++i) {
    Choice& choice = scheduled.choices[i];
    choice.libraries = ir::LibraryCallsIn(scheduled.module.functions[i]->body);
    if (!choice.libraries.empty() && !permissions.allow_library) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the schedule of ", choice.function, " calls ",
          absl::StrJoin(choice.libraries, ", "),
          ", a library of the device: --allow-library permits it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tilefarm::driver
