// Parses JSON from other sources: the wire, the database, a file.
//
//   const auto json = ParseJson(text);
//   if (json.is_discarded()) return absl::InvalidArgumentError("...");
//
// nlohmann's functions that copy, compare or print a value are recursive, so a
// deeply nested text would end the process by a stack overflow, long after it
// was parsed. Such a text is rejected here.
#ifndef TILEFARM_BASE_JSON_H_
#define TILEFARM_BASE_JSON_H_

#include <nlohmann/json.hpp>
#include <string_view>

namespace tilefarm {

// The project's own JSON nests only a few levels.
inline constexpr int kMostJsonDepth = 32;

// Whether arrays and objects are nested more than `most` deep, in any text,
// whether it is JSON or not.
bool NestsDeeper(std::string_view text, int most = kMostJsonDepth);

// A discarded value if the text is not JSON or nests deeper than
// kMostJsonDepth; does not throw.
template <typename Json = nlohmann::json>
Json ParseJson(std::string_view text) {
  if (NestsDeeper(text)) return Json(nlohmann::detail::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace tilefarm

#endif  // TILEFARM_BASE_JSON_H_
