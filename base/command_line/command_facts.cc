#include "base/command_line/command_facts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tilefarm {
namespace {

// CLI11 writes the values of IsMember into the type: "TEXT:{xgboost,random}".
std::vector<std::string> ChoicesOf(const std::string& type) {
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos ||
      close < open + 2) {
    return {};
  }
  return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
}

OptionFacts OptionFactsOf(const CLI::Option& option) {
  OptionFacts facts;
  facts.is_positional = option.get_positional() &&
                        option.get_lnames().empty() &&
                        option.get_snames().empty();
  if (facts.is_positional) {
    facts.names = {option.get_name(/*positional=*/true)};
  }
  for (const std::string& name : option.get_snames()) {
    facts.names.push_back(absl::StrCat("-", name));
  }
  for (const std::string& name : option.get_lnames()) {
    facts.names.push_back(absl::StrCat("--", name));
  }
  facts.description = option.get_description();
  facts.takes_value = option.get_items_expected_max() > 0;
  facts.is_required = option.get_required();
  facts.is_repeated = option.get_items_expected_max() > 1;
  facts.choices = ChoicesOf(option.get_type_name());
  facts.default_value = option.get_default_str();
  facts.variable = option.get_envname();
  return facts;
}

CommandFacts Facts(const CLI::App& app, const std::string& outer) {
  CommandFacts facts;
  facts.name = app.get_name();
  facts.full_name =
      outer.empty() ? facts.name : absl::StrCat(outer, " ", facts.name);
  facts.description = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    OptionFacts one = OptionFactsOf(*option);
    (one.is_positional ? facts.positionals : facts.options)
        .push_back(std::move(one));
  }
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App*) { return true; })) {
    facts.commands.push_back(Facts(*command, facts.full_name));
  }
  facts.needs_command = app.get_require_subcommand_min() > 0;
  return facts;
}

}  // namespace

CommandFacts FactsOf(const CLI::App& app) { return Facts(app, ""); }

}  // namespace tilefarm
