// Programs and data for tests: the printed TVM set, and calls of functions on
// named arrays.
#ifndef TILEFARM_TESTS_SUPPORT_PROGRAMS_H_
#define TILEFARM_TESTS_SUPPORT_PROGRAMS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tilefarm::testing {

// The folder of the printed programs, or the one $TILEFARM_PRINTED_SET names
// (more of the same kind: tests/gpu/sample_tvm.py); empty if this
// checkout has none.
std::string PrintedSetFolder();

// The files of a folder of that set with the given ending, sorted; ".trace.py"
// files only if requested.
std::vector<std::string> PrintedFiles(const std::string& folder,
                                      const std::string& ending);

absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_PROGRAMS_H_
