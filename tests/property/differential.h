// One program, every way it can be run, and whether they agree: interpreter,
// oracle, compiled as written, compiled with the default schedule, and any
// number of traces, each interpreted and compiled.
#ifndef TILEFARM_TESTS_PROPERTY_DIFFERENTIAL_H_
#define TILEFARM_TESTS_PROPERTY_DIFFERENTIAL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/stmt.h"
#include "tests/support/host_oracle.h"

namespace tilefarm::property {

using Bytes = std::vector<std::byte>;

// Contents for the parameters: integers of magnitude 3 or less in every dtype.
std::vector<Bytes> SmallInputs(const ir::PrimFunc& program, uint64_t seed);

// Runs the interpreter in place.
absl::Status Interpret(const ir::PrimFunc& program, std::vector<Bytes>& buffers,
                       int workspace_fill = -1);

// Empty where `got` is what `want` says: integers bit for bit; floats equal
// where `exact` and they are small enough to be, else within what the order of
// a short sum and the dtype allow.
std::string Difference(const ir::PrimFunc& program,
                       const std::vector<Bytes>& want,
                       const std::vector<Bytes>& got, bool exact);

// What every run of a program must compute.
struct Expected {
  std::vector<Bytes> interpreted;
  testing::OracleResult oracle;
};

// Empty where `got` agrees with the interpreter by Difference and with the
// oracle within the bound of every element. `spread` is what the trace's
// algorithms add to the bounds (testing::DifferenceFromOracle); where it is not
// 0, the interpreter's floats are met by rounding alone, so `exact` is ignored.
std::string DifferenceFromExpected(const ir::PrimFunc& program,
                                   const Expected& want,
                                   const std::vector<Bytes>& got, bool exact,
                                   double spread = 0);

// A variant of a program that was compiled, or could not be.
struct Variant {
  std::string name;         // "as-is", "default", "trace 0"
  ir::PrimFuncPtr program;  // as scheduled
  std::string trace;
};

enum class Verdict : uint8_t {
  kAgree,
  kUndefined,  // the program reads what nothing wrote: nothing is said of it
  kRefused,    // the compiler refuses the program, in every way alike
  kDiffer,
};

struct CaseReport {
  Verdict verdict = Verdict::kAgree;
  // Of kRefused and kDiffer: which variant, and what is wrong.
  std::string variant;
  std::string what;
  std::string trace;
};

// A program and traces that were accepted on it.
struct Case {
  std::string text;
  bool exact = true;
  std::vector<std::string> traces;
  uint64_t input_seed = 0;
};

// Replays the traces (one that is refused is skipped) and compares everything.
// Prints what stands in `text` nowhere; never throws, but the compiler may end
// the process: call it in a child.
CaseReport CheckCase(const Case& c);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_DIFFERENTIAL_H_
