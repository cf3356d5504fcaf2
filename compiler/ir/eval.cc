#include "compiler/ir/eval.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/ir/float16.h"

namespace tilefarm::ir {
namespace {

template <typename F>
struct IntNode final : IntEval {
  explicit IntNode(F f) : f_(std::move(f)) {}
  int64_t Eval(Frame& frame) const override { return f_(frame); }
  F f_;
};
template <typename F>
IntEvalPtr MakeInt(F f) {
  return std::make_unique<IntNode<F>>(std::move(f));
}
template <typename F>
struct FloatNode final : FloatEval {
  explicit FloatNode(F f) : f_(std::move(f)) {}
  double Eval(Frame& frame) const override { return f_(frame); }
  F f_;
};
template <typename F>
FloatEvalPtr MakeFloat(F f) {
  return std::make_unique<FloatNode<F>>(std::move(f));
}

// Wraps to the width of the dtype.
int64_t Wrap(int64_t value, DataType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits == 64) return value;
  const int shift = 64 - dtype.bits;
  const uint64_t up = static_cast<uint64_t>(value) << shift;
  return dtype.code == TypeCode::kUInt ? static_cast<int64_t>(up >> shift)
                                       : static_cast<int64_t>(up) >> shift;
}

// Everything but float64 computes in float32.
bool IsSingle(DataType dtype) { return dtype.bits < 64; }

int64_t ToInt(double value, DataType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  if (dtype.is_uint()) {
    if (truncated <= 0) return 0;
    const double limit = std::ldexp(1.0, dtype.bits);
    if (truncated >= limit) return Wrap(-1, dtype);
    return static_cast<int64_t>(static_cast<uint64_t>(truncated));
  }
  const double limit = std::ldexp(1.0, dtype.bits - 1);
  const int64_t low = INT64_MIN >> (64 - dtype.bits);
  if (truncated < -limit) return low;
  if (truncated >= limit) return ~low;
  return static_cast<int64_t>(truncated);
}

bool IsUnsigned64(DataType dtype) {
  return dtype.is_uint() && dtype.bits == 64;
}

// Division as the operators define it; `b` is not zero.
int64_t Divide(BinaryOp op, int64_t a, int64_t b, bool unsigned64) {
  if (unsigned64) {
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    const bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
    return static_cast<int64_t>(quotient ? x / y : x % y);
  }
  // INT64_MIN / -1 wraps.
  if (b == -1) {
    const bool quotient = op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv;
    return quotient ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : 0;
  }
  int64_t quotient = a / b;
  int64_t rest = a % b;
  if (op == BinaryOp::kDiv) return quotient;
  if (op == BinaryOp::kMod) return rest;
  if (rest != 0 && (rest < 0) != (b < 0)) {
    rest += b;
    --quotient;
  }
  return op == BinaryOp::kFloorDiv ? quotient : rest;
}

template <typename T>
bool Holds(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kEQ:
      return a == b;
    case BinaryOp::kNE:
      return a != b;
    case BinaryOp::kLT:
      return a < b;
    case BinaryOp::kLE:
      return a <= b;
    case BinaryOp::kGT:
      return a > b;
    default:
      return a >= b;
  }
}

// sum(coefficient * variable) + constant.
struct LinearSum {
  std::vector<std::pair<const VarNode*, int64_t>> terms;
  uint64_t constant = 0;
};

bool Collect(const Expr& expr, uint64_t scale, LinearSum& out) {
  if (const auto* var = As<VarNode>(expr)) {
    for (auto& [known, coefficient] : out.terms) {
      if (known == var) {
        coefficient =
            static_cast<int64_t>(static_cast<uint64_t>(coefficient) + scale);
        return true;
      }
    }
    out.terms.emplace_back(var, static_cast<int64_t>(scale));
    return true;
  }
  if (const auto value = AsInt(expr)) {
    out.constant += static_cast<uint64_t>(*value) * scale;
    return true;
  }
  const auto* binary = As<BinaryNode>(expr);
  if (binary == nullptr) return false;
  switch (binary->op) {
    case BinaryOp::kAdd:
      return Collect(binary->a, scale, out) && Collect(binary->b, scale, out);
    case BinaryOp::kSub:
      return Collect(binary->a, scale, out) &&
             Collect(binary->b, 0 - scale, out);
    case BinaryOp::kMul:
      if (const auto right = AsInt(binary->b)) {
        return Collect(binary->a, scale * static_cast<uint64_t>(*right), out);
      }
      if (const auto left = AsInt(binary->a)) {
        return Collect(binary->b, scale * static_cast<uint64_t>(*left), out);
      }
      return false;
    default:
      return false;
  }
}

}  // namespace

