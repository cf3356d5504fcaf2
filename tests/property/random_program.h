// Small random programs: operators and chains of them, random shapes, floats
// and integers.
#ifndef TILEFARM_TESTS_PROPERTY_RANDOM_PROGRAM_H_
#define TILEFARM_TESTS_PROPERTY_RANDOM_PROGRAM_H_

#include "base/rng.h"
#include "compiler/ir/stmt.h"

namespace tilefarm::property {

// A legal program named "main"; its last parameter is the output. It has at
// most some twenty thousand block executions, so that interpreting it is fast.
ir::PrimFuncPtr RandomProgram(Rng& rng);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_RANDOM_PROGRAM_H_
