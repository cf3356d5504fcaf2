// Reading JSON that somebody else wrote: from the wire, the database, a file.
//
//   const auto json = ParseJson(text);
//   if (json.is_discarded()) return absl::InvalidArgumentError("...");
//
// nlohmann's own functions follow the nesting of a value by recursion where
// they copy, compare or print it, so a deeply nested text ends the process by a
// stack overflow, long after it was parsed. Such a text is refused here.
#ifndef TILEFARM_BASE_JSON_H_
#define TILEFARM_BASE_JSON_H_

#include <nlohmann/json.hpp>
#include <string_view>

namespace tilefarm {

// Ours nest a handful of levels.
inline constexpr int kMostJsonDepth = 32;

// Whether arrays and objects are nested in each other more than `most` deep.
// For any text, whether it is JSON or not.
bool NestsDeeper(std::string_view text, int most = kMostJsonDepth);

// A discarded value where the text is not JSON or nests deeper than
// kMostJsonDepth; throws nothing.
template <typename Json = nlohmann::json>
Json ParseJson(std::string_view text) {
  if (NestsDeeper(text)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace tilefarm

#endif  // TILEFARM_BASE_JSON_H_
