#include "base/daemon/daemon_flags.h"

#include <cstdio>

#include "base/command_line/parse.h"
#include "base/daemon/config_file.h"
#include "base/log.h"

namespace tilefarm::daemon {

void AddDaemonFlags(CLI::App& app, const std::string& config_variable,
                    DaemonFlags& flags) {
  app.add_option("--config", flags.config,
                 "TOML file with any of these options; flags and environment "
                 "win over it")
      ->envname(config_variable);
  app.add_flag("--check-config", flags.check_config,
               "Check options and the files they name, start nothing: 0 or 2");
  app.add_option("--log-format", flags.log_format,
                 "text, or json: one object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->envname("TILEFARM_LOG_FORMAT")
      ->capture_default_str();
  app.add_option("--log-level", flags.log_level, "The least that is logged")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->envname("TILEFARM_LOG")
      ->capture_default_str();
}

std::optional<int> ParseDaemon(CLI::App& app, int argc, char** argv,
                               DaemonFlags& flags) {
  if (const auto code = ParseCommandLine(app, argc, argv)) return code;
  absl::Status applied;
  if (!flags.config.empty()) applied = ApplyConfigFile(flags.config, app);
  SetLogFormat(flags.log_format == "json" ? LogFormat::kJson
                                          : LogFormat::kText);
  SetMinLogLevel(*ParseLogLevel(flags.log_level));
  if (applied.ok()) return std::nullopt;
  Complain(app.get_name(), std::string(applied.message()));
  return 2;
}

void Complain(std::string_view program, std::string_view text) {
  if (GetLogFormat() == LogFormat::kJson) {
    Log(LogLevel::kError, program, text);
    return;
  }
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(program.size()),
               program.data(), static_cast<int>(text.size()), text.data());
}

int ReportCheck(std::string_view program,
                const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) Complain(program, problem);
  if (!problems.empty()) return 2;
  std::printf("the configuration is sound\n");
  return 0;
}

}  // namespace tilefarm::daemon
