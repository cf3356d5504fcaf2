// Programs that use the whole language, to be mutated.
#ifndef TILEFARM_TESTS_FUZZ_CORPUS_H_
#define TILEFARM_TESTS_FUZZ_CORPUS_H_

#include <string>
#include <vector>

namespace tilefarm::fuzz {

// The embedded programs, and the small printed ones where the checkout has
// them.
std::vector<std::string> Corpus();

// Words and symbols of the language, and some that are not.
const std::vector<std::string>& Vocabulary();

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_CORPUS_H_
