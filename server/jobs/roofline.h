// The least time that a program can need on a target: what is faster was not
// measured.
#ifndef TILEFARM_SERVER_JOBS_ROOFLINE_H_
#define TILEFARM_SERVER_JOBS_ROOFLINE_H_

#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::jobs {

// In seconds, from the device class alone: its cores, the width of its vectors,
// its matrix units, and a clock that no processor reaches. A program may be
// computed with fewer operations than it states (Winograd, padding that is
// skipped), so the bound is far below what any schedule reaches; it is there
// for times that are wrong by orders of magnitude. 0: nothing is known of the
// target.
double LeastSeconds(const ir::PrimFunc& program, const target::Target& target);

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_ROOFLINE_H_
