// Options of `tune regress`, and its commands.
#ifndef TILEFARM_SERVER_CLI_REGRESS_OPTIONS_H_
#define TILEFARM_SERVER_CLI_REGRESS_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/cli/commands.h"

namespace tilefarm::cli {

// Files for reports; "-" is standard output, empty: none.
struct ReportFiles {
  std::string markdown, junit, smaller_is_better, csv;
  std::string gbench, gbench_baseline;  // of each side
  std::string link;                     // that they name
};

struct WebhookOptions {
  std::string url;  // empty: none
  std::string secret_file;
  std::string format = "slack";  // or "report"
  bool always = false;           // also where the gate passes
};

struct RegressOptions {
  std::string suite;   // file
  std::string series;  // empty: the suite's name
  std::string commit;
  std::string branch;             // that the commit belongs to
  std::string baseline;           // branch that it is compared with
  std::string threshold;          // "3%"; empty: the suite's
  std::vector<std::string> only;  // names of benchmarks; empty: all
  int most_clusters = 48;
  std::string budget;  // of each benchmark; empty: the suite's
  bool no_attribution = false;
  // Compilers; empty: this program, and none.
  std::string tunec, baseline_tunec;
  // What {dir} stands for in commands.
  std::string directory, baseline_directory;
  ReportFiles reports;
  WebhookOptions webhook;

  // compare: the other commit. history: filters.
  std::string other_commit;
  std::string benchmark, device_class;
  int64_t limit = 0;
  std::string reason;  // ack

  // bisect
  std::string good, bad;
  std::string repository = ".";
  std::vector<std::string> build_command;
};

// Measures a suite and adds the points to the history of the branch.
int RegressRun(const Common& common, const RegressOptions& options);
// The same against another branch; the points go to the commit's own branch,
// where one is named. Passes only if something was compared.
int RegressGate(const Common& common, const RegressOptions& options);
// Compares two commits whose artifacts are stored.
int RegressCompare(const Common& common, const RegressOptions& options);
int RegressHistory(const Common& common, const RegressOptions& options);
int RegressAck(const Common& common, const RegressOptions& options);
int RegressBisect(const Common& common, const RegressOptions& options);

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_OPTIONS_H_
