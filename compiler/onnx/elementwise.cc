// Arithmetic, comparisons and logic: each element of the result depends on one
// element of every input, which broadcast as in NumPy.
#include <cmath>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "compiler/onnx/expressions.h"

namespace tilefarm::onnx {
namespace {

using ir::BinaryOp;
using ir::DataType;
using ir::Expr;
using ir::Intrinsic;

// --- Functions of one input ----------------------------------------------

using Unary = Expr (*)(const Expr&);

// f(x) in the dtype that formulas compute in, rounded to the dtype of x.
Outputs ConvertUnary(Node& node, const std::string& op, DtypeKind kind,
                     Unary f) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, kind));
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  TF_ASSIGN_OR_RETURN(const ValueId y,
                      Elementwise(node, op, {}, {node.Input(0)},
                                  [&](const std::vector<Expr>& x) {
                                    return ir::MakeCast(
                                        dtype, f(ir::MakeCast(type, x[0])));
                                  }));
  return OneOutput(y);
}

// A float function of one input, by an intrinsic of the IR.
template <Intrinsic kIntrinsic>
Outputs ConvertIntrinsic(Node& node) {
  return ConvertUnary(node, std::string(ir::IntrinsicName(kIntrinsic)),
                      DtypeKind::kFloat,
                      [](const Expr& x) { return Call(kIntrinsic, x); });
}

Outputs ConvertAbs(Node& node) {
  return ConvertUnary(node, "abs", DtypeKind::kNumber, [](const Expr& x) {
    return x->dtype.is_uint() ? x : Call(Intrinsic::kAbs, x);
  });
}

Outputs ConvertNeg(Node& node) {
  return ConvertUnary(node, "negative", DtypeKind::kNumber, [](const Expr& x) {
    // 0 - x would lose the sign of a float zero.
    return x->dtype.is_float() ? x * Number(-1, x->dtype)
                               : ir::ConstOf(x->dtype, 0) - x;
  });
}

Outputs ConvertSign(Node& node) {
  return ConvertUnary(node, "sign", DtypeKind::kNumber, [](const Expr& x) {
    const DataType type = x->dtype;
    const Expr zero = ir::ConstOf(type, 0);
    const Expr one = ir::ConstOf(type, 1);
    const Expr rest =
        type.is_uint() ? zero : ir::MakeSelect(ir::LT(x, zero), zero - one, x);
    return ir::MakeSelect(ir::GT(x, zero), one, rest);
  });
}

Outputs ConvertReciprocal(Node& node) {
  return ConvertUnary(node, "reciprocal", DtypeKind::kFloat, [](const Expr& x) {
    return Divide(ir::ConstOf(x->dtype, 1), x);
  });
}

// From here on x * x is x * x + 1, and overflows soon after.
constexpr double kLargeArgument = 1e9;

Expr LogOfTwice(const Expr& x) {
  return Call(Intrinsic::kLog, x) + Number(std::log(2.0), x->dtype);
}

// log(|x| + sqrt(x^2 + 1)), written with log1p because the argument of the
// logarithm is near one where x is near zero.
Expr Asinh(const Expr& x) {
  const DataType type = x->dtype;
  const Expr one = ir::ConstOf(type, 1);
  const Expr magnitude = Call(Intrinsic::kAbs, x);
  const Expr square = x * x;
  const Expr root = Call(Intrinsic::kSqrt, square + one);
  const Expr value = ir::MakeSelect(
      ir::GT(magnitude, Number(kLargeArgument, type)), LogOfTwice(magnitude),
      Call(Intrinsic::kLog1p, magnitude + Divide(square, root + one)));
  return ir::MakeCall(Intrinsic::kCopySign, {value, x});
}

// log(x + sqrt(x^2 - 1)) with t = x - 1.
Expr Acosh(const Expr& x) {
  const DataType type = x->dtype;
  const Expr t = x - ir::ConstOf(type, 1);
  const Expr root = Call(Intrinsic::kSqrt, t * (t + ir::ConstOf(type, 2)));
  return ir::MakeSelect(ir::GT(x, Number(kLargeArgument, type)), LogOfTwice(x),
                        Call(Intrinsic::kLog1p, t + root));
}

Expr Atanh(const Expr& x) {
  const Expr minus = ir::ConstOf(x->dtype, 0) - x;
  return (Call(Intrinsic::kLog1p, x) - Call(Intrinsic::kLog1p, minus)) *
         Number(0.5, x->dtype);
}

// --- Functions of two inputs of one dtype --------------------------------

using Binary = Expr (*)(const Expr&, const Expr&);