void Frame::Fail(absl::StatusCode code, const std::string& message) {
  if (failed) return;
  failed = true;
  status = absl::Status(
      code, block == nullptr
                ? message
                : absl::StrCat("block \"", block->name, "\": ", message));
}

// --- Memory --------------------------------------------------------------

namespace {
template <typename T>
T ReadAs(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}
template <typename T>
void WriteAs(std::byte* data, int64_t index, T value) {
  std::memcpy(data + index * static_cast<int64_t>(sizeof(T)), &value,
              sizeof(T));
}
}  // namespace

int64_t ReadInt(const std::byte* data, int64_t index, DataType dtype) {
  if (dtype.is_bool()) return ReadAs<uint8_t>(data, index) != 0;
  const bool is_signed = dtype.is_int();
  switch (dtype.bits) {
    case 8:
      return is_signed ? int64_t{ReadAs<int8_t>(data, index)}
                       : int64_t{ReadAs<uint8_t>(data, index)};
    case 16:
      return is_signed ? int64_t{ReadAs<int16_t>(data, index)}
                       : int64_t{ReadAs<uint16_t>(data, index)};
    case 32:
      return is_signed ? int64_t{ReadAs<int32_t>(data, index)}
                       : int64_t{ReadAs<uint32_t>(data, index)};
    default:
      return ReadAs<int64_t>(data, index);
  }
}

double ReadFloat(const std::byte* data, int64_t index, DataType dtype) {
  if (dtype.bits == 64) return ReadAs<double>(data, index);
  if (dtype.bits == 32) return ReadAs<float>(data, index);
  const auto bits = ReadAs<uint16_t>(data, index);
  return dtype.code == TypeCode::kBFloat ? BFloatToFloat(bits)
                                         : HalfToFloat(bits);
}

void WriteInt(std::byte* data, int64_t index, DataType dtype, int64_t value) {
  switch (dtype.bits) {
    case 1:
      return WriteAs<uint8_t>(data, index, value != 0);
    case 8:
      return WriteAs(data, index, static_cast<uint8_t>(value));
    case 16:
      return WriteAs(data, index, static_cast<uint16_t>(value));
    case 32:
      return WriteAs(data, index, static_cast<uint32_t>(value));
    default:
      return WriteAs(data, index, value);
  }
}

void WriteFloat(std::byte* data, int64_t index, DataType dtype, double value) {
  if (dtype.bits == 64) return WriteAs(data, index, value);
  const float single = static_cast<float>(value);
  if (dtype.bits == 32) return WriteAs(data, index, single);
  WriteAs(data, index,
          dtype.code == TypeCode::kBFloat ? FloatToBFloat(single)
                                          : FloatToHalf(single));
}

// --- Places --------------------------------------------------------------

int64_t OffsetEval::Eval(Frame& frame) const {
  int64_t offset = 0;
  for (size_t i = 0; i < indices_.size(); ++i) {
    const int64_t index = indices_[i]->Eval(frame);
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(extents_[i])) {
      frame.Fail(absl::StatusCode::kOutOfRange,
                 absl::StrCat("index ", index, " of '", buffer_->name,
                              "' is out of bounds: dimension ", i,
                              " has extent ", extents_[i]));
      return -1;
    }
    offset += index * strides_[i];
  }
  return offset;
}

OffsetEval EvalCompiler::Offset(const Buffer& buffer,
                                const std::vector<Expr>& indices) {
  OffsetEval out;
  out.buffer_ = buffer;
  for (const Expr& index : indices) out.indices_.push_back(Int(index));
  if (indices.size() == 1 && buffer->ndim() != 1) {
    // Lowered code sees every buffer as flat.
    out.extents_ = {buffer->num_elements()};
    out.strides_ = {1};
    return out;
  }
  TF_CHECK(static_cast<int>(indices.size()) == buffer->ndim());
  out.extents_ = buffer->shape;
  out.strides_.resize(buffer->shape.size());
  int64_t stride = 1;
  for (size_t i = buffer->shape.size(); i-- > 0;) {
    out.strides_[i] = stride;
    stride *= buffer->shape[i];
  }
  return out;
}

