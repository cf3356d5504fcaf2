// What the command lines of both daemons have in common: the configuration
// file and the log.
#ifndef TILEFARM_BASE_DAEMON_DAEMON_FLAGS_H_
#define TILEFARM_BASE_DAEMON_DAEMON_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilefarm::daemon {

struct DaemonFlags {
  std::string config;
  bool check_config = false;
  std::string log_format = "text";
  std::string log_level = "info";
};

// `config_variable` names the file in the environment.
void AddDaemonFlags(CLI::App& app, const std::string& config_variable,
                    DaemonFlags& flags);

// The command line, the environment and the file, in this order; then the log
// is as they say. A value: exit with it, all is said.
std::optional<int> ParseDaemon(CLI::App& app, int argc, char** argv,
                               DaemonFlags& flags);

// One line for whoever starts the daemon: "PROGRAM: TEXT" on stderr, or of the
// log where that is JSON.
void Complain(std::string_view program, std::string_view text);

// The end of --check-config: every problem is said; 0 without one, 2 otherwise.
int ReportCheck(std::string_view program,
                const std::vector<std::string>& problems);

}  // namespace tilefarm::daemon

#endif  // TILEFARM_BASE_DAEMON_DAEMON_FLAGS_H_
