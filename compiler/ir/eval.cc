#include "compiler/ir/eval.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/ir/eval_nodes.h"

namespace tilefarm::ir {
namespace {

// Wraps to the width of the dtype.
int64_t Wrap(int64_t value, DataType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.bits == 64) return value;
  const int shift = 64 - dtype.bits;
  const uint64_t up = static_cast<uint64_t>(value) << shift;
  return dtype.code == TypeCode::kUInt ? static_cast<int64_t>(up >> shift)
                                       : static_cast<int64_t>(up) >> shift;
}

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

bool Frame::CheckWritten(size_t slot, int64_t at, const BufferNode& buffer) {
  if (written[slot] == nullptr || written[slot][at] != 0) return true;
  Fail(absl::StatusCode::kFailedPrecondition,
       absl::StrCat("nothing has written element ", at, " of '", buffer.name,
                    "', which is read"));
  return false;
}

// --- Places --------------------------------------------------------------

int64_t OffsetEval::Eval(Frame& frame) const {
  int64_t offset = start_;
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

int64_t OffsetEval::EvalForRead(Frame& frame, size_t slot) const {
  const int64_t at = Eval(frame);
  return at < 0 || frame.CheckWritten(slot, at, *buffer_) ? at : -1;
}

OffsetEval EvalCompiler::Offset(const Buffer& buffer,
                                const std::vector<Expr>& indices) {
  OffsetEval out;
  out.buffer_ = buffer;
  for (const Expr& index : indices) out.indices_.push_back(Int(index));
  if (indices.size() == 1 && buffer->ndim() != 1) {
    // Lowered code accesses every buffer as flat.
    out.extents_ = {buffer->memory_elements()};
    out.strides_ = {1};
    return out;
  }
  TF_CHECK(static_cast<int>(indices.size()) == buffer->ndim());
  out.extents_ = buffer->shape;
  out.start_ = buffer->elem_offset;
  if (!buffer->strides.empty()) {
    out.strides_ = buffer->strides;
    return out;
  }
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
    case Intrinsic::kReinterpret: {
      const DataType from = node.args[0]->dtype.element();
      if (!from.is_float()) {
        return MakeInt([a = Int(node.args[0]), dtype](Frame& frame) {
          return Wrap(a->Eval(frame), dtype);
        });
      }
      return MakeInt([a = Float(node.args[0]), dtype](Frame& frame) {
        const double x = a->Eval(frame);
        return dtype.bits == 64
                   ? std::bit_cast<int64_t>(x)
                   : Wrap(std::bit_cast<int32_t>(static_cast<float>(x)), dtype);
      });
    }
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
  // The others are float functions, as the verifier has checked.
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
    case ExprKind::kMachineOp:
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
            const int64_t at = place.EvalForRead(frame, slot);
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

}  // namespace tilefarm::ir
