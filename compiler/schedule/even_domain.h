// Indices that are one to one on a domain are also one to one on its subsets.
#ifndef TILEFARM_COMPILER_SCHEDULE_EVEN_DOMAIN_H_
#define TILEFARM_COMPILER_SCHEDULE_EVEN_DOMAIN_H_

#include <optional>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"

namespace tilefarm::schedule {

// The smallest domain that contains `domain` and whose extents the divisors c
// of `i // c` and `i % c` in `indices` divide: for i // 48, i < 100 becomes
// i < 144. nullopt if nothing would change or an extent would more than double.
std::optional<arith::VarRanges> EvenDomain(const std::vector<ir::Expr>& indices,
                                           const arith::VarRanges& domain);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_EVEN_DOMAIN_H_
