// Statements, functions and modules of the tensor IR. Immutable, shared by
// pointer, as expressions are.
//
// A scheduled function's body is its root block (named "root", no iteration
// variables), whose allocations are the function's intermediate buffers:
//
//   PrimFunc
//     Block root { allocs: C }
//       Seq
//         For i, j, k: Block "C" { v_i = i, v_j = j, v_k = k; init; body }
//         For i0, i1:  Block "compute" {...}
//
// Lowering turns blocks into plain statements, allocations into Alloc, and
// multi-dimensional accesses into flat ones.
#ifndef TILEFARM_COMPILER_IR_STMT_H_
#define TILEFARM_COMPILER_IR_STMT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/expr.h"

namespace tilefarm::ir {

// --- Attributes ----------------------------------------------------------

// A value of T.func_attr, T.sblock_attr or loop annotations.
struct Attr;
using AttrList = std::vector<Attr>;
using AttrMap = std::map<std::string, Attr>;
struct Attr {
  // monostate is None.
  std::variant<std::monostate, bool, int64_t, double, std::string, AttrList,
               AttrMap>
      value;

  Attr() = default;
  Attr(bool v) : value(v) {}
  Attr(int v) : value(static_cast<int64_t>(v)) {}
  Attr(int64_t v) : value(v) {}
  Attr(double v) : value(v) {}
  Attr(const char* v) : value(std::string(v)) {}
  Attr(std::string v) : value(std::move(v)) {}
  Attr(AttrList v) : value(std::move(v)) {}
  Attr(AttrMap v) : value(std::move(v)) {}

  // Bools give 0 and 1.
  std::optional<int64_t> AsInt() const;
  const std::string* AsString() const {
    return std::get_if<std::string>(&value);
  }
  const AttrList* AsList() const { return std::get_if<AttrList>(&value); }
  bool operator==(const Attr& other) const = default;
};

// --- Statements ----------------------------------------------------------

enum class StmtKind : uint8_t {
  kStore,
  kFor,
  kBlock,
  kSeq,
  kIf,
  kLetStmt,
  kEvaluate,
  // Lowered code only:
  kAlloc,
};

struct StmtNode {
  StmtKind kind;

 protected:
  explicit StmtNode(StmtKind k) : kind(k) {}
  ~StmtNode() = default;
};
using Stmt = std::shared_ptr<const StmtNode>;

template <typename T>
const T* As(const StmtNode* stmt) {
  return stmt != nullptr && stmt->kind == T::kKind ? static_cast<const T*>(stmt)
                                                   : nullptr;
}
template <typename T>
const T* As(const Stmt& stmt) {
  return As<T>(stmt.get());
}

// buffer[indices] = value. In lowered code the one index and the value may be
// vectors; `predicate` (may be null) masks lanes that must not be written.
struct StoreNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kStore;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  Expr predicate;
  StoreNode(Buffer b, std::vector<Expr> i, Expr v, Expr p = nullptr)
      : StmtNode(kKind),
        buffer(std::move(b)),
        indices(std::move(i)),
        value(std::move(v)),
        predicate(std::move(p)) {}
};

enum class ForKind : uint8_t {
  kSerial,
  kParallel,
  kVectorized,
  kUnrolled,
  kThreadBinding,
};

struct ForNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kFor;
  Var var;
  Expr min;     // almost always 0
  Expr extent;  // an int64 constant in programs
  ForKind for_kind = ForKind::kSerial;
  std::string thread_tag;  // "threadIdx.x", ... for kThreadBinding
  AttrMap annotations;
  Stmt body;
  ForNode(Var v, Expr m, Expr e, ForKind k, Stmt b, AttrMap a = {},
          std::string tag = "")
      : StmtNode(kKind),
        var(std::move(v)),
        min(std::move(m)),
        extent(std::move(e)),
        for_kind(k),
        thread_tag(std::move(tag)),
        annotations(std::move(a)),
        body(std::move(b)) {}
};
using ForPtr = std::shared_ptr<const ForNode>;

