#include "server/jobs/roofline.h"

#include <algorithm>

#include "cost_model/features.h"

namespace tilefarm::jobs {
namespace {

// Faster than the clock of any processor.
constexpr double kMostHertz = 10e9;
// Upper bound on the vector multiply-adds that a core begins in a cycle. Each
// counts as two operations.
constexpr double kVectorUnits = 4;
// Operations of a matrix unit per cycle: AMX multiplies tiles of 16 x 64 and
// 64 x 16 bytes in 16 cycles.
constexpr double kMatrixOperations = 2048;
// A schedule may need fewer operations than stated by up to this factor:
// Winograd's F(4x4, 3x3) saves a factor of four, and products with padding may
// be left out as well.
constexpr double kSavings = 16;

}  // namespace

double LeastSeconds(const ir::PrimFunc& program, const target::Target& target) {
  // Operations of other kinds of targets are counted in another way.
  if (target.kind == "cuda" || target.kind == "opencl") return 0;
  int bits = 64;
  bool floats = false;
  for (const ir::Buffer& buffer : program.params) {
    bits = std::min<int>(bits, std::max<int>(buffer->dtype.bits, 8));
    floats |= buffer->dtype.is_float();
  }
  // Sums of integers may have a closed form, which compilers find.
  if (!floats) return 0;
  double operations = 2.0 * kVectorUnits * target.vector_bits / bits;
  if (bits <= 16) operations = std::max(operations, kMatrixOperations);
  return cost_model::CountFlops(program) /
         (kSavings * operations * kMostHertz * std::max(target.cores, 1));
}

}  // namespace tilefarm::jobs
