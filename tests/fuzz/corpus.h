// Programs that use the whole language, as input for mutations.
#ifndef TILEFARM_TESTS_FUZZ_CORPUS_H_
#define TILEFARM_TESTS_FUZZ_CORPUS_H_

#include <string>
#include <vector>

namespace tilefarm::fuzz {

// The embedded programs, and the small printed ones if the checkout has them.
std::vector<std::string> Corpus();

// Words and symbols of the language, and some others.
const std::vector<std::string>& Vocabulary();

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_CORPUS_H_
