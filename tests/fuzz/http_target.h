// What must hold for any bytes that arrive at the HTTP port.
#ifndef TILEFARM_TESTS_FUZZ_HTTP_TARGET_H_
#define TILEFARM_TESTS_FUZZ_HTTP_TARGET_H_

#include <string>

#include "tests/fuzz/byte_source.h"

namespace tilefarm::fuzz {

// One head of a request, made of what heads are made of and then damaged, or
// the bytes themselves. It is answered: 200 for what has a path, one Host and
// neither body nor Origin, otherwise a refusal. The answer is framed as it
// says. Returns what was violated; empty: nothing.
std::string HttpHead(ByteSource& source);

}  // namespace tilefarm::fuzz

#endif  // TILEFARM_TESTS_FUZZ_HTTP_TARGET_H_
