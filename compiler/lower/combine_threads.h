// The code by which the threads of a loop combine what they update together:
// for lower_thread_reductions.cc.
#ifndef TILEFARM_COMPILER_LOWER_COMBINE_THREADS_H_
#define TILEFARM_COMPILER_LOWER_COMBINE_THREADS_H_

#include <optional>
#include <vector>

#include "compiler/arith/tuple_reducer.h"
#include "compiler/ir/stmt.h"
#include "compiler/lower/element_update.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// The only store of the nest; null if there are several.
const ir::StoreNode* OnlyStore(const ir::Stmt& stmt);

// The update of one element, or of several at once, that is all that a nest
// stores.
struct ThreadUpdate {
  std::vector<const ir::StoreNode*> stores;
  std::vector<ir::Expr> identities;
  std::optional<ElementUpdate> single;
  std::optional<arith::TupleReducer> tuple;  // if not `single`

  std::vector<ir::Expr> Combine(const std::vector<ir::Expr>& left,
                                const std::vector<ir::Expr>& right) const;
};

// nullopt: the nest stores anything else. `math` knows the variables around it.
std::optional<ThreadUpdate> FindThreadUpdate(const ir::Stmt& nest,
                                             IndexMath& math);

// The loop of threads, in which each makes partial results of its own that they
// then combine. Every thread has the results in the end: elements in local
// memory get them in each. `around`: the loops of threads around, with the loop
// itself; `shuffles`: whether the target has them.
ir::Stmt CombineThreads(const ir::ForNode& loop, const ThreadUpdate& update,
                        const std::vector<const ir::ForNode*>& around,
                        bool shuffles);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_COMBINE_THREADS_H_
