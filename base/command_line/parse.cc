#include "base/command_line/parse.h"

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/command_line/command_facts.h"
#include "base/command_line/completion.h"
#include "base/command_line/man_page.h"
#include "base/near_name.h"

namespace tilefarm {
namespace {

std::vector<std::string> SubcommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  return names;
}

// Of the app and of those that it is a subcommand of.
std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return names;
}

// "tune db import".
std::string FullName(const CLI::App& app) {
  if (app.get_parent() == nullptr) return app.get_name();
  return absl::StrCat(FullName(*app.get_parent()), " ", app.get_name());
}

// The subcommand that the arguments reached.
CLI::App* Innermost(CLI::App& app) {
  CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

// What is wrong with an argument that nothing takes.
std::string Unknown(const CLI::App& app, std::string_view argument) {
  if (argument.starts_with("-")) {
    const std::string_view name = argument.substr(0, argument.find('='));
    return absl::StrCat("there is no option '", std::string(name), "'",
                        SuggestName(name, OptionNames(app)));
  }
  const std::vector<std::string> subcommands = SubcommandNames(app);
  if (subcommands.empty()) {
    return absl::StrCat("'", std::string(argument),
                        "' is one argument too many");
  }
  return absl::StrCat("there is no command '", std::string(argument), "'",
                      SuggestName(argument, subcommands));
}

void PrintError(const CLI::App& app, const std::string& message) {
  const std::string name = FullName(app);
  std::fprintf(stderr, "%s: %s\n(%s --help says what there is)\n", name.c_str(),
               message.c_str(), name.c_str());
}

// `help`, and names of subcommands. Null if one of them is no subcommand.
const CLI::App* Helped(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* at = &app;
  for (int i = 2; i < argc; ++i) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub :
         at->get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->check_name(argv[i])) next = sub;
    }
    if (next == nullptr) {
      PrintError(*at, Unknown(*at, argv[i]));
      return nullptr;
    }
    at = next;
  }
  return at;
}

constexpr const char* kPrograms[] = {"rpc-worker", "tune", "tune-opt",
                                     "tune-server", "tunec"};

std::string ManOf(CLI::App& app) {
  std::vector<std::string> also;
  for (const char* program : kPrograms) {
    if (app.get_name() != program) also.push_back(program);
  }
  // "tune 0.1.0", and what its version depends on.
  const std::vector<std::string> version =
      absl::StrSplit(app.version(), absl::ByAnyChar(" ,\n"));
  return ManPage(FactsOf(app), version.size() > 1 ? version[1] : "", also);
}

}  // namespace

std::optional<std::string> Completion(const CLI::App& app,
                                      std::string_view shell) {
  if (shell == "bash") return BashCompletion(FactsOf(app));
  if (shell == "zsh") return ZshCompletion(FactsOf(app));
  if (shell == "fish") return FishCompletion(FactsOf(app));
  return std::nullopt;
}

std::optional<int> ParseCommandLine(CLI::App& app, int argc,
                                    const char* const* argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--print-completion" && argc == 3) {
    const auto script = Completion(app, argv[2]);
    if (!script) {
      PrintError(app, absl::StrCat("--print-completion: there is bash, zsh and "
                                   "fish, not '",
                                   argv[2], "'"));
      return kUsageError;
    }
    std::fputs(script->c_str(), stdout);
    return 0;
  }
  if (first == "--print-man" && argc == 2) {
    std::fputs(ManOf(app).c_str(), stdout);
    return 0;
  }
  const bool has_subcommands = !SubcommandNames(app).empty();
  if (has_subcommands && argc > 1 && std::string_view(argv[1]) == "help") {
    const CLI::App* helped = Helped(app, argc, argv);
    if (helped == nullptr) return kUsageError;
    std::fputs(helped->help(FullName(*helped)).c_str(), stdout);
    return 0;
  }
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return 0;
    }
    const CLI::App* reached = Innermost(app);
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    PrintError(*reached, unknown.empty() ? std::string(error.what())
                                         : Unknown(*reached, unknown.front()));
    return kUsageError;
  }
}

}  // namespace tilefarm
