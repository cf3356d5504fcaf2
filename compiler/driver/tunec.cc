// tunec: builds a program into a library, with the best schedule known.
//
//   tunec PROGRAM --target T [--db FILE | --server ADDR | --trace FILE |
//         --as-is] -o OUT.so [--symbol NAME] [--require-tuned]
//         [--allow-stale] [--allow-library] [--header FILE] [--json]
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
#include "base/status_macros.h"
#include "compiler/driver/choose_schedule.h"
#include "compiler/driver/compile.h"
#include "compiler/driver/remote_best.h"
#include "compiler/lower/check_program.h"
#include "compiler/target/target.h"
#include "database/migrations.h"
#include "database/store.h"
#include "nlohmann/json.hpp"
#include "proto/tilefarm/v1/protocol_version.h"
#include "transport/client_flags.h"
#include "transport/grpc_log.h"

namespace tilefarm::driver {
namespace {

constexpr int kUsageError = 2;
constexpr int kNothingFound = 3;

struct Flags {
  std::string program;
  std::string target;
  std::string db, server, trace;
  transport::ClientSecurity security;
  std::string output;
  std::string header;
  std::string symbol;
  bool as_is = false;
  bool require_tuned = false;
  Permissions permissions;
  bool json = false;
};

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  return std::move(text).str();
}

// All or nothing: written beside the file, then renamed over it.
absl::Status WriteFile(const std::string& path, const std::string& bytes,
                       bool executable) {
  const std::string temporary = absl::StrCat(path, ".tmp", getpid());
  std::ofstream file(temporary, std::ios::binary);
  file << bytes;
  file.close();
  std::error_code error;
  if (file && executable) {
    namespace fs = std::filesystem;
    fs::permissions(
        temporary,
        fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
        fs::perm_options::add, error);
  }
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::filesystem::remove(temporary, error);
    return absl::UnavailableError(
        absl::StrCat("cannot write ", path, ": ", reason));
  }
  return absl::OkStatus();
}

absl::StatusOr<ScheduledModule> ChooseSchedule(const Flags& flags,
                                               const ir::IRModule& module,
                                               const target::Target& target) {
  if (flags.as_is) {
    ScheduledModule result{module, {}};
    for (const ir::PrimFuncPtr& function : module.functions) {
      result.choices.push_back(
          {.function = function->name, .schedule = "as-is", .reason = "given"});
    }
    return result;
  }
  if (!flags.trace.empty()) {
    TF_ASSIGN_OR_RETURN(const std::string trace, ReadFile(flags.trace));
    return ScheduleByTrace(module, target, trace);
  }
  if (!flags.server.empty()) {
    return ScheduleFromRecords(module, target, Fingerprint(), flags.permissions,
                               BestOfServer({flags.server, flags.security}));
  }
  if (!flags.db.empty()) {
    absl::StatusOr<std::unique_ptr<database::Store>> store =
        database::Store::Open(flags.db, database::Store::Mode::kReadOnly);
    if (!store.ok()) {
      return absl::Status(store.status().code(),
                          absl::StrCat("database ", flags.db, ": ",
                                       std::string(store.status().message())));
    }
    return ScheduleFromRecords(module, target, Fingerprint(), flags.permissions,
                               [&](const database::BestQuery& query) {
                                 return (*store)->FindBest(query);
                               });
  }
  return ScheduleByDefault(module, target, "no database was given");
}

