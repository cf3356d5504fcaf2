#include "server/api/query.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace tilefarm::api {

absl::StatusOr<std::string> Unescape(std::string_view text, bool plus) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size() || !absl::ascii_isxdigit(text[i + 1]) ||
          !absl::ascii_isxdigit(text[i + 2])) {
        return absl::InvalidArgumentError("the address has a damaged %");
      }
      c = absl::HexStringToBytes(std::string(text.substr(i + 1, 2)))[0];
      i += 2;
    } else if (c == '+' && plus) {
      c = ' ';
    }
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      return absl::InvalidArgumentError("the address has a control character");
    }
    out.push_back(c);
  }
  return out;
}

absl::StatusOr<Query> Query::Parse(std::string_view text) {
  Query query;
  const absl::string_view view(text.data(), text.size());
  for (const absl::string_view part :
       absl::StrSplit(view, '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    TF_ASSIGN_OR_RETURN(const std::string name, Unescape(pair.first, true));
    TF_ASSIGN_OR_RETURN(std::string value, Unescape(pair.second, true));
    if (!query.values_.emplace(name, std::move(value)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the parameter ", name, " is given twice"));
    }
  }
  return query;
}

absl::Status Query::Allow(std::initializer_list<std::string_view> names) const {
  for (const auto& [name, value] : values_) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::vector<std::string> known(names.begin(), names.end());
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no parameter ", name, known.empty() ? "" : "; there are ",
        absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

std::string Query::Text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

absl::StatusOr<int64_t> Query::Number(const std::string& name,
                                      int64_t otherwise, int64_t least,
                                      int64_t most) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return otherwise;
  int64_t number = 0;
  if (!absl::SimpleAtoi(found->second, &number) || number < least ||
      number > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the parameter ", name, " is a number from ", least, " to ", most));
  }
  return number;
}

}  // namespace tilefarm::api
