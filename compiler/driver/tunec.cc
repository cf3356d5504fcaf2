// tunec: builds a program into a library, with the best schedule known.
//
//   tunec PROGRAM --target T [--db FILE... | --server ADDR | --trace FILE |
//         --as-is | --locked FILE] -o OUT.so [--symbol NAME]
//         [--write-lock FILE] [--require-tuned] [--explain]
//         [--allow-stale] [--allow-library] [--allow-rounding | --strict-fp]
//         [--header FILE] [--json]
//
// Exit codes: 0; 1 for a failure it reports (a bad program included); 2 for bad
// usage; 3 where --require-tuned finds a function without a record.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/command_line/parse.h"
#include "base/json.h"
#include "base/status_macros.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/files.h"
#include "compiler/driver/read_model.h"
#include "compiler/driver/tunec_flags.h"
#include "compiler/driver/tunec_model.h"
#include "compiler/lower/check_program.h"
#include "compiler/target/target.h"
#include "database/explanation.h"
#include "database/migrations.h"
#include "database/store.h"
#include "nlohmann/json.hpp"
#include "proto/tilefarm/v1/protocol_version.h"
#include "transport/client_flags.h"
#include "transport/grpc_log.h"

namespace tilefarm::driver {
namespace {

nlohmann::json DescribeChoice(const Choice& choice) {
  nlohmann::json entry = {{"function", choice.function},
                          {"schedule", choice.schedule},
                          {"reason", choice.reason}};
  if (choice.schedule == "record") {
    entry["candidate_id"] = choice.candidate_id;
    entry["median_seconds"] = choice.median_seconds;
  }
  if (choice.schedule != "as-is") {
    entry["algorithms"] = choice.algorithms;
    entry["keeps_floats"] = choice.keeps_floats;
  }
  if (!choice.database.empty()) entry["database"] = choice.database;
  if (choice.explanation) {
    entry["explanation"] =
        ParseJson(database::ExplanationToJson(*choice.explanation));
  }
  return entry;
}

// The exit code, or an error.
absl::StatusOr<int> Run(const TunecFlags& flags) {
  if (IsModel(flags.program)) return RunModel(flags);
  if (!flags.dims.empty() || !flags.run_inputs.empty() || !flags.save.empty() ||
      !flags.print_after.empty() || !flags.dot.empty() ||
      !flags.weights.empty() || flags.profile || flags.time) {
    return absl::InvalidArgumentError(
        "--dim, --run, --save, --weights, --profile, --print-after, --dot and "
        "--time are for models (.onnx)");
  }
  TF_ASSIGN_OR_RETURN(const target::Target target, target::Parse(flags.target));
  TF_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.program));
  TF_ASSIGN_OR_RETURN(const ir::IRModule module,
                      lower::ReadProgram(text, flags.program));
  TF_ASSIGN_OR_RETURN(ScheduledModule scheduled,
                      ChooseSchedule(flags, module, target));
  TF_ASSIGN_OR_RETURN(const bool build, ReportChoices(flags, scheduled));
  if (!build) return kNothingFound;
  // Without --output the explanation is all that was asked for.
  if (flags.output.empty()) {
    if (flags.json) {
      nlohmann::json functions = nlohmann::json::array();
      for (const Choice& choice : scheduled.choices) {
        functions.push_back(DescribeChoice(choice));
      }
      std::cout << nlohmann::json{{"target", target.Key()},
                                  {"fingerprint", Fingerprint()},
                                  {"functions", std::move(functions)}}
                       .dump()
                << "\n";
    }
    return 0;
  }
  CompileOptions options;
  options.target = target;
  options.symbol = flags.symbol;
  options.archive = IsArchive(flags.output);
  TF_ASSIGN_OR_RETURN(const Artifact artifact,
                      Compile(scheduled.module, options));
  const std::string header = HeaderPath(flags, target);
  TF_RETURN_IF_ERROR(WriteFile(header, artifact.header, false));
  TF_RETURN_IF_ERROR(WriteFile(
      flags.output, options.archive ? artifact.archive : artifact.shared_object,
      !options.archive));
  TF_RETURN_IF_ERROR(WriteLock(flags, module, target, scheduled));
  if (flags.json) {
    nlohmann::json functions = nlohmann::json::array();
    for (size_t i = 0; i < scheduled.choices.size(); ++i) {
      const Choice& choice = scheduled.choices[i];
      nlohmann::json entry = DescribeChoice(choice);
      entry["symbol"] = artifact.symbols[i];
      entry["packed_parameters"] = artifact.packed_parameters[i];
      if (!choice.libraries.empty()) entry["libraries"] = choice.libraries;
      functions.push_back(std::move(entry));
    }
    std::cout << nlohmann::json{{"output", flags.output},
                                {"header", header},
                                {"target", target.Key()},
                                {"fingerprint", Fingerprint()},
                                {"code_digest", artifact.code_digest},
                                {"functions", std::move(functions)}}
                     .dump()
              << "\n";
  }
  return 0;
}

