// Runs one program in every possible way and compares the results: interpreter,
// oracle, compiled without a schedule, compiled with the default schedule, and
// any number of traces, each interpreted and compiled.
#ifndef TILEFARM_TESTS_PROPERTY_DIFFERENTIAL_H_
#define TILEFARM_TESTS_PROPERTY_DIFFERENTIAL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/interpreter.h"
#include "compiler/ir/stmt.h"
#include "compiler/target/target.h"
#include "tests/support/host_oracle.h"

namespace tilefarm::property {

using Bytes = std::vector<std::byte>;

// Contents for the parameters: integers of magnitude 3 or less in every dtype.
std::vector<Bytes> SmallInputs(const ir::PrimFunc& program, uint64_t seed);

// The same, but some floats are infinite or NaN.
std::vector<Bytes> SpecialInputs(const ir::PrimFunc& program, uint64_t seed);

// Runs the interpreter in place with these options and a bound of its steps.
absl::Status Interpret(const ir::PrimFunc& program, std::vector<Bytes>& buffers,
                       ir::InterpretOptions options = {});

// Empty if `got` equals `want`: integers bit for bit; floats exactly if `exact`
// is set and they are small enough, else within a tolerance for the order of a
// short sum and the dtype, or within twice the oracle's bound of the element,
// if `bounds` are given: large numbers that cancel leave their rounding.
std::string Difference(
    const ir::PrimFunc& program, const std::vector<Bytes>& want,
    const std::vector<Bytes>& got, bool exact,
    const std::vector<std::vector<double>>* bounds = nullptr);

// The expected result of every run of a program.
struct Expected {
  std::vector<Bytes> interpreted;
  // No float was rounded: other orders of sums give the same.
  bool exact = false;
  testing::OracleResult oracle;
  // On SpecialInputs, what is computed as written must equal in NaN and
  // infinity. Empty where these depend on the order of a reduction, which is
  // left open.
  std::vector<Bytes> special;
};

// Empty if `got` agrees with the interpreter by Difference, and with the oracle
// within the bound of every element. `spread` is what the trace's algorithms
// add to the bounds (testing::DifferenceFromOracle); if it is not 0, floats
// agree with the interpreter only up to rounding even if nothing was rounded.
std::string DifferenceFromExpected(const ir::PrimFunc& program,
                                   const Expected& want,
                                   const std::vector<Bytes>& got,
                                   double spread = 0);

// A variant of a program, compiled or rejected by the compiler.
struct Variant {
  std::string name;         // "as-is", "default", "trace 0"
  ir::PrimFuncPtr program;  // as scheduled
  std::string trace;
  // As ir::FloatRule::kAsWritten.
  bool keeps_floats = false;
};

// Compiles the variants to one library, as functions "f0", "f1" and so on.
absl::StatusOr<driver::Artifact> CompileAll(
    const std::vector<Variant>& variants, const target::Target& target);

enum class Verdict : uint8_t {
  kAgree,
  // Not judged: the program reads uninitialised memory, or overflows so that
  // the order of operations decides between infinity and NaN.
  kUndefined,
  kRefused,  // the compiler rejects every variant of the program
  kDiffer,
};

struct CaseReport {
  Verdict verdict = Verdict::kAgree;
  // For kRefused and kDiffer: the variant, and the reason.
  std::string variant;
  std::string what;
  std::string trace;
};

// A program and traces that were accepted for it.
struct Case {
  std::string text;
  bool exact = true;
  std::vector<std::string> traces;
  uint64_t input_seed = 0;
  std::string gpu_target;  // gpu_differential.h
};

// Sets what the interpreter computes. A report if the case is refused or
// undefined.
std::optional<CaseReport> InterpretExpected(const Case& c,
                                            const ir::PrimFunc& program,
                                            Expected& want);

// Then sets what the oracle computes. A report if the two differ.
std::optional<CaseReport> AddOracle(const Case& c,
                                    const ir::PrimFuncPtr& program,
                                    Expected& want);

// The rounding error relative to neighbouring elements of the algorithms that
// the trace uses: the `spread` of DifferenceFromExpected.
double SpreadOfTrace(const std::string& trace);

// Replays the traces (rejected ones are skipped) and compares all variants.
// Prints nothing and does not throw, but the compiler may end the process, so
// call it in a child process.
CaseReport CheckCase(const Case& c);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_DIFFERENTIAL_H_
