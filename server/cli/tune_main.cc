// tune: the client. Parses the command line; commands.h does the rest.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/command_line/parse.h"
#include "database/record.h"
#include "server/cli/commands.h"
#include "server/cli/exit_codes.h"
#include "server/cli/input.h"
#include "server/cli/regress_flags.h"
#include "server/farm/device.h"
#include "server/services/version.h"
#include "transport/client_flags.h"
#include "transport/grpc_log.h"

namespace tilefarm::cli {
namespace {

// Trials of a job without trials, time and patience.
constexpr int64_t kDefaultTrials = 200;
constexpr int64_t kMostTrials = 100'000'000;

void AddProgramAndTarget(CLI::App& command, std::string& program,
                         std::string& target) {
  command.add_option("program", program, "File with the program (TVMScript)")
      ->required();
  command
      .add_option("--target", target,
                  "KIND[:MODEL][,key=value...], host, or a JSON file")
      ->capture_default_str();
}

void AddJobOptions(CLI::App& command, JobOptions& options) {
  command
      .add_option("program", options.program,
                  "File with the program (TVMScript), or a model (.onnx)")
      ->required();
  command
      .add_option(
          "--dim", options.dims,
          "NAME=SIZE[,SIZE...]: sizes of an open dimension of the model")
      ->allow_extra_args(false);
  command
      .add_option("--target", options.targets,
                  "KIND[:MODEL][,key=value...], host, or a JSON file; given "
                  "several times, one job tunes for all of them")
      ->allow_extra_args(false)
      ->default_str("host");
  command
      .add_option("--trials", options.trials,
                  "Candidates to measure, shared by the targets; fewer only "
                  "where there are no more")
      ->check(CLI::Range(int64_t{1}, kMostTrials));
  command
      .add_option("--time", options.time,
                  "Stop after this time: seconds, or 90s, 10m, 1h30m")
      ->check([](const std::string& text) {
        return std::string(ParseSeconds(text).status().message());
      });
  command
      .add_option("--patience", options.patience,
                  "Be done with a target after so many trials without a faster "
                  "one")
      ->check(CLI::Range(int64_t{1}, kMostTrials));
  command.add_option("--seed", options.seed, "Of the search")
      ->capture_default_str();
  command.add_option("--model", options.model, "What ranks candidates")
      ->check(CLI::IsMember({"xgboost", "random"}))
      ->capture_default_str();
  command.add_option("--search", options.search, "What makes candidates")
      ->check(CLI::IsMember({"evolutionary", "random"}))
      ->capture_default_str();
  command.add_option("--space", options.space,
                     "File with a sketch (a trace without decisions) to search "
                     "instead of the rules' sketches");
  command.add_flag("--flush-cache", options.flush_cache,
                   "Measure with cold caches");
  command.add_flag("--allow-library", options.allow_library,
                   "Also try kernels of oneDNN and OpenBLAS, where the device "
                   "has them");
  command.add_flag("--strict-fp", options.strict_fp,
                   "No candidate that rounds differently than the program, or "
                   "leaves out products with zeros that NaN or infinity would "
                   "show in");
  command.add_flag(
      "--no-winograd", options.no_winograd,
      "No candidate that uses Winograd's algorithm, whose rounding "
      "differs most");
  command
      .add_option("--priority", options.priority,
                  "Among your own jobs: -10 (last) to 10 (first)")
      ->check(CLI::Range(-10, 10))
      ->capture_default_str();
  command
      .add_option("--require", options.require,
                  "KEY=VALUE or KEY>=VALUE that a device must have, any number "
                  "of times: cores, memory, l1, l2, l3 (sizes such as 8GiB), "
                  "isolation (such as >=seccomp+netns), cpu, brand, emulated, "
                  "device, library.NAME, label.NAME")
      ->allow_extra_args(false);
}

std::vector<std::string> DeviceStates() {
  std::vector<std::string> names;
  for (const farm::DeviceState state : farm::kDeviceStates) {
    names.emplace_back(farm::DeviceStateName(state));
  }
  return names;
}

// The part of a list.
void AddPaging(CLI::App& command, Paging& paging,
               const std::vector<std::string>& columns) {
  constexpr int64_t kMost = 1'000'000'000;
  command.add_option("--sort", paging.sort, "By this column")
      ->check(CLI::IsMember(columns));
  command.add_flag("--reverse", paging.reverse, "In the opposite order");
  command
      .add_option("--limit", paging.limit,
                  paging.from_end ? "The latest so many" : "So many entries")
      ->check(CLI::Range(int64_t{1}, kMost));
  command
      .add_option("--offset", paging.offset,
                  paging.from_end ? "Without the latest so many"
                                  : "After so many entries")
      ->check(CLI::Range(int64_t{0}, kMost));
}

void AddRecordFilter(CLI::App& command, RecordFilter& filter) {
  command.add_option("--workload", filter.workload,
                     "Of workloads whose hash starts with this");
  command.add_option("--target", filter.target,
                     "With this in the target's key");
  command.add_option("--device", filter.device,
                     "With this in the device's name");
  command.add_option("--status", filter.status, "With this status")
      ->check(CLI::IsMember(std::vector<std::string>(
          database::kStatusNames.begin(), database::kStatusNames.end())));
  command
      .add_option("--since", filter.since,
                  "Recorded on this date (2026-01-31) or later")
      ->check(CheckSince);
}

// `tune devices` and its subcommands.
class DeviceCommands {
 public:
  DeviceCommands(CLI::App& devices, DeviceOptions& options) {
    devices.require_subcommand(0, 1);
    devices.fallthrough();
    Add(devices, "drain", "Let it finish what it holds, give it nothing new",
        DrainDevice, options);
    Add(devices, "resume", "End a drain, a quarantine or a pause", ResumeDevice,
        options);
    Add(devices, "quarantine", "Give it nothing until it is resumed",
        QuarantineDevice, options);
    for (const auto& [command, run] : commands_) {
      command->add_option("--reason", options.reason,
                          "For the list and the audit log");
    }
    Add(devices, "forget", "Drop what is known of a device that is gone",
        ForgetDevice, options);
    CLI::App* reserve =
        Add(devices, "reserve", "Keep it for one user", ReserveDevice, options);
    reserve
        ->add_option("--for", options.time,
                     "How long: seconds, or 90s, 30m, 2h")
        ->required()
        ->check([](const std::string& text) {
          return std::string(ParseSeconds(text).status().message());
        });
    reserve->add_option("--user", options.user, "For whom; otherwise for you");
    Add(devices, "release", "End its reservation", ReleaseDevice, options);
    log_ = devices.add_subcommand("log", "Who changed what, and why");
    log_->add_option("name", options.name, "Of this device alone");
    log_->add_option("--limit", options.limit, "The latest so many")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    auto* list = devices.add_subcommand("list", "List all devices");
    for (CLI::App* command : {&devices, list}) {
      command
          ->add_option("--state", options.states,
                       "In this state, such as idle or busy; several times")
          ->check(CLI::IsMember(DeviceStates()))
          ->allow_extra_args(false);
      command->add_option("--named", options.named, "With this in their names");
      command->add_option("--target", options.target,
                          "With this in their targets");
      command->add_option("--label", options.label,
                          "With this label: KEY or KEY=VALUE");
      AddPaging(*command, options.paging,
                {"name", "state", "model", "target", "seen", "rate"});
    }
  }