int Main(int argc, char** argv) {
  TunecFlags flags;
  CLI::App app("Builds a program into a library with the best known schedule.",
               "tunec");
  app.set_version_flag("--version", [] {
    return absl::StrCat("tunec ", TILEFARM_RELEASE, "\nprotocol ",
                        v1::kProtocolVersion, "\nschema ",
                        database::SchemaVersion(), "\nfingerprint ",
                        Fingerprint());
  });
  app.add_option("program", flags.program, "program text, or a model (.onnx)")
      ->required();
  app.add_option("--target", flags.target, "KIND[:MODEL][,key=value...]")
      ->required();
  auto* db = app.add_option("--db", flags.dbs,
                            "tuning database to look in; given several times, "
                            "the record that fits best is taken, of equal ones "
                            "that of the first database")
                 ->allow_extra_args(false);
  auto* server =
      app.add_option("--server", flags.server,
                     "HOST:PORT of a tune-server; default: $TUNE_SERVER, where "
                     "no other way to a schedule is given");
  transport::AddClientFlags(app, flags.security);
  auto* trace =
      app.add_option("--trace", flags.trace, "apply the trace in this file");
  auto* as_is =
      app.add_flag("--as-is", flags.as_is, "keep the program's own schedule");
  auto* locked = app.add_option("--locked", flags.locked,
                                "build exactly as this lock file says");
  for (CLI::Option* a : {db, server, trace, as_is, locked}) {
    for (CLI::Option* b : {db, server, trace, as_is, locked}) {
      if (a != b) a->excludes(b);
    }
  }
  auto* output = app.add_option(
      "-o,--output", flags.output,
      "the shared object, as NAME.a an archive for static linking (wasm32: "
      "module); --run, --print-after, --dot and --time need none");
  app.add_option("--write-lock", flags.write_lock,
                 "write what was chosen for every function, for --locked")
      ->excludes(trace)
      ->excludes(as_is)
      ->excludes(locked)
      ->needs(output);
  app.add_option("--header", flags.header,
                 "the C header; default: OUT.h. For wasm32 the JavaScript that "
                 "loads the module; default: OUT.mjs");
  app.add_option("--symbol", flags.symbol, "symbol of the one function");
  app.add_flag("--require-tuned", flags.require_tuned,
               "exit 3 where a function has no record");
  auto* explain = app.add_flag(
      "--explain", flags.explain,
      "say what became of every record of each function, and why; builds "
      "nothing without --output");
  for (CLI::Option* other : {trace, as_is, locked}) explain->excludes(other);
  app.add_flag("--allow-stale", flags.permissions.allow_stale,
               "also records of other compilers");
  app.add_flag("--allow-library", flags.permissions.allow_library,
               "also schedules that call a library of kernels, which the "
               "artifact then needs");
  app.add_flag("--allow-emulated", flags.permissions.allow_emulated,
               "also schedules timed by an emulator, where no other fits");
  auto* allow_rounding = app.add_flag(
      "--allow-rounding", flags.permissions.allow_rounding,
      "default schedules may round differently than the program, and leave out "
      "products with zeros that NaN or infinity would show in");
  app.add_flag("--strict-fp", flags.permissions.strict_fp,
               "no such schedules from records or --trace, either")
      ->excludes(allow_rounding);
  app.add_flag("--no-winograd", flags.permissions.no_winograd,
               "no schedule that uses Winograd's algorithm, whose rounding "
               "differs most");
  app.add_option("--dim", flags.dims,
                 "NAME=SIZE: the size of an open dimension of the model; with "
                 "NAME=SIZE,SIZE,... the library takes each of them");
  auto* run =
      app.add_option("--run", flags.run_inputs,
                     "INPUT=FILE.npy for every input: run the model once");
  app.add_option("--weights", flags.weights,
                 "write the model's weights into this file, not into the "
                 "library, which looks for it in its own folder")
      ->needs(output);
  app.add_option("--save", flags.save,
                 "folder for the outputs of --run, one .npy file each");
  auto* profile = app.add_flag("--profile", flags.profile,
                               "time each kernel of --run, and print a table")
                      ->needs(run);
  app.add_option("--profile-runs", flags.profile_runs,
                 "timed runs, after one without times")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->needs(profile);
  app.add_option("--profile-trace", flags.profile_trace,
                 "write the timed calls for chrome://tracing or Perfetto")
      ->needs(profile);
  auto* print_after = app.add_option(
      "--print-after", flags.print_after,
      "print the model's graph after import or one of its passes");
  auto* dot = app.add_option("--dot", flags.dot,
                             "write the optimised graph for Graphviz");
  auto* time = app.add_flag(
      "--time", flags.time,
      "measure the model on this machine: as scheduled, with default "
      "schedules, and without fusion");
  app.add_flag("--json", flags.json, "describe the result on stdout");
  transport::RouteGrpcLog(LogLevel::kDebug);
  signal(SIGPIPE, SIG_IGN);  // a server that hangs up is an error to report
  if (const auto code = ParseCommandLine(app, argc, argv)) return *code;
  if (output->count() + run->count() + print_after->count() + dot->count() +
          time->count() + explain->count() ==
      0) {
    std::cerr << "tunec: --output is required\n";
    return kUsageError;
  }
  const char* known_server = std::getenv("TUNE_SERVER");
  const bool way_given = db->count() + server->count() + trace->count() +
                             as_is->count() + locked->count() >
                         0;
  if (!way_given && known_server != nullptr) flags.server = known_server;
  if (flags.explain && flags.dbs.empty() && flags.server.empty()) {
    std::cerr << "tunec: --explain explains a lookup: give --db or --server\n";
    return kUsageError;
  }
  const absl::StatusOr<int> code = Run(flags);
  if (!code.ok()) {
    std::cerr << "tunec: " << std::string(code.status().message()) << "\n";
    return 1;
  }
  return *code;
}

}  // namespace
}  // namespace tilefarm::driver

int main(int argc, char** argv) { return tilefarm::driver::Main(argc, argv); }
