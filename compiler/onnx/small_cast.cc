// Conversions from and to the small types.
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/small_types.h"
#include "compiler/onnx/tensor_proto.h"
#include "compiler/te/operators.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::Intrinsic;

// Names intermediate values of one expression, so that it does not repeat them.
class Bindings {
 public:
  Expr Bind(Expr value) {
    bound_.emplace_back(ir::MakeLetVar("t", value->dtype), std::move(value));
    return bound_.back().first;
  }
  // `body` with the values that it names.
  Expr Wrap(Expr body) const {
    for (auto let = bound_.rbegin(); let != bound_.rend(); ++let) {
      body = ir::MakeLet(let->first, let->second, std::move(body));
    }
    return body;
  }

 private:
  std::vector<std::pair<ir::Var, Expr>> bound_;
};

Expr Int32(int64_t value) { return ir::IntConst(value, DataType::Int(32)); }

Expr Mul(const Expr& x, double factor) {
  return ir::MakeBinary(BinaryOp::kMul, x, ir::FloatConst(factor, x->dtype));
}

Expr AtLeast(const Expr& x, double bound) {
  return ir::GE(x, ir::FloatConst(bound, x->dtype));
}

// 2^exponent as float32 for an int32 exponent in [0, 2^bits), bits <= 5.
Expr PowerOfTwo(const Expr& exponent, int bits) {
  Expr power = ir::FloatConst(1, DataType::Float(32));
  for (int i = 0; i < bits; ++i) {
    const Expr bit =
        ir::MakeBinary(BinaryOp::kBitAnd, exponent, Int32(int64_t{1} << i));
    power = ir::MakeSelect(ir::NE(bit, Int32(0)),
                           Mul(power, std::ldexp(1.0, 1 << i)), power);
  }
  return power;
}

Expr DecodePower(const SmallType& type, const Expr& code) {
  // 2^(code - 127), as a product of constant powers of two: the intrinsic for
  // powers need not be exact. In float64, where no product is subnormal.
  const Expr exponent = code - type.bias;
  Expr value = ir::FloatConst(1, DataType::Float(64));
  const Expr above = ir::Max(exponent, Int32(0));
  const Expr below = ir::Max(Int32(0) - exponent, Int32(0));
  Bindings let;
  const Expr up = let.Bind(above);
  const Expr down = let.Bind(below);
  for (int i = 0; i < 8; ++i) {
    const auto has = [&](const Expr& x) {
      return ir::NE(ir::MakeBinary(BinaryOp::kBitAnd, x, Int32(1 << i)),
                    Int32(0));
    };
    value = let.Bind(
        ir::MakeSelect(has(up), Mul(value, std::ldexp(1, 1 << i)), value));
    value = let.Bind(
        ir::MakeSelect(has(down), Mul(value, std::ldexp(1, -(1 << i))), value));
  }
  const Expr nan = ir::FloatConst(std::numeric_limits<double>::quiet_NaN(),
                                  DataType::Float(32));
  return let.Wrap(ir::MakeSelect(ir::EQ(code, Int32(type.nan_code)), nan,
                                 ir::MakeCast(DataType::Float(32), value)));
}

Expr EncodePower(const SmallType& type, const Expr& value, bool saturate,
                 PowerRounding rounding) {
  Bindings let;
  const Expr x = let.Bind(ir::MakeCall(
      Intrinsic::kAbs, {ir::MakeCast(DataType::Float(64), value)}));
  const Expr infinity = ir::FloatConst(std::numeric_limits<double>::infinity(),
                                       DataType::Float(64));
  // x = m * 2^e with 1 <= m < 2, for x in the range of the type.
  const double smallest = std::ldexp(1.0, -type.bias);
  const double beyond = std::ldexp(1.0, 129);
  Expr m = let.Bind(
      ir::Min(ir::Max(Mul(x, 1 / smallest), ir::FloatConst(1, x->dtype)),
              ir::FloatConst(beyond / smallest, x->dtype)));
  Expr code = Int32(0);
  for (int step = 256; step >= 1; step /= 2) {
    const Expr large = let.Bind(AtLeast(m, std::ldexp(1.0, step)));
    m = let.Bind(ir::MakeSelect(large, Mul(m, std::ldexp(1.0, -step)), m));
    code = let.Bind(ir::MakeSelect(large, code + step, code));
  }
  if (rounding != PowerRounding::kDown) {
    const Expr up = rounding == PowerRounding::kNearest
                        ? AtLeast(m, 1.5)
                        : ir::GT(m, ir::FloatConst(1, m->dtype));
    code = let.Bind(ir::MakeSelect(up, code + 1, code));
  }
  const Expr over = Int32(saturate ? type.max_code : type.over_code);
  code = ir::MakeSelect(ir::GT(code, Int32(type.max_code)), over, code);
  if (!saturate) {
    code = ir::MakeSelect(AtLeast(x, smallest), code, Int32(type.nan_code));
  }
  code = ir::MakeSelect(ir::EQ(x, infinity), over, code);
  code = ir::MakeSelect(ir::MakeCall(Intrinsic::kIsNan, {x}),
                        Int32(type.nan_code), code);
  return let.Wrap(ir::MakeCast(type.storage, code));
}

