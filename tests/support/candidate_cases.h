// Programs with inputs whose sums are exact in any order, and random candidates
// of their design spaces, for property tests of generated code.
#ifndef TILEFARM_TESTS_SUPPORT_CANDIDATE_CASES_H_
#define TILEFARM_TESTS_SUPPORT_CANDIDATE_CASES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rng.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/schedule.h"

namespace tilefarm::testing {

using Buffers = std::vector<std::vector<std::byte>>;

// Floats are whole numbers from -8 to 8 (float16: from -2 to 2); integers have
// any bits.
std::vector<std::byte> WholeNumbers(const ir::BufferNode& buffer, Rng& rng);

struct CandidateCase {
  ir::PrimFuncPtr function;
  Buffers inputs;    // of every parameter
  Buffers expected;  // results of the interpreter
};
// Makes a case from the text of one function.
absl::StatusOr<CandidateCase> MakeCandidateCase(const std::string& text,
                                                Rng& rng);

// Applies `count` random candidates of the function's space for the target and
// calls `check` with each legal one. Returns the number of legal ones, or the
// first error of `check`.
absl::StatusOr<int> ForEachCandidate(
    const ir::PrimFuncPtr& function, const std::string& target, int count,
    Rng& rng,
    const std::function<absl::Status(const schedule::Schedule&)>& check);

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_SUPPORT_CANDIDATE_CASES_H_
