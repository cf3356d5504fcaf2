// The part of a long list that a person asked for.
#ifndef TILEFARM_SERVER_CLI_LISTING_H_
#define TILEFARM_SERVER_CLI_LISTING_H_

#include <algorithm>
#include <cstdint>
#include <string>

namespace tilefarm::cli {

struct Paging {
  std::string sort;      // a column; empty: the list's own order
  bool reverse = false;  // of that order
  int64_t limit = 0;     // so many entries; 0: all
  int64_t offset = 0;    // after so many
  // The list is in order of time, and what is asked for is its end: `limit` are
  // the latest, `offset` skips later ones.
  bool from_end = false;
};

// Sorts the entries, where paging.sort is set, by `less`, equal ones staying in
// order; then keeps those of the page. `entries` is a std::vector or a repeated
// field of a message.
template <typename Entries, typename Less>
void KeepPage(const Paging& paging, Entries& entries, const Less& less) {
  if (!paging.sort.empty()) {
    std::stable_sort(entries.begin(), entries.end(), less);
  }
  if (paging.reverse) std::reverse(entries.begin(), entries.end());
  const auto size = static_cast<int64_t>(entries.size());
  const int64_t skipped = std::min(std::max<int64_t>(paging.offset, 0), size);
  const int64_t kept = paging.limit > 0 ? std::min(paging.limit, size - skipped)
                                        : size - skipped;
  // A sorted or reversed list has no end that is the latest.
  const bool from_end =
      paging.from_end && paging.sort.empty() && !paging.reverse;
  const int64_t first = from_end ? size - skipped - kept : skipped;
  entries.erase(entries.begin() + first + kept, entries.end());
  entries.erase(entries.begin(), entries.begin() + first);
}

}  // namespace tilefarm::cli

#endif  // TILEFARM_SERVER_CLI_LISTING_H_
