// Exit codes of `tune`.
#ifndef TILEFARM_SERVER_CLI_EXIT_CODES_H_
#define TILEFARM_SERVER_CLI_EXIT_CODES_H_

namespace tilefarm::cli {

inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;        // reported on stderr
inline constexpr int kBadUsage = 2;       // wrong command line
inline constexpr int kNothingFound = 3;   // nothing matches the query
inline constexpr int kInterrupted = 130;  // Ctrl-C, as shells count

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_EXIT_CODES_H_
