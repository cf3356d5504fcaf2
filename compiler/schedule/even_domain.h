// Indices that are one to one on a domain are so on every part of it.
#ifndef TILEFARM_COMPILER_SCHEDULE_EVEN_DOMAIN_H_
#define TILEFARM_COMPILER_SCHEDULE_EVEN_DOMAIN_H_

#include <optional>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/expr.h"

namespace tilefarm::schedule {

// The smallest domain around `domain` on which `i // c` and `i % c` of its
// variables come out even in `indices`: i < 100 with i // 48 becomes i < 144.
// nullopt where nothing would change, or where an extent would more than
// double.
std::optional<arith::VarRanges> EvenDomain(const std::vector<ir::Expr>& indices,
                                           const arith::VarRanges& domain);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_EVEN_DOMAIN_H_
