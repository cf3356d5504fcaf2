// Conditions that hold for any text given to the parser.
#ifndef TILEFARM_TESTS_FUZZ_CHECK_PROGRAM_H_
#define TILEFARM_TESTS_FUZZ_CHECK_PROGRAM_H_

#include <string>
#include <string_view>

namespace tilefarm::fuzz {

struct Outcome {
  bool accepted = false;
  std::string violation;  // empty: all conditions hold
};

// An error is InvalidArgument with a position. An accepted program verifies,
// prints to text that parses again to the same program and text, and has a
// workload hash that survives the round trip.
Outcome CheckProgram(std::string_view text);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_CHECK_PROGRAM_H_
