// Programs as TVM 0.8 to 0.27 and its tutorials wrote them, each beside the
// same program in the spelling that we print.
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

// Functions of a float32 A and C of 16 elements, an int32 I of 16 and a float32
// M of 8x8, unless their text says otherwise.
std::vector<DialectProgram> DialectPrograms();

}  // namespace tilefarm::testing

#endif  // TILEFARM_TESTS_LOWER_DIALECT_PROGRAMS_H_
