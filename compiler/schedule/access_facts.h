// A cache of answers about pairs of accesses, valid while what they depend on
// is unchanged: the regions, the bindings and predicates of their blocks, and
// the loops around them. A block that is rebuilt because something else of it
// changes, such as a buffer that it reads, keeps these.
#ifndef TILEFARM_COMPILER_SCHEDULE_ACCESS_FACTS_H_
#define TILEFARM_COMPILER_SCHEDULE_ACCESS_FACTS_H_

#include <array>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::schedule {

// A value type; copies share the answers. Not thread-safe.
class AccessFacts {
 public:
  // A region of a block, and the loops around the block, outermost first.
  struct Access {
    const ir::BlockNode* block;
    const ir::BufferRegion* region;
    std::vector<ir::ForPtr> loops;
  };

  // The known answer about the accesses and the loop with this variable; else
  // that of `find_out`, which is then remembered.
  template <typename FindOut>
  bool Ask(const ir::VarNode* loop, const Access& a, const Access& b,
           const FindOut& find_out) {
    const Key key{loop, KeyOf(a), KeyOf(b)};
    const auto found = answers_.find(key);
    if (found != answers_.end() && found->second->a.IsOf(a) &&
        found->second->b.IsOf(b)) {
      return found->second->answer;
    }
    const bool answer = find_out();
    Remember(key, a, b, answer);
    return answer;
  }

 private:
  // Keeps what it compares alive, so that no other node gets its address.
  struct Known {
    std::vector<ir::IterVar> iters;
    ir::Expr predicate;
    std::vector<ir::Range> region;
    std::vector<int64_t> shape;
    std::vector<ir::ForPtr> loops;

    bool IsOf(const Access& access) const;
  };
  struct Answer {
    Known a, b;
    bool answer;
  };
  using Key = std::array<const void*, 3>;

  // What an access is found by.
  static const void* KeyOf(const Access& access);
  static Known KnownOf(const Access& access);
  void Remember(const Key& key, const Access& a, const Access& b, bool answer);

  absl::flat_hash_map<Key, std::shared_ptr<const Answer>> answers_;
};

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_ACCESS_FACTS_H_
