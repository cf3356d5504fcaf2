// The commands of `tune`: one function each, from options to exit code.
#ifndef TILEFARM_SERVER_CLI_COMMANDS_H_
#define TILEFARM_SERVER_CLI_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/cli/listing.h"
#include "server/cli/record_list.h"
#include "transport/endpoint.h"

namespace tilefarm::cli {

// Options of every command.
struct Common {
  transport::Endpoint server;
  bool json = false;
  bool verbose = false;
};

struct JobOptions {
  std::string program;
  std::vector<std::string> dims;  // of a model: driver::ParseDims
  std::vector<std::string> targets = {"host"};
  int64_t trials = 0;  // of all targets together
  std::string time;    // "90s"; empty: no limit
  int64_t patience = 0;
  uint64_t seed = 0;
  std::string model = "xgboost";
  std::string search = "evolutionary";
  std::string space;  // file of a sketch
  bool flush_cache = false;
  bool allow_library = false;
  bool strict_fp = false;
  bool no_winograd = false;
  int priority = 0;
  std::vector<std::string> require;
  // Only of `run`: without a server of the user's, on the database `db`.
  bool local = false;
  std::string db = "tune.db";
};

struct BestOptions {
  std::string program;
  std::string target = "host";
  std::string print;  // program, trace, asm; empty: a summary
  // Files instead of the server, the preferred one first.
  std::vector<std::string> dbs;
  bool explain = false;  // also what became of every record
  bool allow_stale = false;
  bool allow_library = false;
  bool allow_emulated = false;
  bool strict_fp = false;
  bool no_winograd = false;
};

struct ExplainOptions {
  std::string program;
  std::string target = "host";
  std::vector<std::string> dbs;  // files instead of the server
  std::string trace;             // file; instead of a record
  bool as_is = false;            // the program as scheduled in its text
  bool by_default = false;       // the schedule without a record
  bool no_run = false;
  bool measure_peaks = false;  // again
};

struct MeasureOptions {
  std::string program;
  std::string target = "host";
  std::string trace;   // file; empty: as written
  std::string device;  // name; empty: any
};

struct DeviceOptions {
  std::string name;
  std::string reason;
  std::string time;  // duration of a reservation
  std::string user;  // whom it is for; empty: the caller
  int64_t limit = 100;
  // Of the list: what is given must all hold.
  std::vector<std::string> states;
  std::string named, target, label;  // parts of them; KEY or KEY=VALUE
  Paging paging;
};

struct PictureOptions {
  std::string job;     // as of Watch
  std::string output;  // file of a report
  // Of a plot.
  std::string by = "trials";  // or "time"
  std::string function;       // empty: the first one
  int columns = 0, rows = 0;  // 0: as the terminal has
  bool ascii = false;
};

struct TokenOptions {
  std::string db;  // a file instead of the server
  std::string name, role;
  std::string expires;  // "30d"; empty: never
  std::string output;   // file for the token instead of stdout
  int64_t limit = 100;  // of the log
};

struct DbOptions {
  std::string db;      // a file instead of the server
  std::string file;    // of import and export; "-": standard input or output
                       // (backup: the new file)
  std::string sign;    // export: file of a private key
  std::string verify;  // import: file of a public key or certificate
  std::vector<std::string> sources;  // merge: files to read; diff: two files
  std::string output;                // merge
  int64_t keep = 0;                  // prune; 0: all
  std::string failed_before;         // prune
  bool really_delete = false;        // prune; otherwise it only counts
  bool compact = false;              // prune
  int64_t best = 1;                  // revalidate: records of each task
  RecordFilter filter;               // list and export
  Paging paging;                     // list; of export the limit alone
};

// Submits and watches a job. A model that is tuned for this machine alone is
// measured at the end.
int Run(const Common& common, const JobOptions& options);
int Submit(const Common& common, const JobOptions& options);
// `job`: an id or the start of one, with or without "job-"; empty: the latest.
int Watch(const Common& common, const std::string& job);
struct JobsOptions {
  std::vector<std::string> states;
  std::string user, program, target;
  bool mine = false;
  Paging paging{.from_end = true};
};
int Jobs(const Common& common, const JobsOptions& options);
int Cancel(const Common& common, const std::string& job);
int Devices(const Common& common, const DeviceOptions& options);
// Writes a file that a browser shows by itself.
int Report(const Common& common, const PictureOptions& options);
// Draws the candidates of a function on the terminal.
int DrawJob(const Common& common, const PictureOptions& options);
int DrainDevice(const Common& common, const DeviceOptions& options);
int ResumeDevice(const Common& common, const DeviceOptions& options);
int QuarantineDevice(const Common& common, const DeviceOptions& options);
int ForgetDevice(const Common& common, const DeviceOptions& options);
int ReserveDevice(const Common& common, const DeviceOptions& options);
int ReleaseDevice(const Common& common, const DeviceOptions& options);
int DeviceLog(const Common& common, const DeviceOptions& options);
int Best(const Common& common, const BestOptions& options);
int Explain(const Common& common, const ExplainOptions& options);
int Measure(const Common& common, const MeasureOptions& options);
int TokensCreate(const Common& common, const TokenOptions& options);
int TokensList(const Common& common, const TokenOptions& options);
int TokensRevoke(const Common& common, const TokenOptions& options);
int TokensLog(const Common& common, const TokenOptions& options);
int DbList(const Common& common, const DbOptions& options);
int DbStats(const Common& common, const DbOptions& options);
int DbExport(const Common& common, const DbOptions& options);
int DbImport(const Common& common, const DbOptions& options);
int DbBackup(const Common& common, const DbOptions& options);
int DbMerge(const Common& common, const DbOptions& options);
int DbDiff(const Common& common, const DbOptions& options);
int DbPrune(const Common& common, const DbOptions& options);
int DbRevalidate(const Common& common, const DbOptions& options);

// The name of the caller's account.
std::string UserName();

// Writes "tune: MESSAGE" to stderr, and returns the exit code of a failure.
int Fail(const absl::Status& status);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_COMMANDS_H_