Expr EncodeFloat(const SmallType& type, const Expr& value, bool saturate) {
  const DataType compute =
      value->dtype == DataType::Float(64) || value->dtype.is_integral()
          ? DataType::Float(64)
          : DataType::Float(32);
  Bindings let;
  const Expr x = let.Bind(ir::MakeCast(compute, value));
  const int smallest = 1 - type.bias;  // exponent of normal numbers
  const int sign_bit = 1 << (type.bits - 1);
  // In units of the smallest normal number; the bound is beyond every number
  // of the type.
  const Expr magnitude = let.Bind(
      ir::Min(Mul(ir::MakeCall(Intrinsic::kAbs, {x}), std::ldexp(1, -smallest)),
              ir::FloatConst(std::ldexp(1.0, 40), compute)));
  // The exponent of its power of two, 0 for subnormal numbers, and the factor
  // that gives a mantissa.
  Expr m = magnitude;
  Expr exponent = Int32(0);
  Expr factor = ir::FloatConst(std::ldexp(1.0, type.mantissa_bits), compute);
  for (int step = 32; step >= 1; step /= 2) {
    const Expr large = let.Bind(AtLeast(m, std::ldexp(1.0, step)));
    const double shrink = std::ldexp(1.0, -step);
    m = let.Bind(ir::MakeSelect(large, Mul(m, shrink), m));
    factor = let.Bind(ir::MakeSelect(large, Mul(factor, shrink), factor));
    exponent = let.Bind(ir::MakeSelect(large, exponent + step, exponent));
  }
  // A mantissa that rounds up to the next power of two carries into the
  // exponent of the code.
  const Expr mantissa =
      ir::MakeCall(Intrinsic::kNearbyint,
                   {ir::MakeBinary(BinaryOp::kMul, magnitude, factor)});
  Expr code = let.Bind(exponent * (int64_t{1} << type.mantissa_bits) +
                       ir::MakeCast(DataType::Int(32), mantissa));
  code = ir::MakeSelect(ir::GT(code, Int32(type.max_code)),
                        Int32(saturate ? type.max_code : type.over_code), code);
  code = let.Bind(ir::MakeSelect(ir::MakeCall(Intrinsic::kIsNan, {x}),
                                 Int32(type.nan_code), code));
  Expr negative = ir::LT(
      ir::MakeCall(Intrinsic::kCopySign, {ir::FloatConst(1, compute), x}),
      ir::FloatConst(0, compute));
  if (type.unsigned_zero) {
    negative = ir::And(negative, ir::NE(code, Int32(0)));
  }
  // NaN may have the sign bit already.
  const Expr with_sign =
      ir::MakeBinary(BinaryOp::kBitOr, code, Int32(sign_bit));
  return let.Wrap(
      ir::MakeCast(type.storage, ir::MakeSelect(negative, with_sign, code)));
}

// Discards the high bits.
Expr WrapInteger(const SmallType& type, const Expr& value) {
  const Expr integer = ir::MakeCast(DataType::Int(32), value);
  const Expr low = ir::MakeBinary(BinaryOp::kBitAnd, integer,
                                  Int32((int64_t{1} << type.bits) - 1));
  if (type.min == 0) return ir::MakeCast(type.storage, low);
  const Expr flipped = ir::MakeBinary(BinaryOp::kBitXor, low, Int32(-type.min));
  return ir::MakeCast(type.storage, flipped + int64_t{type.min});
}

}  // namespace

