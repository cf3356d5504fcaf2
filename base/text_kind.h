// Texts that differ in their numbers alone, such as programs of one kind with
// different extents.
#ifndef TILEFARM_BASE_TEXT_KIND_H_
#define TILEFARM_BASE_TEXT_KIND_H_

#include <string>
#include <string_view>
#include <vector>

namespace tilefarm {

// The text with # for each run of digits that is not part of a name.
std::string WithoutNumbers(std::string_view text);

// Those runs of digits, in order. Texts that are equal without numbers have as
// many.
std::vector<double> NumbersOf(std::string_view text);

}  // namespace tilefarm

#endif  // TILEFARM_BASE_TEXT_KIND_H_
