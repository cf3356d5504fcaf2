// Sums that read padding.
//
//   S[i] = S[i] + if_then_else(inside, A[i + r - 1], 0) * W[r]
//
// adds nothing where `inside` is false: with the annotation kSkipPadding
// (annotations.h) on its block it may be left out there,
//
//   if inside: S[i] = S[i] + A[i + r - 1] * W[r]
#ifndef TILEFARM_COMPILER_IR_PADDING_H_
#define TILEFARM_COMPILER_IR_PADDING_H_

#include <optional>

#include "compiler/ir/stmt.h"

namespace tilefarm::ir {

struct PaddedTerm {
  Expr inside;  // where the term may be other than 0
  Expr value;   // what the store adds up there, without the choice
};

// What a store adds to its own element, if it is one product with factors that
// are 0 outside of a condition; nullopt for every other store.
std::optional<PaddedTerm> MatchPaddedTerm(const StoreNode& store);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_PADDING_H_