// The exit code, or an error.
absl::StatusOr<int> Run(const Flags& flags) {
  TF_ASSIGN_OR_RETURN(const target::Target target, target::Parse(flags.target));
  TF_ASSIGN_OR_RETURN(const std::string text, ReadFile(flags.program));
  TF_ASSIGN_OR_RETURN(const ir::IRModule module,
                      lower::ReadProgram(text, flags.program));
  TF_ASSIGN_OR_RETURN(ScheduledModule scheduled,
                      ChooseSchedule(flags, module, target));
  TF_RETURN_IF_ERROR(CheckLibraries(flags.permissions, scheduled));
  bool all_tuned = true;
  for (const Choice& choice : scheduled.choices) {
    if (choice.schedule == "default") {
      all_tuned = false;
      std::cerr << "tunec: " << choice.function << ": default schedule, since "
                << choice.reason << "\n";
    } else if (choice.schedule == "record") {
      std::cerr << "tunec: " << choice.function << ": record of "
                << choice.median_seconds * 1e3 << " ms (" << choice.reason
                << ")\n";
    }
    if (!choice.libraries.empty()) {
      std::cerr << "tunec: " << choice.function << ": calls "
                << absl::StrJoin(choice.libraries, ", ") << "\n";
    }
  }
  if (flags.require_tuned && !all_tuned) {
    std::cerr << "tunec: --require-tuned: nothing was built\n";
    return kNothingFound;
  }
  CompileOptions options;
  options.target = target;
  options.symbol = flags.symbol;
  TF_ASSIGN_OR_RETURN(const Artifact artifact,
                      Compile(scheduled.module, options));
  const std::string header = !flags.header.empty()
                                 ? flags.header
                                 : std::filesystem::path(flags.output)
                                       .replace_extension(".h")
                                       .string();
  TF_RETURN_IF_ERROR(WriteFile(header, artifact.header, false));
  TF_RETURN_IF_ERROR(WriteFile(flags.output, artifact.shared_object, true));
  if (flags.json) {
    nlohmann::json functions = nlohmann::json::array();
    for (size_t i = 0; i < scheduled.choices.size(); ++i) {
      const Choice& choice = scheduled.choices[i];
      nlohmann::json entry = {
          {"function", choice.function},
          {"symbol", artifact.symbols[i]},
          {"packed_parameters", artifact.packed_parameters[i]},
          {"schedule", choice.schedule},
          {"reason", choice.reason}};
      if (choice.schedule == "record") {
        entry["candidate_id"] = choice.candidate_id;
        entry["median_seconds"] = choice.median_seconds;
      }
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
  Flags flags;
  CLI::App app("Builds a program into a library with the best known schedule.",
               "tunec");
  app.set_version_flag("--version", [] {
    return absl::StrCat("tunec ", TILEFARM_RELEASE, "\nprotocol ",
                        v1::kProtocolVersion, "\nschema ",
                        database::SchemaVersion(), "\nfingerprint ",
                        Fingerprint());
  });
  app.add_option("program", flags.program, "program text")->required();
  app.add_option("--target", flags.target, "KIND[:MODEL][,key=value...]")
      ->required();
  auto* db = app.add_option("--db", flags.db, "tuning database to look in");
  auto* server =
      app.add_option("--server", flags.server,
                     "HOST:PORT of a tune-server; default: $TUNE_SERVER, where "
                     "no other way to a schedule is given");
  transport::AddClientFlags(app, flags.security);
  auto* trace =
      app.add_option("--trace", flags.trace, "apply the trace in this file");
  auto* as_is =
      app.add_flag("--as-is", flags.as_is, "keep the program's own schedule");
  for (CLI::Option* a : {db, server, trace, as_is}) {
    for (CLI::Option* b : {db, server, trace, as_is}) {
      if (a != b) a->excludes(b);
    }
  }
  app.add_option("-o,--output", flags.output, "the shared object")->required();
  app.add_option("--header", flags.header, "the C header; default: OUT.h");
  app.add_option("--symbol", flags.symbol, "symbol of the one function");
  app.add_flag("--require-tuned", flags.require_tuned,
               "exit 3 where a function has no record");
  app.add_flag("--allow-stale", flags.permissions.allow_stale,
               "also records of other compilers");
  app.add_flag("--allow-library", flags.permissions.allow_library,
               "also schedules that call a library of kernels, which the "
               "artifact then needs");
  app.add_flag("--allow-emulated", flags.permissions.allow_emulated,
               "also schedules timed by an emulator, where no other fits");
  app.add_flag("--json", flags.json, "describe the result on stdout");
  transport::RouteGrpcLog(LogLevel::kDebug);
  signal(SIGPIPE, SIG_IGN);  // a server that hangs up is an error to report
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  const char* known_server = std::getenv("TUNE_SERVER");
  const bool way_given =
      db->count() + server->count() + trace->count() + as_is->count() > 0;
  if (!way_given && known_server != nullptr) flags.server = known_server;
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
