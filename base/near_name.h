// Names that people mistype.
#ifndef TILEFARM_BASE_NEAR_NAME_H_
#define TILEFARM_BASE_NEAR_NAME_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tilefarm {

// The fewest insertions, deletions, substitutions and swaps of neighbours that
// make one of the other, no character being edited twice (optimal string
// alignment).
size_t EditDistance(std::string_view a, std::string_view b);

// The first of the nearest names; empty if none is near: more than a third of
// the text's characters, and more than one, would have to be edited.
std::string NearName(std::string_view text, std::span<const std::string> names);

// "; the nearest is 'NAME'", or empty.
std::string SuggestName(std::string_view text,
                        std::span<const std::string> names);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_NEAR_NAME_H_
