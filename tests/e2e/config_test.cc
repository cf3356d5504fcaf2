// The daemons' configuration: every option has its key in the files of
// deploy/config, which are valid and contain the defaults; --check-config.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/farm/health.h"
#include "server/farm/timeouts.h"
#include "tests/e2e/secure_farm_fixture.h"
#include "worker/worker.h"

namespace tilefarm::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The example with all commented-out lines activated.
std::string WithoutComments(const std::string& program) {
  std::istringstream in(ReadFile(
      absl::StrCat(TILEFARM_SOURCE_DIR "/deploy/config/", program, ".toml")));
  std::string text;
  for (std::string line; std::getline(in, line);) {
    const bool prose = line == "#" || line.rfind("# ", 0) == 0;
    if (!prose && !line.empty()) absl::StrAppend(&text, line.substr(1), "\n");
  }
  return text;
}

struct Example {
  std::map<std::string, std::string> values;  // as written
  std::map<std::string, std::map<std::string, std::string>> tables;
};

Example Read(const std::string& text) {
  Example example;
  std::istringstream in(text);
  std::string table;
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_match(line, match, std::regex(R"(\[(\w+)\])"))) {
      table = match[1];
      example.tables[table];
    } else if (std::regex_match(line, match,
                                std::regex(R"re((\w+) = "?([^"]*)"?)re"))) {
      auto& into = table.empty() ? example.values : example.tables[table];
      EXPECT_TRUE(into.emplace(match[1], match[2]).second) << line;
    } else {
      ADD_FAILURE() << line;
    }
  }
  return example;
}

struct HelpOption {
  bool repeatable = false;
  std::string default_value;
};

std::map<std::string, HelpOption> OptionsOf(const std::string& program) {
  std::map<std::string, HelpOption> options;
  std::istringstream in(RunCommand({Bin(program), "--help"}).output);
  const std::regex pattern(R"(^  (?:-\w,)?--([a-z-]+)( TEXT| INT)?.*)");
  const std::regex value(R"(^[^=]*--[a-z-]+ [A-Z]+[^=\s]*=(\S+).*)");
  std::smatch match;
  for (std::string line; std::getline(in, line);) {
    if (!std::regex_match(line, match, pattern)) continue;
    HelpOption& option = options[match[1]];
    option.repeatable = line.find(" ...") != std::string::npos;
    if (std::regex_match(line, match, value)) option.default_value = match[1];
  }
  for (const char* name : {"help", "version", "config", "check-config"}) {
    EXPECT_EQ(options.erase(name), 1u) << program << " --" << name;
  }
  // A demo is started by hand.
  for (const char* name : {"demo", "demo-speed"}) {
    EXPECT_EQ(options.erase(name), program == "tune-server" ? 1u : 0u) << name;
  }
  return options;
}

class ConfigTest : public SecureFarmFixture {
 protected:
  // Makes certificates for both sides, with the names of the examples.
  void SetUp() override {
    ASSERT_EQ(MakeCerts({"--worker", "board1"}).exit_code, 0);
    dir_.Write("certs/board1.token", "tilefarm_" + std::string(64, 'a'));
    dir_.Write("certs/otlp-headers", "Authorization: Bearer token");
    for (const char* file : {"board1.token", "otlp-headers"}) {
      ASSERT_EQ(chmod(Cert(file).c_str(), 0600), 0);
    }
  }
  std::string Localised(const std::string& text) const {
    return absl::StrReplaceAll(text, {{"/etc/tilefarm", dir_.File("certs")},
                                      {"/var/lib/tilefarm", dir_.path()},
                                      {"ssh board1", "/bin/sh board1"}});
  }
  CommandResult Check(const std::string& program, const std::string& text) {
    return RunCommand({Bin(program), "--check-config", "--config",
                       dir_.Write("config.toml", text)});
  }

  // `defaults`: for the keys of each table.
  using Values = std::map<std::string, std::string>;
  void ExampleIsWhole(const std::string& program,
                      const std::map<std::string, Values>& defaults) {
    const std::string text = WithoutComments(program);
    const Example example = Read(text);
    std::set<std::string> keys, tables, options, repeatable;
    for (const auto& [key, value] : example.values) keys.insert(key);
    for (const auto& [key, table] : example.tables) tables.insert(key);
    for (const auto& [name, option] : OptionsOf(program)) {
      const std::string key = absl::StrReplaceAll(name, {{"-", "_"}});
      if (option.repeatable) {
        const bool plural = key != "health" && key != "retention";
        repeatable.insert(plural ? key + "s" : key);
        continue;
      }
      options.insert(key);
      if (!option.default_value.empty() && example.values.contains(key)) {
        EXPECT_EQ(example.values.at(key),
                  Localised(key == "db" ? "" : option.default_value))
            << program << " " << key;
      }
    }
    EXPECT_EQ(keys, options) << program;
    EXPECT_EQ(tables, repeatable) << program;
    for (const auto& [table, values] : defaults) {
      EXPECT_EQ(example.tables.at(table), values) << program << " " << table;
    }
    const CommandResult sound = Check(program, Localised(text));
    EXPECT_EQ(sound.exit_code, 0) << program << ": " << sound.errors;
    // The unmodified file is valid, too, but a server needs a database.
    const CommandResult commented = RunCommand(
        {Bin(program), "--check-config", "--config",
         absl::StrCat(TILEFARM_SOURCE_DIR "/deploy/config/", program, ".toml")},
        {"TUNE_SERVER_DB=" + db(), "XDG_STATE_HOME=" + dir_.path()});
    EXPECT_EQ(commented.exit_code, 0) << program << ": " << commented.errors;
  }
};

TEST_F(ConfigTest, TheExamplesHoldEveryOptionWithItsDefault) {
  farm::Timeouts server;
  farm::HealthRules health;
  ExampleIsWhole("tune-server",
                 {{"timeouts", farm::TimeoutSettings(server).Values()},
                  {"health", farm::HealthSettings(health).Values()}});
  worker::WorkerTimeouts worker;
  ExampleIsWhole("rpc-worker",
                 {{"timeouts", worker::TimeoutSettings(worker).Values()}});
}

TEST_F(ConfigTest, CheckConfigNamesEverythingThatIsWrong) {
  const std::string missing = dir_.File("missing.crt");
  CommandResult result =
      Check("tune-server", absl::StrCat("db = '", dir_.File("no/tune.db"),
                                        "'\nlisten = '0.0.0.0:7070'\n"
                                        "tls_client_ca = '",
                                        missing, "'\n"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("no/tune.db"));
  EXPECT_THAT(result.errors, HasSubstr("--tls-cert and --tls-key are missing"));
  EXPECT_THAT(result.errors, HasSubstr(missing));
  EXPECT_EQ(result.output, "");

  // A key that others can read, and one of another certificate.
  ASSERT_EQ(chmod(Cert("server.key").c_str(), 0644), 0);
  result = Check("tune-server", Localised(WithoutComments("tune-server")));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("server.key"));
  result = Check("rpc-worker",
                 absl::StrCat("server = 'board'\ntls_ca = '", Cert("ca.crt"),
                              "'\ncores = 'all'\ntarget = 'z80'\n"));
  EXPECT_EQ(result.exit_code, 2);
  for (const char* what : {"--server", "--cores", "--target"}) {
    EXPECT_THAT(result.errors, HasSubstr(what));
  }
  result = Check("rpc-worker",
                 absl::StrCat("tls_ca = '", Cert("ca.crt"), "'\ntls_cert = '",
                              Cert("worker-board1.crt"), "'\ntls_key = '",
                              Cert("ca.key"), "'\n"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("ca.key"));

  // A file that is not a database.
  dir_.Write("tune.db",
             "nothing of the kind, in many words: " + std::string(1000, '.'));
  result = Check("tune-server", absl::StrCat("db = '", db(), "'"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("tune.db"));
}

TEST_F(ConfigTest, AnUnknownKeyKeepsADaemonFromStarting) {
  for (const char* program : {"tune-server", "rpc-worker"}) {
    const CommandResult result = RunCommand(
        {Bin(program), "--config", dir_.Write("c.toml", "\ntls_crt = 'x'\n")},
        {}, absl::Seconds(30));
    EXPECT_EQ(result.exit_code, 2) << program;
    EXPECT_THAT(result.errors,
                HasSubstr("c.toml:2:1: there is no option 'tls_crt'; the "
                          "nearest is 'tls_cert'"))
        << program;
  }
}

TEST_F(ConfigTest, AServerRunsByItsFileAndLogsJson) {
  const std::string config = dir_.Write(
      "server.toml", absl::StrCat("db = '", db(),
                                  "'\nlisten = '127.0.0.1:0'\n"
                                  "log_format = 'json'\n"
                                  "[timeouts]\nlease_duration = '20s'\n"));
  server_ = Process::Spawn({Bin("tune-server"), "--config", config});
  const auto address = server_->WaitForOutput("listening on ");
  ASSERT_TRUE(address.has_value()) << server_->errors();
  address_ = *address;
  const auto worker = StartWorker("desk");
  ASSERT_TRUE(Says(*server_, "device desk connected"));
  server_->Kill(SIGTERM);
  EXPECT_EQ(server_->Wait(), 0);
  std::istringstream lines(server_->errors());
  bool about_the_device = false;
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line;
    for (const char* key : {"time", "level", "component", "message"}) {
      EXPECT_TRUE(json.contains(key)) << line;
    }
    about_the_device |= json.value("device", "") == "desk";
  }
  EXPECT_TRUE(about_the_device) << server_->errors();
}

}  // namespace
}  // namespace tilefarm::testing