Outputs ConvertBinary(Node& node, const std::string& op, Binary f,
                      std::optional<DtypeKind> kind = DtypeKind::kNumber) {
  const std::vector<ValueId> inputs = {node.Input(0), node.Input(1)};
  if (kind.has_value()) TF_RETURN_IF_ERROR(CheckKind(node, 0, *kind));
  TF_RETURN_IF_ERROR(CheckEqualDtypes(node, inputs));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      Elementwise(node, op, {}, inputs,
                  [&](const std::vector<Expr>& x) { return f(x[0], x[1]); }));
  return OneOutput(y);
}

template <BinaryOp kOp>
Expr Apply(const Expr& a, const Expr& b) {
  return ir::MakeBinary(kOp, a, b);
}

// Division by an integer zero is undefined, but must not stop the program: the
// result is 0, as NumPy's.
template <BinaryOp kOp>
Expr ApplyDivision(const Expr& a, const Expr& b) {
  if (b->dtype.is_float()) return ir::MakeBinary(kOp, a, b);
  const Expr zero = ir::ConstOf(b->dtype, 0);
  const Expr is_zero = ir::EQ(b, zero);
  const Expr divisor = ir::MakeSelect(is_zero, ir::ConstOf(b->dtype, 1), b);
  return ir::MakeSelect(is_zero, zero, ir::MakeBinary(kOp, a, divisor));
}

Outputs ConvertMod(Node& node) {
  const int64_t fmod = node.Int("fmod", 0);
  if (fmod != 0 && fmod != 1) return node.Invalid("attribute fmod=", fmod);
  if (fmod == 1) {
    return ConvertBinary(node, "mod", ApplyDivision<BinaryOp::kMod>);
  }
  return ConvertBinary(node, "floor_mod", [](const Expr& a, const Expr& b) {
    if (!b->dtype.is_float()) {
      return ApplyDivision<BinaryOp::kFloorMod>(a, b);
    }
    // The remainder of truncation, moved to the divisor's sign.
    const Expr zero = ir::ConstOf(b->dtype, 0);
    const Expr rest = ir::MakeBinary(BinaryOp::kMod, a, b);
    const Expr other_sign = ir::NE(ir::LT(rest, zero), ir::LT(b, zero));
    return ir::MakeSelect(ir::EQ(rest, zero),
                          ir::MakeCall(Intrinsic::kCopySign, {zero, b}),
                          ir::MakeSelect(other_sign, rest + b, rest));
  });
}

// A shift by a number of bits that is negative or not less than that of the
// type leaves nothing but copies of the sign.
template <BinaryOp kOp>
Expr Shift(const Expr& a, const Expr& b) {
  const Expr zero = ir::ConstOf(a->dtype, 0);
  Expr within = ir::LT(b, ir::ConstOf(b->dtype, b->dtype.bits));
  Expr rest = zero;
  if (!a->dtype.is_uint()) {
    within = ir::And(ir::GE(b, zero), within);
    if (kOp == BinaryOp::kShiftRight) {
      rest = ir::MakeSelect(ir::LT(a, zero), ir::ConstOf(a->dtype, -1), zero);
    }
  }
  const Expr bits = ir::MakeSelect(within, b, zero);
  return ir::MakeSelect(within, ir::MakeBinary(kOp, a, bits), rest);
}

Outputs ConvertBitShift(Node& node) {
  const std::string direction = node.String("direction", "");
  if (direction == "LEFT") {
    return ConvertBinary(node, "left_shift", Shift<BinaryOp::kShiftLeft>,
                         DtypeKind::kInteger);
  }
  if (direction == "RIGHT") {
    return ConvertBinary(node, "right_shift", Shift<BinaryOp::kShiftRight>,
                         DtypeKind::kInteger);
  }
  return node.Invalid("attribute direction='", direction, "'");
}

// --- Any number of inputs ------------------------------------------------

Outputs ConvertVariadic(Node& node, const std::string& op, Binary f,
                        DtypeKind kind = DtypeKind::kNumber,
                        bool mean = false) {
  const std::vector<ValueId> inputs = node.Inputs();
  if (inputs.empty()) return node.Invalid("has no inputs");
  TF_RETURN_IF_ERROR(CheckKind(node, 0, kind));
  TF_RETURN_IF_ERROR(CheckEqualDtypes(node, inputs));
  if (inputs.size() == 1) return OneOutput(inputs[0]);
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      Elementwise(node, op, {}, inputs, [&](const std::vector<Expr>& x) {
        Expr value = ir::MakeCast(type, x[0]);
        for (size_t i = 1; i < x.size(); ++i) {
          value = f(value, ir::MakeCast(type, x[i]));
        }
        if (mean) {
          value = Divide(value, Number(static_cast<double>(x.size()), type));
        }
        return ir::MakeCast(dtype, value);
      }));
  return OneOutput(y);
}

// --- Choices -------------------------------------------------------------

