// Programs in the syntax of TVM 0.8 to 0.27 and its tutorials, each with the
// same program in the printer's spelling.
#ifndef TILEFARM_TESTS_LOWER_DIALECT_PROGRAMS_H_
#define TILEFARM_TESTS_LOWER_DIALECT_PROGRAMS_H_

#include <ostream>
#include <string>
#include <vector>

namespace tilefarm::testing {

struct DialectProgram {
  std::string name;
  std::string dialect;
  std::string modern;
};

inline void PrintTo(const DialectProgram& program, std::ostream* out) {
  *out << program.dialect;
}

// Functions with float32 A and C of 16 elements, int32 I of 16 and float32 M of
// 8x8, unless their text declares others.
std::vector<DialectProgram> DialectPrograms();

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_LOWER_DIALECT_PROGRAMS_H_
