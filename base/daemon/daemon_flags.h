// Shared command-line options of both daemons: the configuration file and the
// log.
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

// Reads the command line, the environment and the file, in this order, and sets
// up the log. If this returns a value, the program must exit with it; all
// messages have been printed.
std::optional<int> ParseDaemon(CLI::App& app, int argc, char** argv,
                               DaemonFlags& flags);

// Prints one line for the person who starts the daemon: "PROGRAM: TEXT" on
// stderr, or a line of the log if the log is JSON.
void Complain(std::string_view program, std::string_view text);

// Ends --check-config: prints every problem; returns 0 if there are none, else
// 2.
int ReportCheck(std::string_view program,
                const std::vector<std::string>& problems);

}  // namespace tilefarm::daemon

#endif  // TILEFARM_BASE_DAEMON_DAEMON_FLAGS_H_
