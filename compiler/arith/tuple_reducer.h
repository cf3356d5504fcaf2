// Reductions of several values at once, such as a sum and a sum of squares, or
// a maximum and its index.
#ifndef TILEFARM_COMPILER_ARITH_TUPLE_REDUCER_H_
#define TILEFARM_COMPILER_ARITH_TUPLE_REDUCER_H_

#include <optional>
#include <vector>

#include "compiler/arith/index_math.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::arith {

// The update of elements B_k by the terms of an instance,
//
//   with T.let(v0, f0(B0[i], B1[i], x0, x1)), T.let(v1, f1(...)):
//     B0[i] = v0
//     B1[i] = v1
//
// where f is associative and commutative. Vectors are by position, k.
struct TupleReducer {
  std::vector<const ir::StoreNode*> stores;
  std::vector<ir::Expr> terms;  // x
  // Combining them with values gives these, whatever the values are.
  std::vector<ir::Expr> identities;
  // The operation, where a value is combined for itself; nullopt: it is chosen,
  // and combining it once more with the same changes nothing.
  std::vector<std::optional<ir::BinaryOp>> ops;

  // f(left, right).
  std::vector<ir::Expr> Combine(const std::vector<ir::Expr>& left,
                                const std::vector<ir::Expr>& right) const;

  // f in terms of `left` and `right`.
  std::vector<ir::Var> left, right;
  std::vector<ir::Expr> combined;
};

// The reducer of a statement: lets around stores, or a single store. Each value
// is a sum, product, minimum or maximum of its own element and a term, or they
// choose together: by comparisons of the values at one position, conditions and
// selections of one of both tuples' values. Of these it is found out by cases
// whether the order of instances matters; NaN are left out of account, as in
// minimum and maximum. nullopt for other statements. `math` knows the variables
// in the statement.
std::optional<TupleReducer> MatchTupleReducer(const ir::Stmt& update,
                                              IndexMath& math);

// targets[k][indices[k]] = values[k], where all values are found before any of
// them is stored.
ir::Stmt AssignTogether(const std::vector<ir::Buffer>& targets,
                        const std::vector<std::vector<ir::Expr>>& indices,
                        const std::vector<ir::Expr>& values);

}  // namespace tilefarm::arith

#endif  // TILEFARM_COMPILER_ARITH_TUPLE_REDUCER_H_
