#include "base/command_line/man_page.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace tilefarm {
namespace {

// Text as roff takes it: a line must not start like a request.
std::string Text(const std::string& text) {
  std::string escaped =
      absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"\n", " "}});
  if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) {
    escaped.insert(0, "\\&");
  }
  return escaped;
}

std::string Bold(const std::string& text) {
  return absl::StrCat("\\fB", Text(text), "\\fR");
}
std::string Italic(const std::string& text) {
  return absl::StrCat("\\fI", Text(text), "\\fR");
}

// "\fB\-\-model\fR \fIxgboost\fR|\fIrandom\fR".
std::string Usage(const OptionFacts& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back(option.is_positional ? Italic(name) : Bold(name));
  }
  std::string text = absl::StrJoin(names, ", ");
  if (option.is_positional || !option.takes_value) return text;
  if (option.choices.empty()) return absl::StrCat(text, " ", Italic("value"));
  return absl::StrCat(
      text, " ",
      absl::StrJoin(option.choices, "|",
                    [](std::string* out, const std::string& choice) {
                      absl::StrAppend(out, Bold(choice));
                    }));
}

void AppendOptions(const std::vector<OptionFacts>& options, std::string& page) {
  for (const OptionFacts& option : options) {
    absl::StrAppend(&page, ".TP\n", Usage(option), "\n",
                    Text(option.description));
    if (!option.default_value.empty()) {
      absl::StrAppend(&page, " (default: ", Text(option.default_value), ")");
    }
    if (!option.variable.empty()) {
      absl::StrAppend(&page, " (environment: ", Bold(option.variable), ")");
    }
    absl::StrAppend(&page, "\n");
  }
}

void AppendCommands(const std::vector<CommandFacts>& commands,
                    std::string& page) {
  for (const CommandFacts& command : commands) {
    std::string usage = Bold(command.full_name);
    for (const OptionFacts& positional : command.positionals) {
      absl::StrAppend(&usage, " ", positional.is_required ? "" : "[",
                      Italic(positional.names[0]),
                      positional.is_repeated ? " ..." : "",
                      positional.is_required ? "" : "]");
    }
    if (!command.options.empty()) absl::StrAppend(&usage, " [options]");
    absl::StrAppend(&page, ".SS ", usage, "\n", Text(command.description),
                    "\n");
    AppendOptions(command.positionals, page);
    // Every command has --help.
    std::vector<OptionFacts> own;
    for (const OptionFacts& option : command.options) {
      if (option.names.back() != "--help") own.push_back(option);
    }
    AppendOptions(own, page);
    AppendCommands(command.commands, page);
  }
}

// Descriptions of options, by their variables.
void FindVariables(const CommandFacts& command,
                   std::map<std::string, std::string>& found) {
  for (const OptionFacts& option : command.options) {
    if (!option.variable.empty()) {
      found.emplace(option.variable, option.names.back());
    }
  }
  for (const CommandFacts& inner : command.commands) {
    FindVariables(inner, found);
  }
}

}  // namespace

std::string ManPage(const CommandFacts& program, const std::string& release,
                    const std::vector<std::string>& also) {
  std::string page = absl::StrCat(
      ".TH ", absl::AsciiStrToUpper(program.name), " 1 \"\" \"Tilefarm ",
      release, "\"\n.SH NAME\n", Text(program.name), " \\- ",
      Text(program.description), "\n.SH SYNOPSIS\n", Bold(program.name));
  for (const OptionFacts& positional : program.positionals) {
    absl::StrAppend(&page, " ", positional.is_required ? "" : "[",
                    Italic(positional.names[0]),
                    positional.is_required ? "" : "]");
  }
  absl::StrAppend(&page, program.needs_command ? " \\fIcommand\\fR" : "",
                  " [options]\n");
  if (!program.positionals.empty()) {
    absl::StrAppend(&page, ".SH ARGUMENTS\n");
    AppendOptions(program.positionals, page);
  }
  absl::StrAppend(&page, ".SH OPTIONS\n");
  AppendOptions(program.options, page);
  if (!program.commands.empty()) {
    absl::StrAppend(&page, ".SH COMMANDS\n");
    AppendCommands(program.commands, page);
  }
  std::map<std::string, std::string> variables;
  FindVariables(program, variables);
  if (!variables.empty()) {
    absl::StrAppend(&page, ".SH ENVIRONMENT\n");
    for (const auto& [variable, option] : variables) {
      absl::StrAppend(&page, ".TP\n", Bold(variable), "\nthe value of ",
                      Bold(option), ", where that is not given\n");
    }
  }
  if (!also.empty()) {
    absl::StrAppend(&page, ".SH SEE ALSO\n",
                    absl::StrJoin(also, ", ",
                                  [](std::string* out, const std::string& one) {
                                    absl::StrAppend(out, Bold(one), "(1)");
                                  }),
                    "\n");
  }
  return page;
}

}  // namespace tilefarm
