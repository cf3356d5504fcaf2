#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/guard_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::ForKind;
using ir::Stmt;

// The maximum number of copies of one store in an unrolled loop nest. Larger
// code exceeds the instruction cache and only increases compile time.
constexpr int64_t kMaxReplicatedStores = 4096;
// The maximum depth of nested loops that a pragma unrolls.
constexpr int kMaxPragmaDepth = 8;

// The size of a statement and whether it still contains a loop.
struct Size {
  int64_t stores = 0;
  bool has_loop = false;
  int unrolled_depth = 0;
};

class Unroller : public ir::Mutator {
 public:
  using Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }

 protected:
  Stmt MutateStore(const ir::StoreNode&, const Stmt& self) override {
    ++size_.stores;
    return self;
  }

  // Operations of machines take as much code.
  Stmt MutateEvaluate(const ir::EvaluateNode&, const Stmt& self) override {
    ++size_.stores;
    return self;
  }

  Stmt MutateSeq(const ir::SeqNode& s, const Stmt&) override {
    Size total;
    std::vector<Stmt> stmts;
    for (const Stmt& stmt : s.stmts) {
      size_ = {};
      stmts.push_back(Mutate(stmt));
      total.stores += size_.stores;
      total.has_loop |= size_.has_loop;
      total.unrolled_depth =
          std::max(total.unrolled_depth, size_.unrolled_depth);
    }
    size_ = total;
    return ir::MakeSeq(std::move(stmts));
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt&) override {
    Stmt then_case = Mutate(s.then_case);
    Stmt else_case;
    if (s.else_case != nullptr) {
      const Size first = std::exchange(size_, {});
      else_case = Mutate(s.else_case);
      size_.stores += first.stores;
      size_.has_loop |= first.has_loop;
    }
    return ir::MakeIf(s.condition, std::move(then_case), std::move(else_case));
  }

  Stmt MutateFor(const ir::ForNode& s, const Stmt&) override {
    const auto outer = std::make_pair(max_step_, explicit_);
    const auto pragma = [&](const char* key) -> std::optional<int64_t> {
      const auto found = s.annotations.find(key);
      if (found == s.annotations.end()) return std::nullopt;
      return found->second.AsInt();
    };
    if (const auto step = pragma(ir::kUnrollMaxStep)) {
      max_step_ = *step;
    }
    if (const auto flag = pragma(ir::kUnrollExplicit)) {
      explicit_ = *flag != 0;
    }
    size_ = {};
    Stmt body = Mutate(s.body);
    const auto extent = ir::AsInt(s.extent);
    bool unroll = false;
    if (extent && *extent > 0 && ir::IsConstInt(s.min, 0) &&
        *extent <= kMaxReplicatedStores / std::max<int64_t>(1, size_.stores)) {
      unroll = s.for_kind == ForKind::kUnrolled ||
               (s.for_kind == ForKind::kSerial && explicit_ &&
                !size_.has_loop && size_.unrolled_depth <= kMaxPragmaDepth &&
                *extent * size_.stores <= max_step_);
    }
    std::tie(max_step_, explicit_) = outer;
    if (!unroll) {
      size_.has_loop = true;
      const ForKind kind =
          s.for_kind == ForKind::kUnrolled ? ForKind::kSerial : s.for_kind;
      // Keep the annotations of later passes.
      ir::AttrMap annotations = s.annotations;
      annotations.erase(ir::kUnrollMaxStep);
      annotations.erase(ir::kUnrollExplicit);
      return std::make_shared<const ir::ForNode>(
          s.var, s.min, s.extent, kind, std::move(body), std::move(annotations),
          s.thread_tag);
    }
    size_.stores *= *extent;
    ++size_.unrolled_depth;
    // A condition that is the same for all copies is tested once.
    const auto* branch = ir::As<ir::IfNode>(body);
    const bool once = branch != nullptr && branch->else_case == nullptr &&
                      !ir::UsesVar(branch->condition, s.var.get()) &&
                      !ReadsMemory(branch->condition);
    const Stmt& copied = once ? branch->then_case : body;
    std::vector<Stmt> copies;
    for (int64_t i = 0; i < *extent; ++i) {
      copies.push_back(
          ir::Substitute(copied, {{s.var.get(), ir::IntConst(i)}}));
    }
    Stmt all = ir::MakeSeq(std::move(copies));
    return once ? ir::MakeIf(branch->condition, std::move(all)) : all;
  }

 private:
  int64_t max_step_ = 0;
  bool explicit_ = false;
  Size size_;
};

}  // namespace

Stmt UnrollLoops(const Stmt& stmt) { return Unroller().Mutate(stmt); }

}  // namespace tilefarm::lower
