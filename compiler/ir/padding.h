// Reductions that read padding.
//
//   S[i] = S[i] + if_then_else(inside, A[i + r - 1], 0) * W[r]
//
// adds nothing where `inside` is false: with the annotation kSkipPadding
// (annotations.h) on its block it may be left out there,
//
//   if inside: S[i] = S[i] + A[i + r - 1] * W[r]
//
// The same applies to maxima and minima if the value outside is the identity.
#ifndef TILEFARM_COMPILER_IR_PADDING_H_
#define TILEFARM_COMPILER_IR_PADDING_H_

#include <optional>

#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

struct PaddedTerm {
  Expr inside;  // where the term may differ from the identity
  Expr value;   // the term there, without the choice
};

// The term that a store combines with its own element: in a sum, one product
// with factors that are 0 outside of a condition; in a maximum or minimum, a
// value that is the identity there. nullopt for other stores.
std::optional<PaddedTerm> MatchPaddedTerm(const StoreNode& store);

// Whether a term of a sum is 0 wherever a condition makes a factor of it 0: the
// other factors are integers, or floats that are finite whatever the program
// reads. `0 * y` is not 0 for all other y.
bool VanishesWithItsFactors(const Expr& term);

// Whether the block computes the same with kSkipPadding as without it, but for
// the order of reductions and the sign of a zero: of sums as above; a maximum
// or minimum where it starts from nothing less than the padding.
bool SkipsExactly(const BlockNode& block);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_PADDING_H_
