// Limits of one measurement, derived from the function's size.
#ifndef TILEFARM_SERVER_JOBS_MEASURE_OPTIONS_H_
#define TILEFARM_SERVER_JOBS_MEASURE_OPTIONS_H_

#include "compiler/ir/stmt.h"
#include "server/farm/work.h"

namespace tilefarm::jobs {

// Adds memory for several copies of the function's buffers to the default, and
// time for functions with many operations or bytes.
farm::MeasureOptions MeasureOptionsFor(const ir::PrimFunc& function);

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_MEASURE_OPTIONS_H_
