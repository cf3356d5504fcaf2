#include "base/near_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilefarm {

size_t EditDistance(std::string_view a, std::string_view b) {
  // Distances of a prefix of `a` to each prefix of `b`; of the two rows before,
  // too.
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1),
      row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] =
          std::min({above[j + 1] + 1, row[j] + 1, above[j] + (a[i] != b[j])});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
      }
    }
  }
  return row.back();
}

std::string NearName(std::string_view text,
                     std::span<const std::string> names) {
  size_t least = std::max<size_t>(1, text.size() / 3) + 1;
  std::string nearest;
  for (const std::string& name : names) {
    // So much is edited at least; names from outside may be very long.
    const size_t longer = std::max(text.size(), name.size());
    if (longer - std::min(text.size(), name.size()) >= least) continue;
    const size_t distance = EditDistance(text, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string SuggestName(std::string_view text,
                        std::span<const std::string> names) {
  const std::string nearest = NearName(text, names);
  if (nearest.empty()) return "";
  return absl::StrCat("; the nearest is '", nearest, "'");
}

}  // namespace tilefarm
