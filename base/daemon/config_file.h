// A daemon's options from a TOML file. The keys are the options: --tls-cert is
// `tls_cert`, a flag takes true or false, and an option that may be given any
// number of times as KEY=VALUE (--timeout) is a table of its plural
// ([timeouts]; --health and --retention are [health] and [retention]). Every
// option has a key, and a key without an option is an error.
//
//   CLI::App app; app.add_option("--db", db)->envname("TUNE_SERVER_DB"); ...
//   app.parse(argc, argv);
//   ApplyConfigFile("/etc/tilefarm/tune-server.toml", app);
//
// Flags take precedence over the environment, the environment over the file,
// the file over defaults; for tables this holds for each key separately.
#ifndef TILEFARM_BASE_DAEMON_CONFIG_FILE_H_
#define TILEFARM_BASE_DAEMON_CONFIG_FILE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tilefarm::daemon {

// Sets every option that neither flags nor environment have set in the parsed
// `app` to the value of the file. NotFound: no such file. InvalidArgument with
// FILE:LINE:COLUMN: invalid TOML, a key without an option (the message has the
// nearest one), or a value that its option does not accept.
absl::Status ApplyConfigFile(const std::string& path, CLI::App& app);
// The same for a text; errors name the file `name`.
absl::Status ApplyConfig(std::string_view text, const std::string& name,
                         CLI::App& app);

// The keys that `app` knows, in the order of its options. Not among them:
// --help, --version, --config and --check-config.
std::vector<std::string> ConfigKeys(const CLI::App& app);

}  // namespace tilefarm::daemon

#endif  // TILEFARM_BASE_DAEMON_CONFIG_FILE_H_
