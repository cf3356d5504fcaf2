// Commutative, associative reductions with a known identity.
#ifndef TILEFARM_COMPILER_SCHEDULE_REDUCER_H_
#define TILEFARM_COMPILER_SCHEDULE_REDUCER_H_

#include <optional>

#include "compiler/arith/tuple_reducer.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::schedule {

// accumulator = accumulator OP value.
struct Reducer {
  ir::BinaryOp op = ir::BinaryOp::kAdd;
  ir::Expr value;  // of one instance, in terms of the block's variables

  ir::Expr Combine(ir::Expr accumulator, ir::Expr other) const;
};

// The reducer of a block whose body is one such store and whose init stores the
// identity to the same element; nullopt for other blocks. For min and max of
// floats, the largest (lowest) finite value also counts as an identity, besides
// infinity: a maximum that starts from the lowest finite value gives that value
// for nothing but -inf, however the reduction is split.
std::optional<Reducer> MatchReducer(const ir::BlockNode& block);

// The same of a block that may update several elements at once, such as a
// maximum and its index; its init need not be the identity of what is chosen:
// that may be combined several times.
std::optional<arith::TupleReducer> MatchTuple(const ir::BlockNode& block);

// The store of the block's init to the element that `store` updates; null:
// there is none.
const ir::StoreNode* InitOf(const ir::StoreNode& store,
                            const ir::BlockNode& block);

// Whether instances of the block may update an element in any order: every
// store of the body is `element = element OP value` with a commutative OP, or
// subtracts a value, and neither values nor conditions read what the block
// writes; or the body is such an update of several elements at once.
bool UpdatesCommute(const ir::BlockNode& block);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_REDUCER_H_
