// What a command-line parser knows, as plain data: for completions and manual
// pages, which therefore never differ from what the program accepts.
#ifndef TILEFARM_BASE_COMMAND_LINE_COMMAND_FACTS_H_
#define TILEFARM_BASE_COMMAND_LINE_COMMAND_FACTS_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace tilefarm {

struct OptionFacts {
  // "-o", "--output"; of a positional argument its name alone.
  std::vector<std::string> names;
  std::string description;
  bool is_positional = false;
  bool takes_value = false;
  bool is_required = false;
  bool is_repeated = false;          // may be given several times
  std::vector<std::string> choices;  // all values; empty: any
  std::string default_value;         // empty: none is shown
  std::string variable;              // of the environment; empty: none
};

struct CommandFacts {
  std::string name;       // "import"
  std::string full_name;  // "tune db import"
  std::string description;
  std::vector<OptionFacts> options;      // its own, in order, --help first
  std::vector<OptionFacts> positionals;  // in order
  std::vector<CommandFacts> commands;
  bool needs_command = false;
};

CommandFacts FactsOf(const CLI::App& app);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_COMMAND_LINE_COMMAND_FACTS_H_