// --- Compilation ---------------------------------------------------------

int EvalCompiler::Slot(const VarNode* var) {
  return vars_.emplace(var, static_cast<int>(vars_.size())).first->second;
}
int EvalCompiler::Slot(const BufferNode* buffer) {
  return buffers_.emplace(buffer, static_cast<int>(buffers_.size()))
      .first->second;
}

AnyEval EvalCompiler::Any(const Expr& expr) {
  AnyEval out;
  out.dtype = expr->dtype.element();
  if (out.dtype.is_float()) {
    out.real = Float(expr);
  } else {
    out.integer = Int(expr);
  }
  return out;
}

IntEvalPtr EvalCompiler::Linear(const Expr& expr) {
  if (!expr->dtype.is_index() || As<VarNode>(expr) || As<IntConstNode>(expr)) {
    return nullptr;
  }
  LinearSum sum;
  if (!Collect(expr, 1, sum)) return nullptr;
  std::vector<std::pair<int, int64_t>> terms;
  for (const auto& [var, coefficient] : sum.terms) {
    terms.emplace_back(Slot(var), coefficient);
  }
  return MakeInt([terms = std::move(terms),
                  constant = sum.constant](Frame& frame) {
    uint64_t value = constant;
    for (const auto& [slot, coefficient] : terms) {
      value += static_cast<uint64_t>(frame.ints[static_cast<size_t>(slot)]) *
               static_cast<uint64_t>(coefficient);
    }
    return static_cast<int64_t>(value);
  });
}

IntEvalPtr EvalCompiler::Compare(const BinaryNode& node) {
  const BinaryOp op = node.op;
  if (node.a->dtype.is_float()) {
    return MakeInt([op, a = Float(node.a), b = Float(node.b)](Frame& frame) {
      const double x = a->Eval(frame);
      return int64_t{Holds(op, x, b->Eval(frame))};
    });
  }
  if (IsUnsigned64(node.a->dtype.element())) {
    return MakeInt([op, a = Int(node.a), b = Int(node.b)](Frame& frame) {
      const auto x = static_cast<uint64_t>(a->Eval(frame));
      return int64_t{Holds(op, x, static_cast<uint64_t>(b->Eval(frame)))};
    });
  }
  return MakeInt([op, a = Int(node.a), b = Int(node.b)](Frame& frame) {
    const int64_t x = a->Eval(frame);
    return int64_t{Holds(op, x, b->Eval(frame))};
  });
}

