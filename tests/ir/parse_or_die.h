// What tests of the IR share: a dtype, and a parsed function or a test failure
// that shows the parser's message.
#ifndef TILEFARM_TESTS_IR_PARSE_OR_DIE_H_
#define TILEFARM_TESTS_IR_PARSE_OR_DIE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "compiler/ir/parser.h"

namespace tilefarm::ir {

inline const DataType kF32 = DataType::Float(32);

inline PrimFuncPtr ParseOrDie(const std::string& text) {
  auto function = ParseFunction(text);
  if (!function.ok()) {
    std::cerr << function.status().message() << "\n";
    std::abort();
  }
  return *function;
}

// `body` as the body of a function of float32 A, B, C of 16 elements, M of
// 8x8, and int32 I of 16.
inline std::string WithBuffers(const std::string& body) {
  std::string out =
      "@T.prim_func\n"
      "def f(A: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), "
      "\"float32\"), C: T.Buffer((16,), \"float32\"), M: T.Buffer((8, 8), "
      "\"float32\"), I: T.Buffer((16,), \"int32\")):\n";
  std::string line;
  for (char c : body + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (!line.empty()) out += "    " + line + "\n";
    line.clear();
  }
  return out;
}

}  // namespace tilefarm::ir

#endif  // TILEFARM_TESTS_IR_PARSE_OR_DIE_H_
