// What a schedule may change in the floats that a program computes
// (docs/decisions/compiler/float-results.md).
#ifndef TILEFARM_COMPILER_IR_FLOAT_RULE_H_
#define TILEFARM_COMPILER_IR_FLOAT_RULE_H_

#include <cstdint>

namespace tilefarm::ir {

// Each permits what those before it do.
enum class FloatRule : uint8_t {
  // Nothing but the order in which a reduction combines its terms.
  kAsWritten,
  // As kMayDiffer, but without Winograd's algorithm, whose error is the largest
  // and grows with the size of its tile.
  kNoWinograd,
  // Also rounding, where an algorithm computes the same in other steps
  // (winograd, online_softmax, online_product), and terms `0 * y` of a sum that
  // are left out
  // where y may be infinite or not a number (skip_zeros, kSkipPadding). For
  // candidates that are verified, or where the user permits it.
  kMayDiffer,
};

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_FLOAT_RULE_H_
