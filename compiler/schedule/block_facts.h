// Answers about blocks, kept while they must still be true.
//
// A check of legality asks the same of every block of a scope, before each of
// many moves, and most blocks have not changed since: their nodes are the same,
// and so are the loops around them but for their bodies. What a question looks
// at is listed as places; where they are the same again, so is the answer.
#ifndef TILEFARM_COMPILER_SCHEDULE_BLOCK_FACTS_H_
#define TILEFARM_COMPILER_SCHEDULE_BLOCK_FACTS_H_

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::schedule {

// A value; keeps the nodes that its answers are about. Not thread-safe.
class BlockFacts {
 public:
  // A block and the loops around it that count, outermost first: their
  // variables and ranges, not what else they are.
  struct Place {
    ir::BlockPtr block;
    std::vector<ir::ForPtr> loops;
  };
  // The first place is the block in question.
  using Places = std::vector<Place>;

  // nullopt: not known, or some place has changed.
  std::optional<bool> Find(const Places& places) const;
  // Takes the place of an earlier answer about the block.
  void Remember(Places places, bool answer);

 private:
  struct Answer {
    Places places;
    bool answer = false;
  };
  absl::flat_hash_map<const ir::BlockNode*, Answer> answers_;
};

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_BLOCK_FACTS_H_
