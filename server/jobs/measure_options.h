// Limits of one measurement, from the size of what is measured.
#ifndef TILEFARM_SERVER_JOBS_MEASURE_OPTIONS_H_
#define TILEFARM_SERVER_JOBS_MEASURE_OPTIONS_H_

#include "compiler/ir/stmt.h"
#include "server/farm/work.h"

namespace tilefarm::jobs {

// Memory for several copies of the function's buffers on top of the usual;
// more time for functions that compute or move much.
farm::MeasureOptions MeasureOptionsFor(const ir::PrimFunc& function);

}  // namespace tilefarm::jobs

#endif  // TILEFARM_SERVER_JOBS_MEASURE_OPTIONS_H_
