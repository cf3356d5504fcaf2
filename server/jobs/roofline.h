// A lower bound on the time of a program on a target.
#ifndef TILEFARM_SERVER_JOBS_ROOFLINE_H_
#define TILEFARM_SERVER_JOBS_ROOFLINE_H_

#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"

namespace tilefarm::jobs {

// In seconds, from the device class alone: its cores, the width of its vectors,
// its matrix units, and a clock that no processor reaches. A schedule may need
// fewer operations than the program states (Winograd, skipped padding), so the
// bound is far below what any schedule reaches; it detects times that are wrong
// by orders of magnitude. 0: nothing is known about the target.
double LeastSeconds(const ir::PrimFunc& program, const target::Target& target);

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_ROOFLINE_H_
