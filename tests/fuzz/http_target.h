// Conditions that hold for any bytes at the HTTP port.
#ifndef TILEFARM_TESTS_FUZZ_HTTP_TARGET_H_
#define TILEFARM_TESTS_FUZZ_HTTP_TARGET_H_

#include <string>

#include "tests/fuzz/byte_source.h"

namespace tilefarm::fuzz {

// One request head, either made from typical parts and then damaged, or
// arbitrary bytes. The answer is 200 for a head with a path, exactly one Host
// and no Origin, whose body, if it is a POST, has a length; otherwise a
// refusal. The answer must be well framed. Returns the violated condition;
// empty: none.
std::string HttpHead(ByteSource& source);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_HTTP_TARGET_H_
