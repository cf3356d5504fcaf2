// Shared by tests of block primitives: programs, schedules written as traces,
// and three checks of the result: the resulting program, equal results, and the
// reason of a refusal.
#ifndef TILEFARM_TESTS_SCHEDULE_BLOCK_TEST_SUPPORT_H_
#define TILEFARM_TESTS_SCHEDULE_BLOCK_TEST_SUPPORT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::testing {

// The codes of refusals: of illegal schedules, and of arguments that no
// schedule may have.
inline constexpr absl::StatusCode kIllegal =
    absl::StatusCode::kFailedPrecondition;
inline constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// `@T.prim_func def main(params)` with a body indented by four spaces.
std::string Program(std::string_view params, std::string_view body);

ir::IRModule ParseProgram(const std::string& text);

// Applies the lines of a trace ("b = sch.get_block(...)") to the program.
absl::StatusOr<schedule::Schedule> Apply(const ir::IRModule& module,
                                         std::string_view trace);

// Checks that the result of the trace is `expected` (up to names) and computes
// the same as the program, on seeded inputs, in the reference interpreter.
void ExpectBecomes(const std::string& program, std::string_view trace,
                   const std::string& expected);

// Only checks that it computes the same.
void ExpectSameResults(const std::string& program, std::string_view trace);

// Checks that the last primitive of the trace fails with this code and that the
// message contains each of `parts`.
void ExpectRefused(const std::string& program, std::string_view trace,
                   absl::StatusCode code,
                   const std::vector<std::string>& parts);

// C = A * B and D = max(C, 0), 16 by 16.
std::string MatmulRelu();
inline constexpr char kMatmulParams[] =
    "A: T.Buffer((16, 16), \"float32\"), B: T.Buffer((16, 16), \"float32\"), "
    "D: T.Buffer((16, 16), \"float32\")";
// B = 2 * A, C = B + 1, 32 by 32.
std::string TwoElementwise();

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SCHEDULE_BLOCK_TEST_SUPPORT_H_
