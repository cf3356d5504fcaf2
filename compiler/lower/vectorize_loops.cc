#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/dot_lanes.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/guard_math.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/lane_vectorizer.h"
#include "compiler/lower/matrix_tiles.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/reduce_lanes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::ForKind;
using ir::Stmt;

// More chunks than this become a loop instead of copies.
constexpr int64_t kMaxReplicatedChunks = 16;

int PowerOfTwoAtMost(int64_t n) {
  int power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

// The size of the widest element type that a store computes with.
int WidestBytes(const ir::StoreNode& store) {
  int bytes = store.buffer->dtype.bytes();
  ir::PostOrderExprs(store.value, [&](const Expr& e) {
    if (ir::As<ir::LoadNode>(e) || ir::As<ir::CastNode>(e)) {
      bytes = std::max(bytes, e->dtype.bytes());
    }
  });
  return bytes;
}

// Vectorizes the stores of one loop's body; loops and conditions that do not
// depend on the lane stay around the vector code.
class LoopVectorizer {
 public:
  LoopVectorizer(IndexMath& math, const ir::ForNode& loop, int64_t extent,
                 const target::Target& target)
      : math_(math), loop_(loop), extent_(extent), target_(target) {}

  // Null if some part cannot be vectorized.
  Stmt Vectorize(const Stmt& stmt, const Expr& condition) {
    switch (stmt->kind) {
      case ir::StmtKind::kStore:
        return Store(*ir::As<ir::StoreNode>(stmt), condition);
      case ir::StmtKind::kSeq: {
        std::vector<Stmt> out;
        for (const Stmt& s : ir::As<ir::SeqNode>(stmt)->stmts) {
          out.push_back(Vectorize(s, condition));
          if (out.back() == nullptr) return nullptr;
        }
        return ir::MakeSeq(std::move(out));
      }
      case ir::StmtKind::kFor: {
        const auto& inner = *ir::As<ir::ForNode>(stmt);
        if (Varies(inner.min) || Varies(inner.extent)) return nullptr;
        const size_t mark = math_.Mark();
        BindLoop(math_, inner);
        Stmt body = Vectorize(inner.body, condition);
        math_.Restore(mark);
        if (body == nullptr) return nullptr;
        return std::make_shared<const ir::ForNode>(
            inner.var, inner.min, inner.extent, inner.for_kind, std::move(body),
            inner.annotations, inner.thread_tag);
      }
      case ir::StmtKind::kIf: {
        const auto& branch = *ir::As<ir::IfNode>(stmt);
        if (!Varies(branch.condition) && condition == nullptr) {
          Stmt then_case = Vectorize(branch.then_case, condition);
          Stmt else_case = branch.else_case == nullptr
                               ? nullptr
                               : Vectorize(branch.else_case, condition);
          if (then_case == nullptr ||
              (branch.else_case != nullptr && else_case == nullptr)) {
            return nullptr;
          }
          return ir::MakeIf(branch.condition, std::move(then_case),
                            std::move(else_case));
        }
        // Each part tests the condition again, so no part may change it.
        if (ReadsMemory(branch.condition)) return nullptr;
        const auto both = [&](const Expr& more) {
          return condition == nullptr ? more : ir::And(condition, more);
        };
        Stmt then_case = Vectorize(branch.then_case, both(branch.condition));
        if (then_case == nullptr) return nullptr;
        if (branch.else_case == nullptr) return then_case;
        Stmt else_case =
            Vectorize(branch.else_case, both(ir::MakeNot(branch.condition)));
        if (else_case == nullptr) return nullptr;
        return ir::MakeSeq({std::move(then_case), std::move(else_case)});
      }
      case ir::StmtKind::kLetStmt: {
        const auto& let = *ir::As<ir::LetStmtNode>(stmt);
        if (!Varies(let.value)) {
          Stmt body = Vectorize(let.body, condition);
          return body == nullptr ? nullptr
                                 : std::make_shared<const ir::LetStmtNode>(
                                       let.var, let.value, std::move(body));
        }
        if (ReadsMemory(let.value)) return nullptr;
        return Vectorize(ir::Substitute(let.body, {{let.var.get(), let.value}}),
                         condition);
      }
      case ir::StmtKind::kEvaluate:
        // The threads of a block wait for each other once, for all lanes; other
        // effects are those of one iteration.
        if (!ir::IsNoOp(stmt) && (condition != nullptr || !HasBarrier(stmt))) {
          return nullptr;
        }
        return stmt;
      default:
        return nullptr;
    }
  }

 private:
  bool Varies(const Expr& e) const { return ir::UsesVar(e, loop_.var.get()); }

  // The widest chunk, a power of two, in which every index is linear; the
  // native width if only very narrow chunks are linear.
  int ChunkLanes(const ir::StoreNode& store) {
    const int native = std::max(1, target_.vector_lanes(WidestBytes(store)));
    const int widest = std::min<int64_t>(
        native, PowerOfTwoAtMost(std::max<int64_t>(1, 2 * extent_ - 1)));
    for (int lanes = widest; lanes >= 4; lanes /= 2) {
      const ir::Var chunk = ir::MakeVar("chunk");
      const size_t mark = math_.Mark();
      math_.Bind(chunk.get(), 0, std::max<int64_t>(0, extent_ / lanes));
      const bool linear = LinearInLanes(
          math_, store, {loop_.var.get(), Expr(chunk) * lanes, lanes, lanes});
      math_.Restore(mark);
      if (linear) return lanes;
    }
    return widest;
  }

  Stmt Store(const ir::StoreNode& store, const Expr& condition) {
    const int lanes = ChunkLanes(store);
    const bool masks = target_.vector_bits >= 256;
    std::vector<Stmt> out;
    const auto emit = [&](const Expr& start, int width, int active) {
      Stmt stmt = VectorizeStore(math_, store, condition,
                                 {loop_.var.get(), start, width, active});
      const bool ok = stmt != nullptr;
      out.push_back(std::move(stmt));
      return ok;
    };
    const int64_t full = extent_ / lanes;
    int64_t done = 0;
    if (full > kMaxReplicatedChunks) {
      const ir::Var chunk = ir::MakeVar(loop_.var->name + "_chunk");
      const size_t mark = math_.Mark();
      math_.Bind(chunk.get(), 0, full - 1);
      const bool ok = emit(Expr(chunk) * lanes, lanes, lanes);
      math_.Restore(mark);
      if (!ok) return nullptr;
      out.back() = ir::MakeFor(chunk, ir::IntConst(full), out.back());
      done = full * lanes;
    }
    while (done < extent_) {
      const int64_t rest = extent_ - done;
      int width = lanes, active = lanes;
      if (rest < lanes) {
        width = PowerOfTwoAtMost(rest);
        active = width;
        if (width != rest && masks) {
          width *= 2;
          active = static_cast<int>(rest);
        }
      }
      if (!emit(ir::IntConst(done), width, active)) return nullptr;
      done += active;
    }
    return ir::MakeSeq(std::move(out));
  }

  IndexMath& math_;
  const ir::ForNode& loop_;
  const int64_t extent_;
  const target::Target& target_;
};

class Vectorizer : public ir::Mutator {
 public:
  explicit Vectorizer(const target::Target& target) : target_(target) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt&) override {
    if (s.annotations.contains(ir::kMatrixProduct)) {
      Stmt out = MatrixTiles(math_, s, target_);
      if (out != nullptr) return out;
    }
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    Stmt body = Mutate(s.body);
    math_.Restore(mark);
    if (s.for_kind == ForKind::kSerial &&
        s.annotations.contains(ir::kReduceLanes)) {
      Stmt out = ReduceLanes(math_, s, body, target_);
      if (out != nullptr) return out;
    }
    if (s.for_kind == ForKind::kVectorized) {
      if (s.annotations.contains(ir::kDotProduct)) {
        Stmt out = DotLanes(math_, s, body, target_);
        if (out != nullptr) return out;
      }
      const auto extent = ir::AsInt(s.extent);
      if (extent && ir::IsConstInt(s.min, 0)) {
        Stmt out =
            LoopVectorizer(math_, s, *extent, target_).Vectorize(body, nullptr);
        if (out != nullptr) return out;
      }
      return std::make_shared<const ir::ForNode>(
          s.var, s.min, s.extent, ForKind::kSerial, std::move(body),
          s.annotations);
    }
    return std::make_shared<const ir::ForNode>(s.var, s.min, s.extent,
                                               s.for_kind, std::move(body),
                                               s.annotations, s.thread_tag);
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt&) override {
    const size_t mark = math_.Mark();
    math_.Assume(s.condition);
    Stmt then_case = Mutate(s.then_case);
    math_.Restore(mark);
    Stmt else_case;
    if (s.else_case != nullptr) {
      math_.AssumeNot(s.condition);
      else_case = Mutate(s.else_case);
      math_.Restore(mark);
    }
    return ir::MakeIf(s.condition, std::move(then_case), std::move(else_case));
  }

 private:
  const target::Target& target_;
  IndexMath math_;
};

}  // namespace

Stmt VectorizeLoops(const Stmt& stmt, const target::Target& target) {
  return Vectorizer(target).Mutate(stmt);
}

}  // namespace tilefarm::lower
