// Element types of ONNX that our language does not have: floats of 8 and 4
// bits, integers of 4 and 2 bits. Private to this folder.
//
// The graph stores one element per byte: floats as their bits (uint8), integers
// as their value (int8, uint8). Only converters that know the types may compute
// with them; CheckSmallTypes enforces this.
#ifndef TILEFARM_COMPILER_ONNX_SMALL_TYPES_H_
#define TILEFARM_COMPILER_ONNX_SMALL_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "compiler/ir/expr.h"
#include "compiler/onnx/node.h"

namespace tilefarm::onnx {

struct SmallType {
  int onnx_type;  // TensorProto's number
  ir::DataType storage;
  int bits;
  bool is_float;
  // Floats. E8M0, a power of two without a sign, has no mantissa.
  int mantissa_bits = 0;
  int bias = 0;
  int max_code = 0;   // the bits of the largest finite value
  int over_code = 0;  // what is larger without saturation: Inf or NaN
  int nan_code = 0;   // without the sign
  // NaN is the only code with a sign bit and zeros, so there is no -0.
  bool unsigned_zero = false;
  // Integers.
  int min = 0;
  int max = 0;

  bool is_power() const { return is_float && mantissa_bits == 0; }
};

// Null: not one of these types.
const SmallType* FindSmallType(int onnx_type);
// By OnnxTypeName; null for others.
const SmallType* FindSmallType(std::string_view name);

// Files and callers pack elements: from the low bits of each byte to the high
// ones.
int64_t PackedBytes(const SmallType& type, int64_t num_elements);
// `packed` has PackedBytes bytes; fewer give zeros.
std::vector<std::byte> Unpacked(const SmallType& type,
                                std::span<const std::byte> packed,
                                int64_t num_elements);
std::vector<std::byte> Packed(const SmallType& type,
                              std::span<const std::byte> stored);
// The number that a stored byte stands for.
double SmallToDouble(const SmallType& type, std::byte stored);

// --- Expressions (small_cast.cc) -----------------------------------------

enum class PowerRounding { kUp, kDown, kNearest };  // Cast's round_mode

// A stored element as a float32 number, which is exact.
ir::Expr DecodeSmall(const SmallType& type, const ir::Expr& stored);
// The stored form of a number of any dtype: floats round to the nearest value,
// ties to even; integers lose their high bits. `saturate` (floats of 8 bits):
// what is too large becomes the largest value, not Inf or NaN.
ir::Expr EncodeSmall(const SmallType& type, const ir::Expr& value,
                     bool saturate = true,
                     PowerRounding rounding = PowerRounding::kUp);

// --- Nodes ---------------------------------------------------------------

// Whether the node has an input of a small type, or is a Cast to one.
bool InvolvesSmallType(Node& node);
// Cast or CastLike from or to a small type.
Outputs ConvertSmallCast(Node& node, int to_onnx_type);

// Unimplemented: the node has inputs of small types, and its operator would
// take the stored bytes for numbers.
absl::Status CheckSmallTypes(Node& node);
// Gives the outputs of operators that only move elements their type.
void PassSmallTypesOn(Node& node, std::vector<Imported>& outputs);

}  // namespace tilefarm::onnx

#endif  // TILEFARM_COMPILER_ONNX_SMALL_TYPES_H_