Expr DecodeSmall(const SmallType& type, const Expr& stored) {
  const DataType f32 = DataType::Float(32);
  if (!type.is_float) return ir::MakeCast(f32, stored);
  Bindings let;
  const Expr code = let.Bind(ir::MakeCast(DataType::Int(32), stored));
  if (type.is_power()) return let.Wrap(DecodePower(type, code));
  const int sign_bit = 1 << (type.bits - 1);
  const Expr magnitude =
      let.Bind(ir::MakeBinary(BinaryOp::kBitAnd, code, Int32(sign_bit - 1)));
  const Expr exponent = let.Bind(ir::MakeBinary(
      BinaryOp::kShiftRight, magnitude, Int32(type.mantissa_bits)));
  const Expr mantissa =
      ir::MakeBinary(BinaryOp::kBitAnd, magnitude,
                     Int32((int64_t{1} << type.mantissa_bits) - 1));
  const Expr implicit =
      ir::MakeSelect(ir::GT(exponent, Int32(0)),
                     Int32(int64_t{1} << type.mantissa_bits), Int32(0));
  const Expr shift = let.Bind(ir::Max(exponent, Int32(1)) - 1);
  const Expr digits = ir::MakeCast(f32, mantissa + implicit);
  Expr value = let.Bind(
      Mul(ir::MakeBinary(BinaryOp::kMul, digits,
                         PowerOfTwo(shift, type.bits - 1 - type.mantissa_bits)),
          std::ldexp(1.0, 1 - type.bias - type.mantissa_bits)));
  const Expr nan =
      ir::FloatConst(std::numeric_limits<double>::quiet_NaN(), f32);
  const bool has_infinity =
      type.over_code != type.nan_code && type.over_code > type.max_code;
  if (has_infinity) {
    value = ir::MakeSelect(
        ir::EQ(magnitude, Int32(type.over_code)),
        ir::FloatConst(std::numeric_limits<double>::infinity(), f32), value);
  }
  if (type.unsigned_zero) {
    value = ir::MakeSelect(ir::EQ(code, Int32(type.nan_code)), nan, value);
  } else if (type.bits == 8) {
    value = ir::MakeSelect(
        ir::GT(magnitude, Int32(type.max_code + (has_infinity ? 1 : 0))), nan,
        value);
  }
  value = let.Bind(value);
  return let.Wrap(
      ir::MakeSelect(ir::GE(code, Int32(sign_bit)), Mul(value, -1), value));
}

Expr EncodeSmall(const SmallType& type, const Expr& value, bool saturate,
                 PowerRounding rounding) {
  if (type.is_power()) return EncodePower(type, value, saturate, rounding);
  if (type.is_float) return EncodeFloat(type, value, saturate);
  return WrapInteger(type, value);
}

bool InvolvesSmallType(Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.RawInput(i).small_type != 0) return true;
  }
  return node.op() == "Cast" &&
         FindSmallType(static_cast<int>(node.Int("to", 0))) != nullptr;
}

Outputs ConvertSmallCast(Node& node, int to_onnx_type) {
  const ValueId input = node.Input(0);
  const SmallType* from = FindSmallType(node.RawInput(0).small_type);
  const SmallType* to = FindSmallType(to_onnx_type);
  const std::optional<DataType> storage = StorageDtypeOf(to_onnx_type);
  if (!storage.has_value()) {
    return node.Unsupported("a cast to ", OnnxTypeName(to_onnx_type));
  }
  if (from == to) {
    if (to != nullptr || node.Dtype(0) == *storage) {
      return std::vector<Imported>{node.RawInput(0)};
    }
  }
  const bool saturate = node.Int("saturate", 1) != 0;
  const std::string mode = node.String("round_mode", "up");
  PowerRounding rounding = PowerRounding::kUp;
  if (mode == "down") {
    rounding = PowerRounding::kDown;
  } else if (mode == "nearest") {
    rounding = PowerRounding::kNearest;
  } else if (mode != "up") {
    return node.Invalid("round_mode=", mode);
  }
  const auto convert = [&](const Expr& element) {
    Expr value = element;
    if (from != nullptr && from->is_float) value = DecodeSmall(*from, element);
    if (to != nullptr) return EncodeSmall(*to, value, saturate, rounding);
    if (storage->is_bool()) return ir::NE(value, ir::ConstOf(value->dtype, 0));
    return ir::MakeCast(*storage, value);
  };
  TF_ASSIGN_OR_RETURN(const ValueId output,
                      node.builder().Compute(
                          "astype",
                          {{"from", ir::Attr(OnnxTypeName(node.OnnxType(0)))},
                           {"to", ir::Attr(OnnxTypeName(to_onnx_type))}},
                          {input}, [&](const graph::Tensors& in) {
                            return te::Map(in[0], convert, "T_cast");
                          }));
  return std::vector<Imported>{{output, to == nullptr ? 0 : to_onnx_type}};
}

}  // namespace tilefarm::onnx