Outputs ConvertWhere(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kBool));
  const std::vector<ValueId> inputs = {node.Input(0), node.Input(1),
                                       node.Input(2)};
  TF_RETURN_IF_ERROR(CheckEqualDtypes(node, {inputs[1], inputs[2]}));
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      Elementwise(node, "where", {}, inputs, [](const std::vector<Expr>& x) {
        return ir::MakeSelect(x[0], x[1], x[2]);
      }));
  return OneOutput(y);
}

// One bound of Clip: absent, a constant, or a scalar known at run time.
struct Bound {
  Expr constant;  // in the dtype that the operator computes in
  std::optional<ValueId> value;
};

absl::StatusOr<Bound> ClipBound(Node& node, int i, std::string_view attribute) {
  const DataType type = ComputeType(node.Dtype(0));
  Bound bound;
  if (node.HasAttr(attribute)) {
    if (!type.is_float()) {
      return node.Unsupported("attribute ", std::string(attribute), " of ",
                              type.ToString());
    }
    bound.constant = Number(node.Float(attribute, 0), type);
    return bound;
  }
  if (!node.HasInput(i)) return bound;
  const TensorType given = node.Type(i);
  if (given.num_elements() != 1) {
    return node.Invalid("input ", i, " must be a scalar");
  }
  if (given.dtype != node.Dtype(0)) {
    return node.Invalid("input ", i, " has dtype ", given.dtype.ToString());
  }
  if (!node.IsConstant(i)) {
    bound.value = node.Input(i);
  } else if (type.is_float()) {
    TF_ASSIGN_OR_RETURN(const std::vector<double> values, node.ConstDoubles(i));
    bound.constant = Number(values[0], type);
  } else {
    TF_ASSIGN_OR_RETURN(const std::vector<int64_t> values, node.ConstInts(i));
    bound.constant = ir::IntConst(values[0], type);
  }
  return bound;
}

Outputs ConvertClip(Node& node) {
  TF_RETURN_IF_ERROR(CheckKind(node, 0, DtypeKind::kNumber));
  TF_ASSIGN_OR_RETURN(const Bound low, ClipBound(node, 1, "min"));
  TF_ASSIGN_OR_RETURN(const Bound high, ClipBound(node, 2, "max"));
  const DataType dtype = node.Dtype(0);
  const DataType type = ComputeType(dtype);
  std::vector<ValueId> inputs = {node.Input(0)};
  ir::AttrMap attrs;
  for (const auto& [name, bound] : {std::pair("min", low), {"max", high}}) {
    if (bound.value.has_value()) inputs.push_back(*bound.value);
    const auto* real = ir::As<ir::FloatConstNode>(bound.constant);
    if (real != nullptr) attrs[name] = real->value;
    if (const auto integer = ir::AsInt(bound.constant)) attrs[name] = *integer;
  }
  if (attrs.empty() && inputs.size() == 1) return OneOutput(inputs[0]);
  const std::vector<int64_t> shape = node.Shape(0);
  TF_ASSIGN_OR_RETURN(
      const ValueId y,
      node.builder().Compute(
          "clip", attrs, inputs, [&](const graph::Tensors& in) {
            return te::Compute("T_clip", shape, [&](const te::Indices& i) {
              size_t next = 1;
              Expr x = ir::MakeCast(type, in[0](i));
              const auto limit = [&](const Bound& bound, BinaryOp op) {
                Expr value = bound.constant;
                if (bound.value.has_value()) {
                  value = ir::MakeCast(type, OnlyElement(in[next++]));
                }
                if (value != nullptr) x = ir::MakeBinary(op, x, value);
              };
              // The order matters where min is larger than max.
              limit(low, BinaryOp::kMax);
              limit(high, BinaryOp::kMin);
              return te::Body(ir::MakeCast(dtype, x));
            });
          }));
  return OneOutput(y);
}

}  // namespace

