// A cache of answers about blocks, valid while their inputs are unchanged.
//
// A legality check asks the same question about every block of a scope, before
// each of many moves. Most blocks have not changed since: their nodes and the
// headers of the loops around them are the same. A question lists the places
// that it depends on; if all of them are unchanged, so is the answer.
#ifndef TILEFARM_COMPILER_SCHEDULE_BLOCK_FACTS_H_
#define TILEFARM_COMPILER_SCHEDULE_BLOCK_FACTS_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::schedule {

// A value type; keeps the nodes of its answers alive. Not thread-safe.
class BlockFacts {
 public:
  // A block and the surrounding loops that matter, outermost first. Of a loop,
  // only its variable and range are compared.
  struct Place {
    ir::BlockPtr block;
    std::vector<ir::ForPtr> loops;
  };
  // The first place is the block that the question is about.
  using Places = std::vector<Place>;

  // nullopt: no answer is known, or some place has changed. `detail` tells
  // several questions about one block apart: a node that the places keep alive.
  std::optional<bool> Find(const Places& places,
                           const void* detail = nullptr) const;
  // Replaces an earlier answer about the block and the detail.
  void Remember(Places places, bool answer, const void* detail = nullptr);
  // The known answer; else that of `find_out`, a callable of the places, which
  // is then remembered.
  template <typename FindOut>
  bool Ask(Places places, const FindOut& find_out,
           const void* detail = nullptr) {
    if (const std::optional<bool> known = Find(places, detail)) return *known;
    const bool answer = find_out(places);
    Remember(std::move(places), answer, detail);
    return answer;
  }

 private:
  struct Answer {
    Places places;
    bool answer = false;
  };
  absl::flat_hash_map<std::pair<const ir::BlockNode*, const void*>, Answer>
      answers_;
};

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_BLOCK_FACTS_H_
