#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/machine_op.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/passes.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::Stmt;

// A store of a vector whose elements are `stride` apart.
struct Strided {
  const ir::StoreNode* store;
  const ir::RampNode* ramp;
  int64_t stride;
};

std::optional<Strided> AsStrided(const Stmt& stmt) {
  const auto* store = ir::As<ir::StoreNode>(stmt);
  if (store == nullptr || store->predicate != nullptr) return std::nullopt;
  const auto* ramp = ir::As<ir::RampNode>(store->indices[0]);
  if (ramp == nullptr) return std::nullopt;
  const std::optional<int64_t> stride = ir::AsInt(ramp->stride);
  if (stride != 2 && stride != 4) return std::nullopt;
  if (ir::Loads(store->value, store->buffer.get())) return std::nullopt;
  return Strided{store, ramp, *stride};
}

class Interleaver : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateSeq(const ir::SeqNode& s, const Stmt&) override {
    std::vector<Stmt> stmts;
    for (size_t i = 0; i < s.stmts.size();) {
      size_t count = 0;
      Stmt merged = Merge(s.stmts, i, &count);
      if (merged == nullptr) {
        stmts.push_back(Mutate(s.stmts[i++]));
        continue;
      }
      stmts.push_back(std::move(merged));
      i += count;
    }
    return ir::MakeSeq(std::move(stmts));
  }

 private:
  // The stores from `at` on as one store; null if they leave gaps.
  Stmt Merge(const std::vector<Stmt>& stmts, size_t at, size_t* count) {
    const std::optional<Strided> first = AsStrided(stmts[at]);
    if (!first || at + first->stride > stmts.size()) return nullptr;
    std::vector<Expr> values = {first->store->value};
    for (int64_t i = 1; i < first->stride; ++i) {
      const std::optional<Strided> next = AsStrided(stmts[at + i]);
      if (!next || next->store->buffer != first->store->buffer ||
          next->stride != first->stride ||
          next->store->value->dtype != first->store->value->dtype ||
          math_.Difference(next->ramp->base, first->ramp->base) != i) {
        return nullptr;
      }
      values.push_back(next->store->value);
    }
    *count = values.size();
    const auto pair = [](Expr a, Expr b) {
      return ir::MakeMachineOp(ir::MachineOp::kInterleave,
                               {std::move(a), std::move(b)});
    };
    Expr value = values.size() == 2 ? pair(values[0], values[1])
                                    : pair(pair(values[0], values[2]),
                                           pair(values[1], values[3]));
    const int lanes = value->dtype.lanes;
    return ir::MakeStore(
        first->store->buffer,
        {ir::MakeRamp(first->ramp->base, ir::IntConst(1), lanes)},
        std::move(value));
  }

  IndexMath math_;
};

}  // namespace

Stmt InterleaveStores(const Stmt& stmt) { return Interleaver().Mutate(stmt); }

}  // namespace tilefarm::lower
