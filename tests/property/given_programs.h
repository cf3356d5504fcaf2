// Programs that were once compiled wrongly, by class.
#ifndef TILEFARM_TESTS_PROPERTY_GIVEN_PROGRAMS_H_
#define TILEFARM_TESTS_PROPERTY_GIVEN_PROGRAMS_H_

#include <span>

namespace tilefarm::property {

struct Given {
  const char* name;
  const char* program;
  const char* trace;    // "": only the program
  const char* refusal;  // "": the trace is legal
};

std::span<const Given> GivenReductions();
std::span<const Given> GivenIterations();
std::span<const Given> GivenMoves();
std::span<const Given> GivenLowering();

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_GIVEN_PROGRAMS_H_