enum class IterType : uint8_t {
  kSpatial,  // data parallel: 'S'
  kReduce,   // 'R'
  kOpaque,   // ordered or unknown: 'O' (T.axis.opaque, T.axis.scan)
};

// A block variable: `T.axis.spatial(extent, binding)`. Its domain is [min, min
// + extent).
struct IterVar {
  Var var;
  Range dom;
  IterType type = IterType::kSpatial;
  Expr binding;  // its value, using the surrounding loops
};

struct BufferRegion {
  Buffer buffer;
  std::vector<Range> region;  // one per dimension
};

// The unit of computation. `init` (may be null) runs if every reduce variable
// is at its minimum. Accesses in the body stay within `reads` and `writes`. A
// block whose `predicate` is false does nothing.
struct BlockNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kBlock;
  std::string name;
  std::vector<IterVar> iters;
  Expr predicate;  // uses the surrounding loops; never null
  std::vector<BufferRegion> reads, writes;
  std::vector<Buffer> allocs;
  AttrMap annotations;
  Stmt init;
  Stmt body;
  BlockNode() : StmtNode(kKind) {}
  BlockNode(const BlockNode&) = default;
};
using BlockPtr = std::shared_ptr<const BlockNode>;

struct SeqNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kSeq;
  std::vector<Stmt> stmts;
  explicit SeqNode(std::vector<Stmt> s)
      : StmtNode(kKind), stmts(std::move(s)) {}
};

struct IfNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kIf;
  Expr condition;
  Stmt then_case;
  Stmt else_case;  // may be null
  IfNode(Expr c, Stmt t, Stmt e = nullptr)
      : StmtNode(kKind),
        condition(std::move(c)),
        then_case(std::move(t)),
        else_case(std::move(e)) {}
};

struct LetStmtNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kLetStmt;
  Var var;
  Expr value;
  Stmt body;
  LetStmtNode(Var v, Expr x, Stmt b)
      : StmtNode(kKind),
        var(std::move(v)),
        value(std::move(x)),
        body(std::move(b)) {}
};

// An expression evaluated for its side effect; `Evaluate(0)` is the empty
// statement.
struct EvaluateNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kEvaluate;
  Expr value;
  explicit EvaluateNode(Expr v) : StmtNode(kKind), value(std::move(v)) {}
};

// Workspace for `body`. `buffer` is flat (one dimension).
struct AllocNode : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kAlloc;
  Buffer buffer;
  Stmt body;
  AllocNode(Buffer b, Stmt s)
      : StmtNode(kKind), buffer(std::move(b)), body(std::move(s)) {}
};

// --- Construction --------------------------------------------------------

Stmt MakeStore(Buffer buffer, std::vector<Expr> indices, Expr value,
               Expr predicate = nullptr);
ForPtr MakeFor(Var var, Expr extent, Stmt body, ForKind kind = ForKind::kSerial,
               AttrMap annotations = {});
Stmt MakeIf(Expr condition, Stmt then_case, Stmt else_case = nullptr);
Stmt MakeAlloc(Buffer buffer, Stmt body);
Stmt NoOp();
bool IsNoOp(const Stmt& stmt);
// Flattens nested sequences and drops no-ops; returns a single statement as is.
Stmt MakeSeq(std::vector<Stmt> stmts);
// A copy of the block for editing; wrap it with BlockOf.
BlockPtr BlockOf(BlockNode block);

// --- Functions and modules -----------------------------------------------

// The parameters are the buffers, in the order of the calling convention.
// Before lowering `body` is the root block.
struct PrimFunc {
  std::string name;
  std::vector<Buffer> params;
  AttrMap attrs;  // "global_symbol", "tir.noalias", "layout_free_buffers", ...
  Stmt body;

  // The root block; null once lowered.
  const BlockNode* root() const { return As<BlockNode>(body); }
};
using PrimFuncPtr = std::shared_ptr<const PrimFunc>;

// Functions in program order; names are unique.
struct IRModule {
  std::vector<PrimFuncPtr> functions;

  // Null if there is none.
  PrimFuncPtr Find(std::string_view name) const;
};

}  // namespace tilefarm::ir

#endif  // TILEFARM_COMPILER_IR_STMT_H_