IntEvalPtr EvalCompiler::IntBinary(const BinaryNode& node) {
  const BinaryOp op = node.op;
  const DataType dtype = node.dtype.element();
  if (IsComparison(op)) return Compare(node);
  IntEvalPtr a = Int(node.a);
  IntEvalPtr b = Int(node.b);
  const bool unsigned64 = IsUnsigned64(dtype);
  const auto arithmetic = [&](auto compute) {
    return MakeInt(
        [a = std::move(a), b = std::move(b), dtype, compute](Frame& frame) {
          const auto x = static_cast<uint64_t>(a->Eval(frame));
          const auto y = static_cast<uint64_t>(b->Eval(frame));
          return Wrap(static_cast<int64_t>(compute(x, y)), dtype);
        });
  };
  switch (op) {
    case BinaryOp::kAnd:
      return MakeInt([a = std::move(a), b = std::move(b)](Frame& frame) {
        return a->Eval(frame) != 0 ? b->Eval(frame) : int64_t{0};
      });
    case BinaryOp::kOr:
      return MakeInt([a = std::move(a), b = std::move(b)](Frame& frame) {
        return a->Eval(frame) != 0 ? int64_t{1} : b->Eval(frame);
      });
    case BinaryOp::kAdd:
      return arithmetic([](uint64_t x, uint64_t y) { return x + y; });
    case BinaryOp::kSub:
      return arithmetic([](uint64_t x, uint64_t y) { return x - y; });
    case BinaryOp::kMul:
      return arithmetic([](uint64_t x, uint64_t y) { return x * y; });
    case BinaryOp::kBitAnd:
      return arithmetic([](uint64_t x, uint64_t y) { return x & y; });
    case BinaryOp::kBitOr:
      return arithmetic([](uint64_t x, uint64_t y) { return x | y; });
    case BinaryOp::kBitXor:
      return arithmetic([](uint64_t x, uint64_t y) { return x ^ y; });
    case BinaryOp::kShiftLeft:
      return arithmetic([mask = dtype.bits - 1u](uint64_t x, uint64_t y) {
        return x << (y & mask);
      });
    case BinaryOp::kShiftRight:
      return arithmetic([mask = dtype.bits - 1u, is_signed = dtype.is_int()](
                            uint64_t x, uint64_t y) {
        return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(x) >>
                                                 (y & mask))
                         : x >> (y & mask);
      });
    case BinaryOp::kMin:
    case BinaryOp::kMax: {
      const bool want_min = op == BinaryOp::kMin;
      return arithmetic([want_min, unsigned64](uint64_t x, uint64_t y) {
        const bool less =
            unsigned64 ? x < y
                       : static_cast<int64_t>(x) < static_cast<int64_t>(y);
        return less == want_min ? x : y;
      });
    }
    default:
      break;
  }
  return MakeInt([op, dtype, unsigned64, a = std::move(a),
                  b = std::move(b)](Frame& frame) {
    const int64_t x = a->Eval(frame);
    const int64_t y = b->Eval(frame);
    if (y == 0) {
      frame.Fail(absl::StatusCode::kInvalidArgument,
                 "integer division by zero");
      return int64_t{0};
    }
    return Wrap(Divide(op, x, y, unsigned64), dtype);
  });
}

IntEvalPtr EvalCompiler::IntCall(const CallNode& node) {
  const DataType dtype = node.dtype.element();
  switch (node.op) {
    case Intrinsic::kIfThenElse:
      return MakeInt([c = Int(node.args[0]), a = Int(node.args[1]),
                      b = Int(node.args[2])](Frame& frame) {
        return c->Eval(frame) != 0 ? a->Eval(frame) : b->Eval(frame);
      });
    case Intrinsic::kIsNan:
      return MakeInt([a = Float(node.args[0])](Frame& frame) {
        return int64_t{std::isnan(a->Eval(frame))};
      });
    case Intrinsic::kIsInf:
      return MakeInt([a = Float(node.args[0])](Frame& frame) {
        return int64_t{std::isinf(a->Eval(frame))};
      });
    case Intrinsic::kAbs:
      return MakeInt([a = Int(node.args[0]), dtype](Frame& frame) {
        const int64_t x = a->Eval(frame);
        if (!dtype.is_int() || x >= 0) return x;
        return Wrap(static_cast<int64_t>(0 - static_cast<uint64_t>(x)), dtype);
      });
    case Intrinsic::kPopcount:
    case Intrinsic::kClz: {
      const bool zeros = node.op == Intrinsic::kClz;
      return MakeInt([a = Int(node.args[0]), dtype, zeros](Frame& frame) {
        uint64_t bits = static_cast<uint64_t>(a->Eval(frame));
        if (dtype.bits < 64) bits &= (uint64_t{1} << dtype.bits) - 1;
        return int64_t{zeros ? std::countl_zero(bits) - (64 - dtype.bits)
                             : std::popcount(bits)};
      });
    }
    default:
      break;
  }
  // The remaining ones are functions of floats; the verifier has said so.
  return MakeInt([](Frame& frame) {
    frame.Fail(absl::StatusCode::kInvalidArgument,
               "a function of floats has an integer dtype");
    return int64_t{0};
  });
}