std::vector<Converter> ElementwiseConverters() {
  return {
      {"Abs", ConvertAbs},
      {"Neg", ConvertNeg},
      {"Sign", ConvertSign},
      {"Floor", ConvertIntrinsic<Intrinsic::kFloor>},
      {"Ceil", ConvertIntrinsic<Intrinsic::kCeil>},
      {"Round", ConvertIntrinsic<Intrinsic::kNearbyint>},
      {"Exp", ConvertIntrinsic<Intrinsic::kExp>},
      {"Log", ConvertIntrinsic<Intrinsic::kLog>},
      {"Sqrt", ConvertIntrinsic<Intrinsic::kSqrt>},
      {"Reciprocal", ConvertReciprocal},
      {"Erf", ConvertIntrinsic<Intrinsic::kErf>},
      {"Sin", ConvertIntrinsic<Intrinsic::kSin>},
      {"Cos", ConvertIntrinsic<Intrinsic::kCos>},
      {"Tan", ConvertIntrinsic<Intrinsic::kTan>},
      {"Asin", ConvertIntrinsic<Intrinsic::kAsin>},
      {"Acos", ConvertIntrinsic<Intrinsic::kAcos>},
      {"Atan", ConvertIntrinsic<Intrinsic::kAtan>},
      {"Sinh", ConvertIntrinsic<Intrinsic::kSinh>},
      {"Cosh", ConvertIntrinsic<Intrinsic::kCosh>},
      {"Tanh", ConvertIntrinsic<Intrinsic::kTanh>},
      {"Asinh",
       [](Node& n) {
         return ConvertUnary(n, "asinh", DtypeKind::kFloat, Asinh);
       }},
      {"Acosh",
       [](Node& n) {
         return ConvertUnary(n, "acosh", DtypeKind::kFloat, Acosh);
       }},
      {"Atanh",
       [](Node& n) {
         return ConvertUnary(n, "atanh", DtypeKind::kFloat, Atanh);
       }},
      {"Add",
       [](Node& n) { return ConvertBinary(n, "add", Apply<BinaryOp::kAdd>); }},
      {"Sub",
       [](Node& n) {
         return ConvertBinary(n, "subtract", Apply<BinaryOp::kSub>);
       }},
      {"Mul",
       [](Node& n) {
         return ConvertBinary(n, "multiply", Apply<BinaryOp::kMul>);
       }},
      {"Div",
       [](Node& n) {
         return ConvertBinary(n, "divide", ApplyDivision<BinaryOp::kDiv>);
       }},
      {"Mod", ConvertMod},
      {"BitShift", ConvertBitShift},
      {"BitwiseAnd",
       [](Node& n) {
         return ConvertBinary(n, "bitwise_and", Apply<BinaryOp::kBitAnd>,
                              DtypeKind::kInteger);
       }},
      {"BitwiseOr",
       [](Node& n) {
         return ConvertBinary(n, "bitwise_or", Apply<BinaryOp::kBitOr>,
                              DtypeKind::kInteger);
       }},
      {"BitwiseXor",
       [](Node& n) {
         return ConvertBinary(n, "bitwise_xor", Apply<BinaryOp::kBitXor>,
                              DtypeKind::kInteger);
       }},
      {"BitwiseNot",
       [](Node& n) {
         // ~x is -1 - x in two's complement.
         return ConvertUnary(
             n, "bitwise_not", DtypeKind::kInteger, [](const Expr& x) {
               return ir::ConstOf(x->dtype, 0) - x - ir::ConstOf(x->dtype, 1);
             });
       }},
      {"And",
       [](Node& n) {
         return ConvertBinary(n, "logical_and", Apply<BinaryOp::kAnd>,
                              DtypeKind::kBool);
       }},
      {"Or",
       [](Node& n) {
         return ConvertBinary(n, "logical_or", Apply<BinaryOp::kOr>,
                              DtypeKind::kBool);
       }},
      {"Xor",
       [](Node& n) {
         return ConvertBinary(n, "logical_xor", Apply<BinaryOp::kNE>,
                              DtypeKind::kBool);
       }},
      {"Not",
       [](Node& n) {
         return ConvertUnary(n, "logical_not", DtypeKind::kBool,
                             [](const Expr& x) { return ir::MakeNot(x); });
       }},
      {"Equal",
       [](Node& n) {
         return ConvertBinary(n, "equal", Apply<BinaryOp::kEQ>, std::nullopt);
       }},
      {"Greater",
       [](Node& n) {
         return ConvertBinary(n, "greater", Apply<BinaryOp::kGT>);
       }},
      {"Less",
       [](Node& n) { return ConvertBinary(n, "less", Apply<BinaryOp::kLT>); }},
      {"GreaterOrEqual",
       [](Node& n) {
         return ConvertBinary(n, "greater_equal", Apply<BinaryOp::kGE>);
       }},
      {"LessOrEqual",
       [](Node& n) {
         return ConvertBinary(n, "less_equal", Apply<BinaryOp::kLE>);
       }},
      {"Min",
       [](Node& n) {
         return ConvertVariadic(n, "minimum", Apply<BinaryOp::kMin>);
       }},
      {"Max",
       [](Node& n) {
         return ConvertVariadic(n, "maximum", Apply<BinaryOp::kMax>);
       }},
      {"Sum",
       [](Node& n) {
         return ConvertVariadic(n, "add", Apply<BinaryOp::kAdd>,
                                DtypeKind::kFloat);
       }},
      {"Mean",
       [](Node& n) {
         return ConvertVariadic(n, "mean", Apply<BinaryOp::kAdd>,
                                DtypeKind::kFloat, /*mean=*/true);
       }},
      {"Where", ConvertWhere},
      {"Clip", ConvertClip},
  };
}

}  // namespace tilefarm::onnx
