// The command line of `tune regress`.
#ifndef TILEFARM_SERVER_CLI_REGRESS_FLAGS_H_
#define TILEFARM_SERVER_CLI_REGRESS_FLAGS_H_

#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "server/cli/regress_options.h"

namespace tilefarm::cli {

class RegressCommands {
 public:
  // `regress` is the command; it and the options outlive this.
  RegressCommands(CLI::App& regress, RegressOptions& options);
  // The exit code of the command that was given.
  int Run(const Common& common, const RegressOptions& options) const;

 private:
  using Command = int (*)(const Common&, const RegressOptions&);

  CLI::App* Add(CLI::App& regress, const char* name, const char* what,
                Command run);

  std::vector<std::pair<CLI::App*, Command>> commands_;
};

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_REGRESS_FLAGS_H_