IntEvalPtr EvalCompiler::Int(const Expr& expr) {
  if (IntEvalPtr linear = Linear(expr)) return linear;
  const DataType dtype = expr->dtype.element();
  switch (expr->kind) {
    case ExprKind::kVar:
      return MakeInt([slot = static_cast<size_t>(Slot(As<VarNode>(expr)))](
                         Frame& frame) { return frame.ints[slot]; });
    case ExprKind::kIntConst:
      return MakeInt([value = *AsInt(expr)](Frame&) { return value; });
    case ExprKind::kFloatConst:
      break;
    case ExprKind::kBinary:
      return IntBinary(*As<BinaryNode>(expr));
    case ExprKind::kNot:
      return MakeInt([a = Int(As<NotNode>(expr)->a)](Frame& frame) {
        return int64_t{a->Eval(frame) == 0};
      });
    case ExprKind::kCast: {
      const Expr& value = As<CastNode>(expr)->value;
      if (value->dtype.is_float()) {
        return MakeInt([a = Float(value), dtype](Frame& frame) {
          return ToInt(a->Eval(frame), dtype);
        });
      }
      return MakeInt([a = Int(value), dtype](Frame& frame) {
        return Wrap(a->Eval(frame), dtype);
      });
    }
    case ExprKind::kSelect: {
      const auto& node = *As<SelectNode>(expr);
      return MakeInt([c = Int(node.condition), a = Int(node.true_value),
                      b = Int(node.false_value)](Frame& frame) {
        const int64_t x = a->Eval(frame);
        const int64_t y = b->Eval(frame);
        return c->Eval(frame) != 0 ? x : y;
      });
    }
    case ExprKind::kCall:
      return IntCall(*As<CallNode>(expr));
    case ExprKind::kLoad: {
      const auto& node = *As<LoadNode>(expr);
      IntEvalPtr predicate;
      if (node.predicate != nullptr) predicate = Int(node.predicate);
      return MakeInt(
          [place = Offset(node.buffer, node.indices),
           predicate = std::move(predicate), dtype,
           slot = static_cast<size_t>(Slot(node.buffer.get()))](Frame& frame) {
            if (predicate != nullptr && predicate->Eval(frame) == 0) {
              return int64_t{0};
            }
            const int64_t at = place.Eval(frame);
            return at < 0 ? int64_t{0} : ReadInt(frame.data[slot], at, dtype);
          });
    }
    case ExprKind::kLet: {
      const auto& node = *As<LetNode>(expr);
      AnyEval value = Any(node.value);
      const auto slot = static_cast<size_t>(Slot(node.var.get()));
      return MakeInt([value = std::move(value), slot,
                      body = Int(node.body)](Frame& frame) {
        if (value.real != nullptr) {
          frame.floats[slot] = value.real->Eval(frame);
        } else {
          frame.ints[slot] = value.integer->Eval(frame);
        }
        return body->Eval(frame);
      });
    }
    case ExprKind::kRamp: {
      const auto& node = *As<RampNode>(expr);
      return MakeInt([base = Int(node.base), stride = Int(node.stride),
                      dtype](Frame& frame) {
        const int64_t start = base->Eval(frame);
        return Wrap(start + stride->Eval(frame) * frame.lane, dtype);
      });
    }
    case ExprKind::kBroadcast:
      return Int(As<BroadcastNode>(expr)->value);
  }
  TF_CHECK(false && "an integer expression");
  return nullptr;
}

FloatEvalPtr EvalCompiler::FloatBinary(const BinaryNode& node) {
  const bool single = IsSingle(node.dtype);
  const auto compute = [&](auto f) {
    return [&]() -> FloatEvalPtr {
      if (single) {
        return MakeFloat(
            [a = Float(node.a), b = Float(node.b), f](Frame& frame) -> double {
              const auto x = static_cast<float>(a->Eval(frame));
              return f(x, static_cast<float>(b->Eval(frame)));
            });
      }
      return MakeFloat(
          [a = Float(node.a), b = Float(node.b), f](Frame& frame) -> double {
            const double x = a->Eval(frame);
            return f(x, b->Eval(frame));
          });
    }();
  };
  switch (node.op) {
    case BinaryOp::kAdd:
      return compute([](auto x, auto y) { return x + y; });
    case BinaryOp::kSub:
      return compute([](auto x, auto y) { return x - y; });
    case BinaryOp::kMul:
      return compute([](auto x, auto y) { return x * y; });
    case BinaryOp::kDiv:
      return compute([](auto x, auto y) { return x / y; });
    case BinaryOp::kMin:
      return compute([](auto x, auto y) { return x < y ? x : y; });
    case BinaryOp::kMax:
      return compute([](auto x, auto y) { return x > y ? x : y; });
    case BinaryOp::kFloorDiv:
      return compute([](auto x, auto y) { return std::floor(x / y); });
    case BinaryOp::kFloorMod:
      return compute([](auto x, auto y) { return x - std::floor(x / y) * y; });
    case BinaryOp::kMod:
      return compute([](auto x, auto y) { return std::fmod(x, y); });
    default:
      break;
  }
  TF_CHECK(false && "an operator of floats");
  return nullptr;
}

