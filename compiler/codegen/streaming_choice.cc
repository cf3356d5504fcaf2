#include "compiler/codegen/streaming_choice.h"

#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"

namespace tilefarm::codegen {
namespace {

using ir::Stmt;

// A second copy of the loop is cheap if it adds fewer stores than this besides
// the streaming ones.
constexpr int64_t kLeastSpared = 16;
// The minimum number of vectors per choice; a branch for each vector would cost
// time.
constexpr double kLeastVectors = 4;

class ChoicePlacer : public ir::Mutator {
 public:
  ChoicePlacer(const ir::Var& aligned,
               const std::function<int64_t(const ir::StoreNode&)>& vectors)
      : aligned_(aligned), vectors_(vectors) {}
  using Mutator::Mutate;
  ir::Expr Mutate(const ir::Expr& expr) override { return expr; }

  struct Counts {
    int64_t stores = 0;     // in the code
    int64_t streaming = 0;  // the streaming ones
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

  // Places choices as far inside as possible. Null: even a choice around `stmt`
  // would enclose too few vectors.
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

  // Places choices in the children of a statement.
  Stmt Mutate(const Stmt& stmt) override {
    if (failed_) return stmt;
    Stmt placed = Place(stmt);
    failed_ |= placed == nullptr;
    return placed == nullptr ? stmt : placed;
  }

 protected:
  // Neighbouring statements that only stream share one choice.
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
  // A choice around everything would be two copies of the loop and a branch in
  // each iteration.
  const bool whole = choice != nullptr && choice->condition == aligned;
  return whole ? nullptr : placed;
}

}  // namespace tilefarm::codegen
