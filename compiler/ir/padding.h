// Reductions that read padding.
//
//   S[i] = S[i] + if_then_else(inside, A[i + r - 1], 0) * W[r]
//
// adds nothing where `inside` is false: with the annotation kSkipPadding
// (annotations.h) on its block it may be left out there,
//
//   if inside: S[i] = S[i] + A[i + r - 1] * W[r]
//
// So may what a maximum or a minimum takes from outside where that is the
// identity.
#ifndef TILEFARM_COMPILER_IR_PADDING_H_
#define TILEFARM_COMPILER_IR_PADDING_H_

#include <optional>

#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

struct PaddedTerm {
  Expr inside;  // where the term may be other than the identity
  Expr value;   // what the store writes there, without the choice
};

// What a store combines with its own element: in a sum, one product with
// factors that are 0 outside of a condition; in a maximum or minimum, a value
// that is the identity there. nullopt for every other store.
std::optional<PaddedTerm> MatchPaddedTerm(const StoreNode& store);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_PADDING_H_
