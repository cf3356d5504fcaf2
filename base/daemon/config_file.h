// A daemon's options from a TOML file. The keys are the options: --tls-cert is
// `tls_cert`, a flag takes true or false, and an option that may be given any
// number of times as KEY=VALUE (--timeout) is a table of its plural
// ([timeouts]; --health is [health]). So no option can be forgotten, and no key
// means nothing.
//
//   CLI::App app; app.add_option("--db", db)->envname("TUNE_SERVER_DB"); ...
//   app.parse(argc, argv);
//   ApplyConfigFile("/etc/tilefarm/tune-server.toml", app);
//
// Flags win over the environment, the environment over the file, the file over
// defaults; of a table each key by itself.
#ifndef TILEFARM_BASE_DAEMON_CONFIG_FILE_H_
#define TILEFARM_BASE_DAEMON_CONFIG_FILE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace tilefarm::daemon {

// Gives every option that the parsed `app` did not get what the file says.
// NotFound: no such file. InvalidArgument with FILE:LINE:COLUMN: no TOML, a key
// that is no option (the message has the nearest one), or a value that its
// option does not take.
absl::Status ApplyConfigFile(const std::string& path, CLI::App& app);
// The same of a text; `name` stands for the file in errors.
absl::Status ApplyConfig(std::string_view text, const std::string& name,
                         CLI::App& app);

// The keys that `app` knows, in the order of its options. Not among them:
// --help, --version, --config and --check-config.
std::vector<std::string> ConfigKeys(const CLI::App& app);

}  // namespace tilefarm::daemon

#endif  // TILEFARM_BASE_DAEMON_CONFIG_FILE_H_
