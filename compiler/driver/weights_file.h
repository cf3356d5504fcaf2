// The weights of a model in a file beside its library. All numbers are
// little-endian:
//
//   offset  bytes
//        0      8  "TFWEIGHT"
//        8      4  version: 1
//       12      4  size of this header: 64
//       16      8  size of the weights
//       24     32  SHA-256 of the weights
//       56      8  0
//       64         the weights, at the offsets that the library has
//
// The library has the digest, too, and compares it with the header's
// (runtime/weights.c).
#ifndef TILEFARM_COMPILER_DRIVER_WEIGHTS_FILE_H_
#define TILEFARM_COMPILER_DRIVER_WEIGHTS_FILE_H_

#include <string>
#include <vector>

#include "compiler/codegen/model_object.h"

namespace tilefarm::driver {

struct WeightsFile {
  std::string bytes;   // of the whole file
  std::string digest;  // the 32 bytes of the header
};

WeightsFile MakeWeightsFile(const std::vector<codegen::ModelWeights>& pieces);

}  // namespace tilefarm::driver

#endif  // TILEFARM_COMPILER_DRIVER_WEIGHTS_FILE_H_
