// What the tensor cores of a GPU multiply, as data: lowering chooses from it,
// code generation and the simulator translate its entries.
//
// A warp product adds the product of a tile of 16 rows and one of 8 columns to
// 16 x 8 sums. Each lane l of the warp has, in 32-bit registers (PTX ISA,
// "Matrix fragments for mma"):
//
//   sums  rows l / 4 and l / 4 + 8, columns l % 4 * 2 and the next: c0, c1 of
//         the first row, c2, c3 of the second
//   a     of the same rows, the l % 4-th four bytes of each 16 bytes of terms:
//         register h + 2 * c has row l / 4 + 8 * h, bytes 16 * c + l % 4 * 4
//   b     of column l / 4 the same bytes: register c
//
// Every entry has 32 bytes of terms, two chunks of 16.
#ifndef TILEFARM_COMPILER_IR_MATRIX_UNITS_H_
#define TILEFARM_COMPILER_IR_MATRIX_UNITS_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "compiler/ir/expr.h"

namespace tilefarm::ir {

struct WarpProduct {
  // The values of the annotation kWarpMatrix (annotations.h) that ask for it.
  std::string_view annotation;
  DataType a, b, sum;
  int terms;
  // A float32 operand is the sum of two tf32 numbers, whose products are added:
  // all but the one of the two low parts.
  bool split;
  int architecture;        // the first that has it: 80 of sm_80
  std::string_view shape;  // as PTX names it
  std::string_view types;  // as PTX names them: of the result, a, b, the sums
};

inline constexpr int kWarpLanes = 32;
// Those that have the same rows.
inline constexpr int64_t kQuadLanes = 4;
inline constexpr int kWarpProductRows = 16;
inline constexpr int kWarpProductColumns = 8;

inline constexpr std::array<WarpProduct, 7> kWarpProducts = {{
    // Two instructions of 8 terms before sm_80.
    {"mma", DataType::Float(16), DataType::Float(16), DataType::Float(32), 16,
     false, 75, "m16n8k16", "f32.f16.f16.f32"},
    {"mma", DataType::BFloat16(), DataType::BFloat16(), DataType::Float(32), 16,
     false, 80, "m16n8k16", "f32.bf16.bf16.f32"},
    {"mma.3xtf32", DataType::Float(32), DataType::Float(32),
     DataType::Float(32), 8, true, 80, "m16n8k8", "f32.tf32.tf32.f32"},
    {"mma", DataType::Int(8), DataType::Int(8), DataType::Int(32), 32, false,
     80, "m16n8k32", "s32.s8.s8.s32"},
    {"mma", DataType::Int(8), DataType::UInt(8), DataType::Int(32), 32, false,
     80, "m16n8k32", "s32.s8.u8.s32"},
    {"mma", DataType::UInt(8), DataType::Int(8), DataType::Int(32), 32, false,
     80, "m16n8k32", "s32.u8.s8.s32"},
    {"mma", DataType::UInt(8), DataType::UInt(8), DataType::Int(32), 32, false,
     80, "m16n8k32", "s32.u8.u8.s32"},
}};

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_MATRIX_UNITS_H_
