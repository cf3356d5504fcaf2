// How an index changes with the loops around it: exact for affine indices, a
// close estimate for the floor divisions and remainders that come from fused
// and split loops.
#ifndef TILEFARM_COST_MODEL_AFFINE_H_
#define TILEFARM_COST_MODEL_AFFINE_H_

#include <unordered_map>

#include "absl/container/inlined_vector.h"
#include "compiler/ir/expr.h"

namespace tilefarm::cost_model {

// The contribution of one loop to an index.
struct LoopTerm {
  int loop = 0;       // its depth, 0 is the outermost
  double stride = 0;  // change of the index from one iteration to the next
  double span = 0;    // change over the whole loop, >= 0
  // The contribution is a multiple of this in every iteration. For example, it
  // shows that `i % 112 // 14 * 32` is always the start of a panel of 32,
  // although its mean stride is a fraction.
  double step = 1;
};

struct IndexForm {
  absl::InlinedVector<LoopTerm, 6> terms;  // one per loop, in any order
  double constant = 0;
  // Depends on data (a gather); strides and spans are not meaningful.
  bool irregular = false;

  void Clear();
  void Add(const LoopTerm& term);
  // Adds factor * other.
  void Add(const IndexForm& other, double factor);
  void Scale(double factor);
  // i // divisor: divides contributions that are multiples of it; others are
  // dropped if they stay within one multiple, such as the inner part of a split
  // loop.
  void FloorDivide(double divisor);
  // i % modulus: drops multiples of it; the rest stays within the modulus.
  void Modulo(double modulus);
};

using FormMap = std::unordered_map<const ir::VarNode*, IndexForm>;

// The form of `index`; variables that are not in `forms` count as constants.
IndexForm FormOf(const ir::Expr& index, const FormMap& forms);

}  // namespace tilefarm::cost_model

#endif  // TILEFARM_COST_MODEL_AFFINE_H_
