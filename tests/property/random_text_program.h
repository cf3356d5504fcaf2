// Random programs as TVMScript text, made of statements rather than of
// operators: several blocks, lets, conditions, selects, initialisations that
// read buffers, parameters that are updated in place, strided, shifted,
// modular and indirect reads, writes that overlap in order, reductions with
// predicates, rank 0 to 5, extents of 1 and primes, most dtypes.
#ifndef TILEFARM_TESTS_PROPERTY_RANDOM_TEXT_PROGRAM_H_
#define TILEFARM_TESTS_PROPERTY_RANDOM_TEXT_PROGRAM_H_

#include <string>

#include "base/rng.h"

namespace tilefarm::property {

struct TextProgram {
  // One function "main" whose accesses are all in bounds. It may read elements
  // of intermediate buffers that nothing wrote: the caller must interpret it
  // with two different contents of the workspace and drop it if the results
  // differ.
  std::string text;
  // For inputs that are small integers, every float is a small integer (or a
  // multiple of a half), so that sums are exact in any order.
  bool exact = true;
};

// Inputs must be integers of magnitude 3 or less. The interpreter needs at most
// some hundred thousand steps.
TextProgram RandomTextProgram(Rng& rng);

// The same, but this share of the programs are those of random_program.h,
// which are not exact.
TextProgram RandomTextProgram(Rng& rng, double operator_share);

}  // namespace tilefarm::property

#endif  // TILEFARM_TESTS_PROPERTY_RANDOM_TEXT_PROGRAM_H_
