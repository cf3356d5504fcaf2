#include "base/daemon/config_file.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/near_name.h"
#include "base/status_macros.h"
#include "base/toml.h"

namespace tilefarm::daemon {
namespace {

bool IsRepeatable(const CLI::Option& option) {
  return option.get_items_expected_max() > 1;
}

bool IsFlag(const CLI::Option& option) {
  return option.get_expected_max() == 0;
}

// The key of an option; empty if it has none.
std::string KeyOf(const CLI::Option& option) {
  if (option.get_lnames().empty()) return "";
  const std::string& name = option.get_lnames().front();
  static const auto* const kNotInFiles =
      new std::set<std::string>{"check-config", "config", "help", "version"};
  if (kNotInFiles->contains(name)) return "";
  // English has no plural of these.
  const bool plural =
      IsRepeatable(option) && name != "health" && name != "retention";
  return absl::StrCat(absl::StrReplaceAll(name, {{"-", "_"}}),
                      plural ? "s" : "");
}

class Applier {
 public:
  Applier(const std::string& name, CLI::App& app) : name_(name), app_(app) {}

  absl::Status Apply(const toml::table& table) {
    for (const auto& [key, node] : table) {
      TF_RETURN_IF_ERROR(ApplyNode(std::string(key.str()), key, node));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Error(const toml::source_region& at,
                     const std::string& what) const {
    return TomlError(name_, at, what);
  }

  absl::Status ApplyNode(const std::string& key, const toml::key& at,
                         const toml::node& node) {
    CLI::Option* const option = Find(key);
    if (option == nullptr) return Error(at.source(), Unknown(key));
    if (IsRepeatable(*option)) return ApplyTable(key, *option, node);
    if (node.is_table() || node.is_array()) {
      return Error(node.source(), absl::StrCat(key, " takes one value"));
    }
    if (IsFlag(*option) != node.is_boolean()) {
      return Error(
          node.source(),
          absl::StrCat(key, IsFlag(*option) ? " is true or false"
                                            : " is neither true nor false"));
    }
    TF_ASSIGN_OR_RETURN(std::string text, Text(key, node));
    // Check this even if a flag or the environment takes precedence.
    const CLI::results_t given = option->results();
    TF_RETURN_IF_ERROR(Give(*option, {std::move(text)}, key, node.source()));
    if (given.empty()) return absl::OkStatus();
    return Give(*option, given, key, node.source());
  }

  absl::Status ApplyTable(const std::string& key, CLI::Option& option,
                          const toml::node& node) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) {
      return Error(node.source(),
                   absl::StrCat(key, " is a table: [", key, "]"));
    }
    const CLI::results_t given = option.results();
    CLI::results_t all;
    for (const auto& [entry, value] : *table) {
      const std::string name = absl::StrCat(key, ".", std::string(entry.str()));
      TF_ASSIGN_OR_RETURN(const std::string text, Text(name, value));
      const std::string pair =
          absl::StrCat(std::string(entry.str()), "=", text);
      // Add one value at a time, so that an error names the right line.
      TF_RETURN_IF_ERROR(Give(option, {pair}, name, entry.source()));
      all.push_back(pair);
    }
    // The last value of a key takes precedence.
    all.insert(all.end(), given.begin(), given.end());
    if (all.empty()) return absl::OkStatus();
    return Give(option, std::move(all), key, node.source());
  }

  absl::StatusOr<std::string> Text(const std::string& key,
                                   const toml::node& node) const {
    if (const auto text = node.value_exact<std::string>()) return *text;
    if (const auto number = node.value_exact<int64_t>()) {
      return absl::StrCat(*number);
    }
    if (const auto number = node.value_exact<double>()) {
      return absl::StrCat(*number);
    }
    if (const auto truth = node.value_exact<bool>()) {
      return std::string(*truth ? "true" : "false");
    }
    return Error(node.source(),
                 absl::StrCat(key, " is a string, a number or a truth value"));
  }

  absl::Status Give(CLI::Option& option, CLI::results_t results,
                    const std::string& key, const toml::source_region& at) {
    try {
      option.clear();
      option.add_result(std::move(results));
      option.run_callback();
    } catch (const CLI::Error& error) {
      return Error(at, absl::StrCat(key, ": ", error.what()));
    }
    return absl::OkStatus();
  }

  CLI::Option* Find(const std::string& key) const {
    for (CLI::Option* option : app_.get_options()) {
      if (KeyOf(*option) == key) return option;
    }
    return nullptr;
  }

  std::string Unknown(const std::string& key) const {
    return absl::StrCat("there is no option '", key, "'",
                        SuggestName(key, ConfigKeys(app_)));
  }

  const std::string& name_;
  CLI::App& app_;
};

}  // namespace

absl::Status ApplyConfig(std::string_view text, const std::string& name,
                         CLI::App& app) {
  TF_ASSIGN_OR_RETURN(const toml::table table, ParseToml(text, name));
  return Applier(name, app).Apply(table);
}

absl::Status ApplyConfigFile(const std::string& path, CLI::App& app) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::NotFoundError(
        absl::StrCat(path, ": no such file, or it is empty or unreadable"));
  }
  return ApplyConfig(text.str(), path, app);
}

std::vector<std::string> ConfigKeys(const CLI::App& app) {
  std::vector<std::string> keys;
  for (const CLI::Option* option : app.get_options()) {
    std::string key = KeyOf(*option);
    if (!key.empty()) keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace tilefarm::daemon
