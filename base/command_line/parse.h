// Parses the command line of a program: CLI11 with errors that say what was
// meant.
#ifndef TILEFARM_BASE_COMMAND_LINE_PARSE_H_
#define TILEFARM_BASE_COMMAND_LINE_PARSE_H_

#include <optional>
#include <string>
#include <string_view>

#include "CLI/CLI.hpp"

namespace tilefarm {

inline constexpr int kUsageError = 2;

// The script that completes the program's command line in "bash", "zsh" or
// "fish"; nullopt: another shell.
std::optional<std::string> Completion(const CLI::App& app,
                                      std::string_view shell);

// The exit code if the program is to end: 0 after help or a version, which is
// on stdout, kUsageError after an error, which is on stderr and names the
// nearest option or subcommand. `help [SUBCOMMAND...]` is understood where the
// program has subcommands; so are, in every program, `--print-completion SHELL`
// and `--print-man`, for installations. `app` has the program's name.
std::optional<int> ParseCommandLine(CLI::App& app, int argc,
                                    const char* const* argv);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_COMMAND_LINE_PARSE_H_
