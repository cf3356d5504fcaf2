#include "compiler/codegen/streaming_choice.h"

#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

using ir::Stmt;

// Stores that a second copy of the loop must add beside those that stream;
// below that it costs nothing to speak of.
constexpr int64_t kLeastSpared = 16;
// Vectors that a choice stands before: a branch for each one would cost.
constexpr double kLeastVectors = 4;

class ChoicePlacer : public ir::Mutator {
 public:
  ChoicePlacer(const ir::Var& aligned,
               const std::function<int64_t(const ir::StoreNode&)>& vectors)
      : aligned_(aligned), vectors_(vectors) {}
  using Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }

  struct Counts {
    int64_t stores = 0;     // in the text
    int64_t streaming = 0;  // of these
    double vectors = 0;     // streamed by one execution
  };
  Counts Count(const Stmt& stmt) const {
    Counts counts;
    const auto add = [&](const Stmt& child, double times) {
      const Counts more = Count(child);
      counts.stores += more.stores;
      counts.streaming += more.streaming;
      counts.vectors += times * more.vectors;
    };
    switch (stmt->kind) {
      case ir::StmtKind::kStore: {
        const int64_t vectors = vectors_(*ir::As<ir::StoreNode>(stmt));
        return {1, vectors > 0, static_cast<double>(vectors)};
      }
      case ir::StmtKind::kFor: {
        const auto* loop = ir::As<ir::ForNode>(stmt);
        add(loop->body,
            static_cast<double>(ir::AsInt(loop->extent).value_or(1)));
        break;
      }
      case ir::StmtKind::kSeq:
        for (const Stmt& child : ir::As<ir::SeqNode>(stmt)->stmts) {
          add(child, 1);
        }
        break;
      case ir::StmtKind::kIf: {
        const auto* branch = ir::As<ir::IfNode>(stmt);
        add(branch->then_case, 1);
        if (branch->else_case != nullptr) add(branch->else_case, 1);
        break;
      }
      case ir::StmtKind::kLetStmt:
        add(ir::As<ir::LetStmtNode>(stmt)->body, 1);
        break;
      case ir::StmtKind::kAlloc:
        add(ir::As<ir::AllocNode>(stmt)->body, 1);
        break;
      case ir::StmtKind::kBlock:
      case ir::StmtKind::kEvaluate:
        break;
    }
    return counts;
  }

  // Choices as far inside as may be; null: even one around `stmt` stands before
  // too few vectors.
  Stmt Place(const Stmt& stmt) {
    const Counts counts = Count(stmt);
    if (counts.streaming == 0) return stmt;
    if (counts.streaming < counts.stores) {
      const bool outer_failed = std::exchange(failed_, false);
      Stmt placed = Mutator::Mutate(stmt);
      const bool failed = std::exchange(failed_, outer_failed);
      if (!failed) return placed;
    }
    if (counts.vectors < kLeastVectors) return nullptr;
    return ir::MakeIf(aligned_, stmt, stmt);
  }

  // Of the children of a statement that Place takes apart.
  Stmt Mutate(const Stmt& stmt) override {
    if (failed_) return stmt;
    Stmt placed = Place(stmt);
    failed_ |= placed == nullptr;
    return placed == nullptr ? stmt : placed;
  }

 protected:
  // Neighbours that only stream have one choice.
  Stmt MutateSeq(const ir::SeqNode& seq, const Stmt&) override {
    std::vector<Stmt> parts, group;
    const auto end_group = [&] {
      if (group.empty()) return;
      parts.push_back(Mutate(ir::MakeSeq(std::exchange(group, {}))));
    };
    for (const Stmt& child : seq.stmts) {
      const Counts counts = Count(child);
      if (counts.streaming > 0 && counts.streaming == counts.stores) {
        group.push_back(child);
        continue;
      }
      end_group();
      parts.push_back(Mutate(child));
    }
    end_group();
    return ir::MakeSeq(std::move(parts));
  }

 private:
  const ir::Var& aligned_;
  const std::function<int64_t(const ir::StoreNode&)>& vectors_;
  bool failed_ = false;
};

}  // namespace

Stmt ChooseAtStores(
    const Stmt& body, const ir::Var& aligned,
    const std::function<int64_t(const ir::StoreNode&)>& vectors) {
  ChoicePlacer placer(aligned, vectors);
  const ChoicePlacer::Counts counts = placer.Count(body);
  if (counts.stores - counts.streaming < kLeastSpared) return nullptr;
  Stmt placed = placer.Place(body);
  const auto* choice = ir::As<ir::IfNode>(placed);
  // Around everything: that is two copies of the loop, asked each iteration.
  const bool whole = choice != nullptr && choice->condition == aligned;
  return whole ? nullptr : placed;
}

}  // namespace tilefarm::codegen
