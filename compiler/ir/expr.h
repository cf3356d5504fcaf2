// Expressions of the tensor IR: immutable trees shared by pointer.
//
//   Var i = MakeVar("i");
//   Expr e = Load(a, {i * 4 + 1}) + FloatConst(1.0, DataType::Float(32));
//   if (const auto* add = As<BinaryNode>(e)) ...
//
// Identity of a Var or a Buffer is its pointer, never its name. Indices, loop
// variables and extents are int64; bare integer literals of the text are
// int64 unless their context gives them another type.
//
// The language is closed: everything a program can compute is one of the
// kinds below or an intrinsic of `Intrinsic`. Lowered code has some kinds of
// its own.
#ifndef TILEFARM_COMPILER_IR_EXPR_H_
#define TILEFARM_COMPILER_IR_EXPR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ir/dtype.h"

namespace tilefarm::ir {

enum class ExprKind : uint8_t {
  kVar,
  kIntConst,
  kFloatConst,
  kBinary,
  kNot,
  kCast,
  kSelect,
  kCall,
  kLoad,
  kLet,
  // Lowered code only:
  kRamp,
  kBroadcast,
  kMachineOp,  // machine_op.h
};

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,  // true division of floats; truncating division of integers
  kMod,  // C remainder of integers (T.truncmod)
  kFloorDiv,
  kFloorMod,
  kMin,
  kMax,
  kEQ,
  kNE,
  kLT,
  kLE,
  kGT,
  kGE,
  kAnd,  // logical; the right side is evaluated only where it matters
  kOr,
  kBitAnd,
  kBitOr,
  kBitXor,
  kShiftLeft,
  kShiftRight,
};

// Elementwise functions; every operand and the result have one dtype, but for
// kIfThenElse (bool, T, T), the two tests (T -> bool) and kReinterpret.
enum class Intrinsic : uint8_t {
  kIfThenElse,  // touches memory only on the side that is chosen
  kExp,
  kExp2,
  kLog,
  kLog2,
  kLog10,
  kLog1p,
  kSqrt,
  kRsqrt,
  kTanh,
  kSigmoid,
  kErf,
  kSin,
  kCos,
  kTan,
  kSinh,
  kCosh,
  kAtan,
  kAsin,
  kAcos,
  kAtan2,
  kPow,
  kAbs,
  kFloor,
  kCeil,
  kRound,      // half away from zero
  kNearbyint,  // half to even
  kTrunc,
  kFma,  // a * b + c, rounded once
  kCopySign,
  kIsNan,
  kIsInf,
  kPopcount,
  kClz,
  kReinterpret,  // the same bits as another dtype (MakeReinterpret)
};

struct ExprNode {
  ExprKind kind;
  DataType dtype;

 protected:
  ExprNode(ExprKind k, DataType t) : kind(k), dtype(t) {}
  ~ExprNode() = default;
};

using Expr = std::shared_ptr<const ExprNode>;

// The node as a T, or nullptr where it is of another kind.
template <typename T>
const T* As(const ExprNode* expr) {
  return expr != nullptr && expr->kind == T::kKind ? static_cast<const T*>(expr)
                                                   : nullptr;
}
template <typename T>
const T* As(const Expr& expr) {
  return As<T>(expr.get());
}

// `min <= x < min + extent`.
struct Range {
  Expr min;
  Expr extent;
};

// --- Buffers -------------------------------------------------------------

// A tensor: dense and row-major, unless it is a parameter with strides or an
// offset of its own. Shapes are static. Scope is "global" unless a schedule
// says otherwise ("shared", "local", ...).
struct BufferNode {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;  // empty: one element
  std::string scope = "global";
  // Row stride padding in elements per dimension as set by storage_align:
  // {axis, factor, offset}; empty where none.
  std::vector<std::vector<int64_t>> dim_align = {};
  // Where the caller of a parameter has its elements: the number of elements
  // from one index of each dimension to the next (empty: row-major, without
  // gaps), and from the pointer to the first one. Never negative.
  std::vector<int64_t> strides = {};
  int64_t elem_offset = 0;

