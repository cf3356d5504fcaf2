// Whether a record's schedule keeps floats as the program writes them.
#ifndef TILEFARM_COMPILER_DRIVER_KEPT_FLOATS_H_
#define TILEFARM_COMPILER_DRIVER_KEPT_FLOATS_H_

#include <string>

namespace tilefarm::driver {

// Whether the trace, applied to the program (both as text, a record's), is
// legal under ir::FloatRule::kAsWritten. False where it does not replay. Takes
// no longer than a search for words where the trace uses nothing that the rule
// may forbid; otherwise it replays the part that does.
bool KeepsFloats(const std::string& program, const std::string& trace);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_KEPT_FLOATS_H_