FloatEvalPtr EvalCompiler::FloatCall(const CallNode& node) {
  const bool single = IsSingle(node.dtype);
  if (node.op == Intrinsic::kIfThenElse) {
    return MakeFloat([c = Int(node.args[0]), a = Float(node.args[1]),
                      b = Float(node.args[2])](Frame& frame) {
      return c->Eval(frame) != 0 ? a->Eval(frame) : b->Eval(frame);
    });
  }
  std::vector<FloatEvalPtr> args;
  for (const Expr& arg : node.args) args.push_back(Float(arg));
  if (node.op == Intrinsic::kFma) {
    return MakeFloat([single, a = std::move(args[0]), b = std::move(args[1]),
                      c = std::move(args[2])](Frame& frame) -> double {
      const double x = a->Eval(frame);
      const double y = b->Eval(frame);
      const double z = c->Eval(frame);
      // In float it must be rounded once, not through double.
      return single ? std::fma(static_cast<float>(x), static_cast<float>(y),
                               static_cast<float>(z))
                    : std::fma(x, y, z);
    });
  }
  // In double, then rounded: at most one unit in the last place from exact.
  const auto round = [single](double value) {
    return single ? static_cast<float>(value) : value;
  };
  if (args.size() == 2) {
    using Function = double (*)(double, double);
    const Function function =
        node.op == Intrinsic::kPow
            ? static_cast<Function>(
                  [](double x, double y) { return std::pow(x, y); })
        : node.op == Intrinsic::kAtan2
            ? static_cast<Function>(
                  [](double x, double y) { return std::atan2(x, y); })
            : static_cast<Function>(
                  [](double x, double y) { return std::copysign(x, y); });
    return MakeFloat([function, round, a = std::move(args[0]),
                      b = std::move(args[1])](Frame& frame) -> double {
      const double x = a->Eval(frame);
      return round(function(x, b->Eval(frame)));
    });
  }
  const auto unary = [&](double (*function)(double)) {
    return MakeFloat(
        [function, round, a = std::move(args[0])](Frame& frame) -> double {
          return round(function(a->Eval(frame)));
        });
  };
  switch (node.op) {
    case Intrinsic::kExp:
      return unary([](double x) { return std::exp(x); });
    case Intrinsic::kExp2:
      return unary([](double x) { return std::exp2(x); });
    case Intrinsic::kLog:
      return unary([](double x) { return std::log(x); });
    case Intrinsic::kLog2:
      return unary([](double x) { return std::log2(x); });
    case Intrinsic::kLog10:
      return unary([](double x) { return std::log10(x); });
    case Intrinsic::kLog1p:
      return unary([](double x) { return std::log1p(x); });
    case Intrinsic::kSqrt:
      return unary([](double x) { return std::sqrt(x); });
    case Intrinsic::kRsqrt:
      return unary([](double x) { return 1.0 / std::sqrt(x); });
    case Intrinsic::kTanh:
      return unary([](double x) { return std::tanh(x); });
    case Intrinsic::kSigmoid:
      return unary([](double x) { return 1.0 / (1.0 + std::exp(-x)); });
    case Intrinsic::kErf:
      return unary([](double x) { return std::erf(x); });
    case Intrinsic::kSin:
      return unary([](double x) { return std::sin(x); });
    case Intrinsic::kCos:
      return unary([](double x) { return std::cos(x); });
    case Intrinsic::kTan:
      return unary([](double x) { return std::tan(x); });
    case Intrinsic::kSinh:
      return unary([](double x) { return std::sinh(x); });
    case Intrinsic::kCosh:
      return unary([](double x) { return std::cosh(x); });
    case Intrinsic::kAtan:
      return unary([](double x) { return std::atan(x); });
    case Intrinsic::kAsin:
      return unary([](double x) { return std::asin(x); });
    case Intrinsic::kAcos:
      return unary([](double x) { return std::acos(x); });
    case Intrinsic::kAbs:
      return unary([](double x) { return std::fabs(x); });
    case Intrinsic::kFloor:
      return unary([](double x) { return std::floor(x); });
    case Intrinsic::kCeil:
      return unary([](double x) { return std::ceil(x); });
    case Intrinsic::kRound:
      return unary([](double x) { return std::round(x); });
    case Intrinsic::kNearbyint:
      return unary([](double x) { return std::nearbyint(x); });
    case Intrinsic::kTrunc:
      return unary([](double x) { return std::trunc(x); });
    default:
      break;
  }
  TF_CHECK(false && "a function of floats");
  return nullptr;
}

