// Whether a schedule shows where a factor is infinite or not a number.
#ifndef TILEFARM_TESTS_SPACE_SPECIAL_VALUES_H_
#define TILEFARM_TESTS_SPACE_SPECIAL_VALUES_H_

#include <limits>
#include <vector>

#include "compiler/lower/passes.h"
#include "tests/space/space_test_programs.h"
#include "tests/support/close_to.h"

namespace tilefarm::space {

// The number of elements that differ by more than rounding, or in what is
// infinite or not a number, where the second parameter is so in a few places.
// Lowering is what acts on tilefarm.skip_padding.
inline int SpecialDifferences(const ir::PrimFunc& program,
                              const ir::PrimFunc& scheduled) {
  ir::PrimFunc lowered = scheduled;
  lowered.body = lower::SkipPadding(scheduled.body);
  int count = 0;
  for (const float special : {std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> x = Outputs(program, special);
    const std::vector<float> y = Outputs(lowered, special);
    for (size_t i = 0; i < x.size(); ++i) {
      count += CloseTo(y[i], x[i], 1e-4, 1e-4) ? 0 : 1;
    }
  }
  return count;
}

}  // namespace tilefarm::space

#endif  // TILEFARM_TESTS_SPACE_SPECIAL_VALUES_H_