  int ndim() const { return static_cast<int>(shape.size()); }
  bool is_dense() const { return strides.empty() && elem_offset == 0; }
  // Elements; shapes are checked on entry so that this does not overflow.
  int64_t num_elements() const;
  // Elements of memory from the pointer to the last element: `num_elements`
  // where the buffer is dense. Checked on entry, too.
  int64_t memory_elements() const;
};
using Buffer = std::shared_ptr<const BufferNode>;

// Bytes of `memory_elements` elements; nullopt where int64 cannot hold them.
std::optional<int64_t> MemoryBytes(const BufferNode& buffer);

Buffer MakeBuffer(std::string name, DataType dtype, std::vector<int64_t> shape,
                  std::string scope = "global");

// --- Nodes ---------------------------------------------------------------

struct VarNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kVar;
  std::string name;
  // A let defines it: its value may come from data, which wrap where indices
  // don't.
  bool of_let;
  VarNode(std::string n, DataType t, bool let = false)
      : ExprNode(kKind, t), name(std::move(n)), of_let(let) {}
};
using Var = std::shared_ptr<const VarNode>;

// An integer or bool constant.
struct IntConstNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kIntConst;
  int64_t value;  // uint64 constants are stored as their bit pattern
  IntConstNode(int64_t v, DataType t) : ExprNode(kKind, t), value(v) {}
};

struct FloatConstNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kFloatConst;
  double value;
  FloatConstNode(double v, DataType t) : ExprNode(kKind, t), value(v) {}
};

struct BinaryNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kBinary;
  BinaryOp op;
  Expr a, b;
  BinaryNode(BinaryOp o, Expr x, Expr y, DataType t)
      : ExprNode(kKind, t), op(o), a(std::move(x)), b(std::move(y)) {}
};

// Logical not.
struct NotNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kNot;
  Expr a;
  explicit NotNode(Expr x) : ExprNode(kKind, x->dtype), a(std::move(x)) {}
};

struct CastNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kCast;
  Expr value;
  CastNode(DataType t, Expr v) : ExprNode(kKind, t), value(std::move(v)) {}
};

// Both sides are evaluated.
struct SelectNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kSelect;
  Expr condition, true_value, false_value;
  SelectNode(Expr c, Expr t, Expr f)
      : ExprNode(kKind, t->dtype),
        condition(std::move(c)),
        true_value(std::move(t)),
        false_value(std::move(f)) {}
};

struct CallNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kCall;
  Intrinsic op;
  std::vector<Expr> args;
  CallNode(Intrinsic o, std::vector<Expr> a, DataType t)
      : ExprNode(kKind, t), op(o), args(std::move(a)) {}
};

// One element per dimension index. In lowered code a buffer is flat, has one
// index, and that may be a vector; `predicate` (bool, same lanes; may be
// null) masks lanes that must not touch memory: they read as zero.
struct LoadNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kLoad;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr predicate;
  LoadNode(Buffer b, std::vector<Expr> i, DataType t, Expr p = nullptr)
      : ExprNode(kKind, t),
        buffer(std::move(b)),
        indices(std::move(i)),
        predicate(std::move(p)) {}
};

struct LetNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kLet;
  Var var;
  Expr value, body;
  LetNode(Var v, Expr x, Expr b)
      : ExprNode(kKind, b->dtype),
        var(std::move(v)),
        value(std::move(x)),
        body(std::move(b)) {}
};

// base, base + stride, ... : `lanes` of them.
struct RampNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kRamp;
  Expr base, stride;
  RampNode(Expr b, Expr s, int lanes)
      : ExprNode(kKind, b->dtype.with_lanes(lanes)),
        base(std::move(b)),
        stride(std::move(s)) {}
};

struct BroadcastNode : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kBroadcast;
  Expr value;
  BroadcastNode(Expr v, int lanes)
      : ExprNode(kKind, v->dtype.with_lanes(lanes)), value(std::move(v)) {}
};