FloatEvalPtr EvalCompiler::Float(const Expr& expr) {
  const DataType dtype = expr->dtype.element();
  switch (expr->kind) {
    case ExprKind::kVar:
      return MakeFloat([slot = static_cast<size_t>(Slot(As<VarNode>(expr)))](
                           Frame& frame) { return frame.floats[slot]; });
    case ExprKind::kFloatConst: {
      double value = As<FloatConstNode>(expr)->value;
      if (IsSingle(dtype)) value = static_cast<float>(value);
      return MakeFloat([value](Frame&) { return value; });
    }
    case ExprKind::kBinary:
      return FloatBinary(*As<BinaryNode>(expr));
    case ExprKind::kCast: {
      const Expr& value = As<CastNode>(expr)->value;
      const bool single = IsSingle(dtype);
      if (value->dtype.is_float()) {
        return MakeFloat([a = Float(value), single](Frame& frame) {
          const double x = a->Eval(frame);
          return single ? static_cast<double>(static_cast<float>(x)) : x;
        });
      }
      const bool unsigned64 = IsUnsigned64(value->dtype.element());
      return MakeFloat([a = Int(value), single,
                        unsigned64](Frame& frame) -> double {
        const int64_t x = a->Eval(frame);
        if (unsigned64) {
          const auto bits = static_cast<uint64_t>(x);
          return single ? static_cast<float>(bits) : static_cast<double>(bits);
        }
        return single ? static_cast<float>(x) : static_cast<double>(x);
      });
    }
    case ExprKind::kSelect: {
      const auto& node = *As<SelectNode>(expr);
      return MakeFloat([c = Int(node.condition), a = Float(node.true_value),
                        b = Float(node.false_value)](Frame& frame) {
        const double x = a->Eval(frame);
        const double y = b->Eval(frame);
        return c->Eval(frame) != 0 ? x : y;
      });
    }
    case ExprKind::kCall:
      return FloatCall(*As<CallNode>(expr));
    case ExprKind::kLoad: {
      const auto& node = *As<LoadNode>(expr);
      IntEvalPtr predicate;
      if (node.predicate != nullptr) predicate = Int(node.predicate);
      return MakeFloat(
          [place = Offset(node.buffer, node.indices),
           predicate = std::move(predicate), dtype,
           slot = static_cast<size_t>(Slot(node.buffer.get()))](Frame& frame) {
            if (predicate != nullptr && predicate->Eval(frame) == 0) return 0.0;
            const int64_t at = place.Eval(frame);
            return at < 0 ? 0.0 : ReadFloat(frame.data[slot], at, dtype);
          });
    }
    case ExprKind::kLet: {
      const auto& node = *As<LetNode>(expr);
      AnyEval value = Any(node.value);
      const auto slot = static_cast<size_t>(Slot(node.var.get()));
      return MakeFloat([value = std::move(value), slot,
                        body = Float(node.body)](Frame& frame) {
        if (value.real != nullptr) {
          frame.floats[slot] = value.real->Eval(frame);
        } else {
          frame.ints[slot] = value.integer->Eval(frame);
        }
        return body->Eval(frame);
      });
    }
    case ExprKind::kBroadcast:
      return Float(As<BroadcastNode>(expr)->value);
    default:
      break;
  }
  TF_CHECK(false && "a float expression");
  return nullptr;
}

}  // namespace tilefarm::ir
