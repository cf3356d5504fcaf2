#include "base/command_line/completion.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace tilefarm {
namespace {

using Visit =
    std::function<void(const CommandFacts&, const std::vector<OptionFacts>&)>;

// Calls `visit` for the command and those below it, with the options that it
// takes: its own, then those of the commands around it, which CLI11 passes on.
void ForEachCommand(const CommandFacts& command, std::vector<OptionFacts> outer,
                    const Visit& visit) {
  std::vector<OptionFacts> options = command.options;
  for (OptionFacts& option : outer) {
    if (option.names != std::vector<std::string>{"-h", "--help"}) {
      options.push_back(std::move(option));
    }
  }
  visit(command, options);
  for (const CommandFacts& inner : command.commands) {
    ForEachCommand(inner, options, visit);
  }
}

std::string FirstSentence(const std::string& text) {
  const size_t end = text.find_first_of(";.");
  return end == std::string::npos ? text : text.substr(0, end);
}

// A part of a name of a shell function.
std::string Identifier(const std::string& text) {
  return absl::StrReplaceAll(text, {{"-", "_"}, {" ", "_"}});
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::vector<std::string> NamesOf(const std::vector<CommandFacts>& commands) {
  std::vector<std::string> names;
  for (const CommandFacts& command : commands) names.push_back(command.name);
  return names;
}

// The values of its positional arguments, where they have a list; empty: files.
std::string ArgumentChoices(const CommandFacts& command) {
  std::vector<std::string> choices;
  for (const OptionFacts& one : command.positionals) {
    choices.insert(choices.end(), one.choices.begin(), one.choices.end());
  }
  return absl::StrJoin(choices, " ");
}

// --- zsh ---

// "'--model[What ranks candidates]:value:(xgboost random)'", one for each name.
std::vector<std::string> ZshSpecs(const OptionFacts& option) {
  // Brackets end the description, and colons separate the parts.
  const std::string what = absl::StrReplaceAll(
      FirstSentence(option.description), {{"[", "("}, {"]", ")"}, {":", " "}});
  std::string value;
  if (option.takes_value) {
    value =
        option.choices.empty()
            ? ":value:_files"
            : absl::StrCat(":value:(", absl::StrJoin(option.choices, " "), ")");
  }
  std::vector<std::string> specs;
  for (const std::string& name : option.names) {
    specs.push_back(Quoted(absl::StrCat(option.is_repeated ? "*" : "", name,
                                        "[", what, "]", value)));
  }
  return specs;
}

std::string ZshFunction(const CommandFacts& command,
                        const std::vector<OptionFacts>& options) {
  std::string text = absl::StrCat("_", Identifier(command.full_name), "() {\n");
  std::vector<std::string> specs;
  for (const OptionFacts& option : options) {
    for (std::string& spec : ZshSpecs(option)) specs.push_back(std::move(spec));
  }
  if (command.commands.empty()) {
    const std::string choices = ArgumentChoices(command);
    specs.push_back(choices.empty()
                        ? "'*:file:_files'"
                        : absl::StrCat("'*:argument:(", choices, ")'"));
    absl::StrAppend(&text, "  _arguments \\\n    ",
                    absl::StrJoin(specs, " \\\n    "), "\n}\n");
    return text;
  }
  specs.push_back("'1:command:->command'");
  specs.push_back("'*::argument:->argument'");
  absl::StrAppend(&text, "  local context state line\n  typeset -A opt_args\n",
                  "  _arguments -C \\\n    ", absl::StrJoin(specs, " \\\n    "),
                  "\n  case $state in\n    command)\n      local -a commands\n",
                  "      commands=(\n");
  for (const CommandFacts& inner : command.commands) {
    absl::StrAppend(
        &text, "        ",
        Quoted(absl::StrCat(inner.name, ":", FirstSentence(inner.description))),
        "\n");
  }
  absl::StrAppend(&text,
                  "      )\n      _describe command commands\n      ;;\n",
                  "    argument)\n      case $line[1] in\n");
  for (const CommandFacts& inner : command.commands) {
    absl::StrAppend(&text, "        ", inner.name, ") _",
                    Identifier(inner.full_name), " ;;\n");
  }
  absl::StrAppend(&text, "      esac\n      ;;\n  esac\n}\n");
  return text;
}

// --- fish ---

// True where the commands of `command` have been typed, and none below it.
std::string FishCondition(const CommandFacts& command, bool in_commands) {
  std::vector<std::string> words;
  for (const std::string& word :
       std::vector<std::string>(absl::StrSplit(command.full_name, ' '))) {
    words.push_back(word);
  }
  words.erase(words.begin());
  std::vector<std::string> parts;
  for (const std::string& word : words) {
    parts.push_back(absl::StrCat("__fish_seen_subcommand_from ", word));
  }
  if (!in_commands && !command.commands.empty()) {
    parts.push_back(
        absl::StrCat("not __fish_seen_subcommand_from ",
                     absl::StrJoin(NamesOf(command.commands), " ")));
  }
  return absl::StrJoin(parts, "; and ");
}

}  // namespace

std::string BashCompletion(const CommandFacts& program) {
  const std::string function =
      absl::StrCat("_", Identifier(program.name), "_complete");
  std::string commands, options, values;
  ForEachCommand(
      program, {},
      [&](const CommandFacts& command, const std::vector<OptionFacts>& all) {
        if (!command.commands.empty()) {
          absl::StrAppend(
              &commands, "      ", Quoted(command.full_name), ") inner='",
              absl::StrJoin(NamesOf(command.commands), " "), "' ;;\n");
        }
        std::vector<std::string> names;
        for (const OptionFacts& option : all) {
          names.insert(names.end(), option.names.begin(), option.names.end());
          if (!option.takes_value) continue;
          std::vector<std::string> patterns;
          for (const std::string& name : option.names) {
            patterns.push_back(
                Quoted(absl::StrCat(command.full_name, " ", name)));
          }
          absl::StrAppend(
              &values, "    ", absl::StrJoin(patterns, "|"),
              ") values=", Quoted(absl::StrJoin(option.choices, " ")),
              " takes=1 ;;\n");
        }
        absl::StrAppend(&options, "    ", Quoted(command.full_name),
                        ") options='", absl::StrJoin(names, " "),
                        "' arguments=", Quoted(ArgumentChoices(command)),
                        " ;;\n");
      });
  return absl::StrCat(
      "# bash completion for ", program.name, "; made by: ", program.name,
      " --print-completion bash\n", function,
      "() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} "
      "before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local path='",
      program.name,
      "' inner='' options='' arguments='' values='' takes='' i\n"
      "  COMPREPLY=()\n"
      "  # Which command the words before name.\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    inner=''\n"
      "    case $path in\n",
      commands.empty() ? "      *) ;;\n" : commands,
      "    esac\n"
      "    [[ \" $inner \" == *\" ${COMP_WORDS[i]} \"* && -n ${COMP_WORDS[i]} "
      "]] "
      "&&\n"
      "      path+=\" ${COMP_WORDS[i]}\"\n"
      "  done\n"
      "  inner=''\n"
      "  case $path in\n",
      absl::StrReplaceAll(commands.empty() ? "      *) ;;\n" : commands,
                          {{"      '", "    '"}}),
      "  esac\n"
      "  case $path in\n",
      options,
      "  esac\n"
      "  case \"$path $before\" in\n",
      values.empty() ? "    *) ;;\n" : values,
      "  esac\n"
      "  if [[ -n $values ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
      "  elif [[ -n $takes ]]; then\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  elif [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  elif [[ -n $inner ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$inner\" -- \"$word\"))\n"
      "  elif [[ -n $arguments ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$arguments\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F ",
      function, " ", program.name, "\n");
}

std::string ZshCompletion(const CommandFacts& program) {
  std::string text =
      absl::StrCat("#compdef ", program.name, "\n# Made by: ", program.name,
                   " --print-completion zsh\n\n");
  ForEachCommand(program, {},
                 [&](const CommandFacts& command,
                     const std::vector<OptionFacts>& options) {
                   absl::StrAppend(&text, ZshFunction(command, options), "\n");
                 });
  // Sourced, it registers itself; in a folder of fpath it is called.
  absl::StrAppend(&text, "if [ \"$funcstack[1]\" = \"_",
                  Identifier(program.name), "\" ]; then\n  _",
                  Identifier(program.name), " \"$@\"\nelse\n  compdef _",
                  Identifier(program.name), " ", program.name, "\nfi\n");
  return text;
}

std::string FishCompletion(const CommandFacts& program) {
  std::string text =
      absl::StrCat("# fish completion for ", program.name,
                   "; made by: ", program.name, " --print-completion fish\n");
  ForEachCommand(
      program, {},
      [&](const CommandFacts& command, const std::vector<OptionFacts>&) {
        const std::string here = FishCondition(command, /*in_commands=*/false);
        for (const CommandFacts& inner : command.commands) {
          absl::StrAppend(&text, "complete -c ", program.name, " -f -n ",
                          Quoted(here), " -a ", inner.name, " -d ",
                          Quoted(FirstSentence(inner.description)), "\n");
        }
        const std::string choices = ArgumentChoices(command);
        if (!choices.empty()) {
          absl::StrAppend(&text, "complete -c ", program.name, " -x -n ",
                          Quoted(here), " -a ", Quoted(choices), "\n");
        }
        // Of the commands below it, too.
        const std::string within = FishCondition(command, /*in_commands=*/true);
        for (const OptionFacts& option : command.options) {
          std::string line = absl::StrCat("complete -c ", program.name);
          if (!within.empty()) absl::StrAppend(&line, " -n ", Quoted(within));
          for (const std::string& name : option.names) {
            absl::StrAppend(&line, name.rfind("--", 0) == 0
                                       ? absl::StrCat(" -l ", name.substr(2))
                                       : absl::StrCat(" -s ", name.substr(1)));
          }
          if (option.takes_value) {
            absl::StrAppend(&line, option.choices.empty() ? " -r" : " -x");
          }
          if (!option.choices.empty()) {
            absl::StrAppend(&line, " -a ",
                            Quoted(absl::StrJoin(option.choices, " ")));
          }
          absl::StrAppend(&text, line, " -d ",
                          Quoted(FirstSentence(option.description)), "\n");
        }
      });
  return text;
}

}  // namespace tilefarm