// --- Construction --------------------------------------------------------
// Operands must already have equal dtypes (checked: our invariant, the parser
// and te check users' input first). The named helpers fold constants and
// neutral elements (x + 0, x * 1, 0 * x on integers, ...); MakeBinary does
// not. Folding never changes a floating-point result.

// Of a loop, a block or a parameter; MakeLetVar: of a let.
Var MakeVar(std::string name, DataType dtype = DataType::Index());
Var MakeLetVar(std::string name, DataType dtype);
Expr IntConst(int64_t value, DataType dtype = DataType::Index());
Expr FloatConst(double value, DataType dtype);
Expr BoolConst(bool value);
// 0 or another small integer as a constant of any dtype.
Expr ConstOf(DataType dtype, int64_t value);
Expr MakeBinary(BinaryOp op, Expr a, Expr b);
Expr FoldBinary(BinaryOp op, Expr a, Expr b);
Expr MakeNot(Expr a);
Expr MakeCast(DataType dtype, Expr value);  // no-op where equal; folds consts
Expr MakeSelect(Expr condition, Expr true_value, Expr false_value);
Expr MakeCall(Intrinsic op, std::vector<Expr> args);
// The function of `call`, of other arguments of the same dtypes (lanes may
// differ).
Expr MakeCallLike(const CallNode& call, std::vector<Expr> args);
// Whether bits of one dtype can be read as the other: integers and floats of
// one width, but for 16-bit floats, which code computes in float32.
bool CanReinterpret(DataType to, DataType from);
// The bits of `value` as the element type of `dtype`. Folds finite constants
// and reinterpretations of reinterpretations.
Expr MakeReinterpret(DataType dtype, Expr value);
Expr IfThenElseExpr(Expr condition, Expr then_value, Expr else_value);
Expr Load(Buffer buffer, std::vector<Expr> indices);
Expr MakeLet(Var var, Expr value, Expr body);
Expr MakeRamp(Expr base, Expr stride, int lanes);
Expr MakeBroadcast(Expr value, int lanes);

inline Expr operator+(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kAdd, std::move(a), std::move(b));
}
inline Expr operator-(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kSub, std::move(a), std::move(b));
}
inline Expr operator*(Expr a, Expr b) {
  return FoldBinary(BinaryOp::kMul, std::move(a), std::move(b));
}
// The integer takes the dtype of the expression.
Expr operator+(Expr a, int64_t b);
Expr operator-(Expr a, int64_t b);
Expr operator*(Expr a, int64_t b);
Expr FloorDiv(Expr a, Expr b);
Expr FloorMod(Expr a, Expr b);
Expr Min(Expr a, Expr b);
Expr Max(Expr a, Expr b);
Expr EQ(Expr a, Expr b);
Expr NE(Expr a, Expr b);
Expr LT(Expr a, Expr b);
Expr LE(Expr a, Expr b);
Expr GT(Expr a, Expr b);
Expr GE(Expr a, Expr b);
Expr And(Expr a, Expr b);
Expr Or(Expr a, Expr b);

// The value of an integer constant.
std::optional<int64_t> AsInt(const Expr& expr);
// The same, also where it is the value of all lanes of a vector.
std::optional<int64_t> AsUniformInt(const Expr& expr);
inline bool IsConstInt(const Expr& expr, int64_t value) {
  const auto* node = As<IntConstNode>(expr);
  return node != nullptr && node->value == value;
}
bool IsComparison(BinaryOp op);
// The innermost index of an access; null for a buffer of rank 0.
inline Expr LastIndex(const std::vector<Expr>& indices) {
  return indices.empty() ? nullptr : indices.back();
}

// --- Names of operators in the text --------------------------------------

// "T.exp"-style name without the prefix ("exp", "if_then_else").
std::string_view IntrinsicName(Intrinsic op);
std::optional<Intrinsic> FindIntrinsic(std::string_view name);
int IntrinsicArity(Intrinsic op);
// "+", "//", "<=", "and", "min", ...
std::string_view BinaryOpName(BinaryOp op);

// For messages and tests; same text as the printer's.
std::string ToString(const Expr& expr);

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_EXPR_H_