  int Run(const Common& common, const DeviceOptions& options) const {
    for (const auto& [command, run] : commands_) {
      if (*command) return run(common, options);
    }
    return *log_ ? DeviceLog(common, options) : Devices(common, options);
  }

 private:
  using Command = int (*)(const Common&, const DeviceOptions&);

  CLI::App* Add(CLI::App& devices, const char* name, const char* what,
                Command run, DeviceOptions& options) {
    CLI::App* command = devices.add_subcommand(name, what);
    command->add_option("name", options.name, "Its name")->required();
    commands_.emplace_back(command, run);
    return command;
  }

  std::vector<std::pair<CLI::App*, Command>> commands_;
  CLI::App* log_ = nullptr;
};

// Whether the address is from the command line, not from the environment.
bool NamesServer(const std::string& address) {
  const char* variable = std::getenv("TUNE_SERVER");
  return address != transport::Endpoint().address &&
         (variable == nullptr || address != variable);
}

int Main(int argc, char** argv) {
  Common common;
  JobOptions job;
  PictureOptions pictures;
  if (const char* db = std::getenv("TUNE_SERVER_DB"); db && *db) job.db = db;
  BestOptions best;
  ExplainOptions why;
  MeasureOptions measure;
  DeviceOptions device;
  DbOptions db;
  TokenOptions token;
  JobsOptions listed;
  std::string job_id;

  CLI::App app("Tunes tensor programs on the devices of a tune-server.",
               "tune");
  app.set_version_flag("--version",
                       [] { return services::VersionText("tune"); });
  app.require_subcommand(1);
  // The options below may also stand after the command.
  app.fallthrough();
  app.add_option("--server", common.server.address,
                 "HOST:PORT of the tune-server")
      ->envname("TUNE_SERVER")
      ->capture_default_str();
  transport::AddClientFlags(app, common.server.security);
  app.add_flag("--verbose", common.verbose,
               "Also how well the model ranks candidates");
  app.add_flag("--json", common.json,
               "One JSON document, or one object a line for streams");

  auto* run = app.add_subcommand("run", "Tune a program and watch");
  AddJobOptions(*run, job);
  auto* local = run->add_flag("--local", job.local,
                              "On this machine, without a tune-server of "
                              "yours: one runs until the job ends");
  run->add_option("--db", job.db, "The database of --local")
      ->needs(local)
      ->capture_default_str();
  auto* submit = app.add_subcommand("submit", "Tune a program; prints the job");
  AddJobOptions(*submit, job);
  auto* watch = app.add_subcommand("watch", "Watch a job until it ends");
  watch->add_option("job", job_id,
                    "Its id, or the start of it; otherwise the latest");
  auto* jobs = app.add_subcommand("jobs", "List jobs, the latest last");
  jobs->add_option("--state", listed.states, "In this state; several times")
      ->check(
          CLI::IsMember({"queued", "running", "done", "failed", "cancelled"}))
      ->allow_extra_args(false);
  auto* user = jobs->add_option("--user", listed.user, "Of this user");
  jobs->add_flag("--mine", listed.mine, "Your own")->excludes(user);
  jobs->add_option("--program", listed.program,
                   "Whose program's name has this in it");
  jobs->add_option("--target", listed.target,
                   "With this in the name of a target");
  AddPaging(*jobs, listed.paging,
            {"created", "state", "user", "program", "trials", "best"});
  auto* cancel = app.add_subcommand("cancel", "End a job");
  cancel->add_option("job", job_id, "Its id, or the start of it")->required();
  auto* report = app.add_subcommand(
      "report", "Write the pictures of a job into one file for a browser");
  report->add_option("job", pictures.job,
                     "Its id, or how it begins; the latest");
  report->add_option("-o,--output", pictures.output, "The file, such as a.html")
      ->required();
  auto* plot = app.add_subcommand(
      "plot", "Draw the candidates of a job and the best so far");
  plot->add_option("job", pictures.job, "Its id, or how it begins; the latest");
  plot->add_option("--by", pictures.by, "What goes to the right")
      ->check(CLI::IsMember({"trials", "time"}))
      ->capture_default_str();
  plot->add_option("--function", pictures.function,
                   "Of a job of several functions; the first one");
  plot->add_option("--columns", pictures.columns, "Width; of the terminal")
      ->check(CLI::Range(30, 1000));
  plot->add_option("--rows", pictures.rows, "Height of the curve")
      ->check(CLI::Range(4, 500));
  plot->add_flag("--ascii", pictures.ascii, "No Braille characters");

  auto* devices = app.add_subcommand(
      "devices", "List all devices, or change one; see --help");
  const DeviceCommands device_commands(*devices, device);

  auto* find = app.add_subcommand("best", "Show the best schedule known");
  AddProgramAndTarget(*find, best.program, best.target);
  find->add_option("--print", best.print, "What to print of it")
      ->check(CLI::IsMember({"program", "trace", "asm"}));
  find->add_option("--db", best.dbs,
                   "Ask this database, not the server; given several times, "
                   "the record that fits best is taken, of equal ones that of "
                   "the first database")
      ->allow_extra_args(false);
  find->add_flag("--explain", best.explain,
                 "Also say what became of every record of the program, and "
                 "why");
  find->add_flag("--allow-stale", best.allow_stale,
                 "Also records of another compiler");
  find->add_flag("--allow-library", best.allow_library,
                 "Also records that call a library's kernel");
  find->add_flag("--allow-emulated", best.allow_emulated,
                 "Also records timed by an emulator, where no other fits");
  find->add_flag("--strict-fp", best.strict_fp,
                 "No records that round differently than the program or leave "
                 "out products with zeros");

  find->add_flag("--no-winograd", best.no_winograd,
                 "No records that use Winograd's algorithm");

  auto* explain = app.add_subcommand(
      "explain", "Say where the time of the best schedule goes");
  AddProgramAndTarget(*explain, why.program, why.target);
  auto* dbs = explain
                  ->add_option("--db", why.dbs,
                               "Take the record from this database, not from "
                               "the server, and compare it with the next one")
                  ->allow_extra_args(false);
  auto* by_trace =
      explain
          ->add_option("--trace", why.trace,
                       "Explain the schedule of the trace in this file")
          ->excludes(dbs);
  auto* as_is = explain
                    ->add_flag("--as-is", why.as_is,
                               "Explain the program as scheduled in its text")
                    ->excludes(dbs)
                    ->excludes(by_trace);
  explain
      ->add_flag("--default", why.by_default,
                 "Explain the schedule without a record")
      ->excludes(dbs)
      ->excludes(by_trace)
      ->excludes(as_is);
  explain->add_flag("--no-run", why.no_run,
                    "Do not run the function on this machine");
  explain->add_flag("--measure-peaks", why.measure_peaks,
                    "Measure again what this machine reaches");

  auto* time = app.add_subcommand("measure", "Measure one schedule now");
  AddProgramAndTarget(*time, measure.program, measure.target);
  time->add_option("--trace", measure.trace,
                   "File with the trace; otherwise the program as written");
  time->add_option("--device", measure.device, "On this device alone");

  auto* database = app.add_subcommand("db", "The tuning database");
  database->require_subcommand(1);
  database->add_option("--db", db.db, "This file, not the server's database");
  auto* stats = database->add_subcommand("stats", "Count what is in it");
  auto* tasks = database->add_subcommand(
      "list", "List what was tuned: workloads, targets, their best times");
  AddRecordFilter(*tasks, db.filter);
  AddPaging(*tasks, db.paging,
            {std::begin(kGroupColumns), std::end(kGroupColumns)});
  auto* exports = database->add_subcommand("export", "Write JSON Lines");
  AddRecordFilter(*exports, db.filter);
  exports->add_option("--limit", db.paging.limit, "So many records")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}));
  exports->add_option("-o,--output", db.file, "File; otherwise stdout");
  exports->add_option("--sign", db.sign,
                      "Sign it with the Ed25519 private key in this PEM file");
  auto* imports = database->add_subcommand("import", "Read JSON Lines");
  imports->add_option("file", db.file, "File; - is stdin")->required();
  imports->add_option("--verify", db.verify,
                      "Import nothing unless it was signed with the key of "
                      "this public key or certificate (PEM)");
  auto* backup = database->add_subcommand(
      "backup", "Copy the file --db beside its running server");
  backup->add_option("file", db.file, "The new file")->required();

  auto* merge = database->add_subcommand(
      "merge",
      "Add the records of files to the file OUT, which is made if it does not "
      "exist. What OUT has already is kept; jobs, devices and models are not "
      "copied");
  merge->add_option("files", db.sources, "Files to read")->required();
  merge
      ->add_option("-o,--output", db.output,
                   "OUT, new or existing; no server may run on it")
      ->required();
  auto* diff = database->add_subcommand(
      "diff", "Compare the best records of two files, by workload and target");
  diff->add_option("files", db.sources, "Two files, A and B")
      ->required()
      ->expected(2);
  auto* prune = database->add_subcommand(
      "prune",
      "Delete records of the file --db that lookups do not need; without "
      "--delete it only says how many");
  prune
      ->add_option("--keep", db.keep,
                   "Of the successful records, keep this many of each "
                   "workload, target, device model, compiler and protocol. The "
                   "best one of each sketch always stays")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}));
  prune->add_option("--failed-before", db.failed_before,
                    "Drop failed records of before this date (2026-01-31)");
  prune->add_flag("--delete", db.really_delete, "Delete them");
  prune->add_flag("--compact", db.compact,
                  "Also give the space back to the file system; needs as much "
                  "free space as the file will have");

  auto* revalidate = database->add_subcommand(
      "revalidate",
      "Measure the best records of former compilers again, on the devices of "
      "the server: of each workload, target and device model those that are "
      "faster than all that the server's compiler has made");
  revalidate->add_option("--best", db.best, "So many of each")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1000}));

  auto* regress = app.add_subcommand(
      "regress", "Track the times of benchmarks over commits; see --help");
  RegressOptions regress_options;
  const RegressCommands regress_commands(*regress, regress_options);

  auto* tokens = app.add_subcommand("tokens", "Who may connect (for admins)");
  tokens->require_subcommand(1);
  tokens->add_option("--db", token.db,
                     "This file, while no server runs on it: for the first "
                     "token");
  auto* create =
      tokens->add_subcommand("create", "Make a token; it is shown this once");
  create->add_option("--role", token.role, "What it may do")
      ->check(CLI::IsMember({"worker", "user", "ci", "admin"}))
      ->required();
  create->add_option("--name", token.name, "Who it stands for")->required();
  create
      ->add_option("--expires", token.expires,
                   "After this time: 30d, 12h (default: never)")
      ->check([](const std::string& text) {
        return std::string(ParseSeconds(text).status().message());
      });
  create->add_option("-o,--output", token.output,
                     "New file for the token, mode 0600; otherwise stdout");
  auto* list = tokens->add_subcommand("list", "List all tokens");
  auto* revoke = tokens->add_subcommand(
      "revoke", "Void every token of a name, and its certificates up to now");
  revoke->add_option("name", token.name, "Whose")->required();
  auto* token_log =
      tokens->add_subcommand("log", "Who made and revoked which, and when");
  token_log->add_option("name", token.name, "Of this name alone");
  token_log->add_option("--limit", token.limit, "The latest so many")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();

  auto* completion = app.add_subcommand(
      "completion", "Print a script that lets your shell complete commands");
  std::string shell;
  completion->add_option("shell", shell, "Which one")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));

  if (const auto code = ParseCommandLine(app, argc, argv)) return *code;
  if (*completion) {
    std::printf("%s", Completion(app, shell)->c_str());
    return kSuccess;
  }
  signal(SIGPIPE, SIG_IGN);
  if (job.local && NamesServer(common.server.address)) {
    std::fprintf(stderr, "tune run: --local and --server exclude each other\n");
    return kBadUsage;
  }
  // Client reports such errors in words.
  transport::RouteGrpcLog(LogLevel::kDebug);
  if (job.trials == 0 && job.time.empty() && job.patience == 0) {
    job.trials = kDefaultTrials;
  }

  if (*run) return Run(common, job);
  if (*submit) return Submit(common, job);
  if (*watch) return Watch(common, job_id);
  if (*jobs) return Jobs(common, listed);
  if (*cancel) return Cancel(common, job_id);
  if (*report) return Report(common, pictures);
  if (*plot) return DrawJob(common, pictures);
  if (*devices) return device_commands.Run(common, device);
  if (*find) return Best(common, best);
  if (*explain) return Explain(common, why);
  if (*time) return Measure(common, measure);
  if (*tasks) return DbList(common, db);
  if (*stats) return DbStats(common, db);
  if (*exports) return DbExport(common, db);
  if (*imports) return DbImport(common, db);
  if (*backup) return DbBackup(common, db);
  if (*merge) return DbMerge(common, db);
  if (*diff) return DbDiff(common, db);
  if (*prune) return DbPrune(common, db);
  if (*revalidate) return DbRevalidate(common, db);
  if (*regress) return regress_commands.Run(common, regress_options);
  if (*create) return TokensCreate(common, token);
  if (*list) return TokensList(common, token);
  if (*revoke) return TokensRevoke(common, token);
  if (*token_log) return TokensLog(common, token);
  return kBadUsage;
}

}  // namespace
}  // namespace tilefarm::cli

int main(int argc, char** argv) { return tilefarm::cli::Main(argc, argv); }
