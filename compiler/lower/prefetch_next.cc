#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/annotations.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/prefetch.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::Stmt;
using ir::Var;

// For rows of fewer cache lines, the loop over lines does not pay.
constexpr int64_t kLeastLines = 2;

class NextPrefetcher : public ir::Mutator {
 public:
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    const auto found = s.annotations.find(ir::kPrefetchNext);
    const bool asks = found != s.annotations.end() &&
                      found->second.AsInt().value_or(0) != 0 &&
                      s.for_kind == ir::ForKind::kSerial;
    if (asks) asking_.push_back(s.var);
    Stmt result = Mutator::MutateFor(s, self);
    if (asks) asking_.pop_back();
    if (asking_.empty() || HasLoop(s.body)) return result;
    Stmt cut = Cut(s);
    return cut == nullptr ? result : cut;
  }

 private:
  // Splits the loop by cache lines if it reads data of an annotated outer loop;
  // null if it does not.
  Stmt Cut(const ir::ForNode& loop) {
    const std::optional<int64_t> extent = ir::AsInt(loop.extent);
    if (loop.for_kind != ir::ForKind::kSerial || !extent ||
        !ir::IsConstInt(loop.min, 0)) {
      return nullptr;
    }
    std::map<std::string, int64_t> ahead;  // bytes, by buffer
    int64_t widest = 1;
    ir::PostOrderExprs(loop.body, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load == nullptr || load->indices.size() != 1 ||
          load->indices[0]->dtype.is_vector() ||
          load->buffer->scope == "local" ||
          ahead.contains(load->buffer->name) ||
          StepOf(math_, load->indices[0], loop.var) != 1) {
        return;
      }
      for (auto var = asking_.rbegin(); var != asking_.rend(); ++var) {
        const std::optional<int64_t> step =
            StepOf(math_, load->indices[0], *var);
        if (!step || *step == 0) continue;
        const int64_t bytes = load->buffer->dtype.bytes();
        ahead[load->buffer->name] = *step * bytes;
        widest = std::max(widest, bytes);
        return;
      }
    });
    const int64_t line = kLineBytes / widest;
    if (ahead.empty() || line < 1 || *extent < kLeastLines * line) {
      return nullptr;
    }
    ir::AttrList list;
    for (const auto& [name, bytes] : ahead) {
      list.emplace_back(name);
      list.emplace_back(bytes);
    }
    ir::AttrMap annotations = loop.annotations;
    annotations[ir::kPrefetchLines] = ir::Attr(std::move(list));
    const Var lines = ir::MakeVar(loop.var->name + "_line");
    const Var within = ir::MakeVar(loop.var->name);
    const auto at = [&](const Expr& place) {
      return ir::Substitute(loop.body, {{loop.var.get(), place}});
    };
    Stmt whole = ir::MakeFor(
        lines, ir::IntConst(*extent / line),
        ir::MakeFor(within, ir::IntConst(line), at(lines * line + within)),
        ir::ForKind::kSerial, std::move(annotations));
    const int64_t rest = *extent % line;
    if (rest == 0) return whole;
    const Var tail = ir::MakeVar(loop.var->name);
    return ir::MakeSeq(
        {std::move(whole),
         ir::MakeFor(tail, ir::IntConst(rest), at(tail + (*extent - rest)))});
  }

  IndexMath math_;
  std::vector<Var> asking_;  // annotated outer loops, innermost last
};

}  // namespace

ir::Stmt PrefetchNext(const ir::Stmt& stmt) {
  return NextPrefetcher().Mutate(stmt);
}

}  // namespace tilefarm::lower
