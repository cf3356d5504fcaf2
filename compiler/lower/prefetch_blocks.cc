// Operands that exceed the L1 cache and are read in blocks of which two fit
// into the L2 cache:
//
//   for n in range(16):          # moves to the next block of B
//     for m in range(16):        # reads the block again
//       for k in range(768): ... B[n * 147456 + k * 192 : + 192] ...
//
// The first repetition waits for memory, which is idle during the others. So
// each repetition fetches its share of the next block into the L2 cache, a part
// of a row in each iteration of the innermost loop.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ir/machine_op.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/prefetch.h"

namespace tilefarm::lower {
namespace {

using ir::Expr;
using ir::Stmt;

// A fetch and its address take about a tenth of the time of so many uses of
// what is loaded.
constexpr int64_t kUsesOfAFetch = 12;

// Products of two such numbers do not overflow.
bool IsCount(int64_t n) { return n >= 1 && n <= int64_t{1} << 30; }

// What one iteration of the innermost loop reads of a buffer.
struct Row {
  ir::Buffer buffer;
  Expr first;                 // an index of it
  int64_t low = 0, high = 0;  // from `first` on; `high` is past the end
  int64_t uses = 0;           // loads of it
  bool is_known = true;
};

// Which block to fetch: `next` elements ahead, in which repetition of how many.
struct Plan {
  int64_t next = 0;
  int64_t repetitions = 1;
  Expr repetition = ir::IntConst(0);

  // What a repetition fetches of a row with so many elements.
  int64_t ShareOf(int64_t width) const {
    return (width + repetitions - 1) / repetitions;
  }
  int64_t FetchesOf(int64_t width, int64_t bytes) const {
    return (ShareOf(width) * bytes + kLineBytes - 1) / kLineBytes;
  }
};

class BlockPrefetcher : public ir::Mutator {
 public:
  using Mutator::Mutate;
  BlockPrefetcher(const ir::PrimFunc& function, const target::Target& target)
      : cache_bytes_(target.caches.l2_bytes) {
    for (const ir::Buffer& param : function.params) {
      if (param->num_elements() * param->dtype.bytes() >
          target.caches.l1_bytes) {
        large_.insert(param.get());
      }
    }
    ir::PreOrder(function.body, [&](const Stmt& stmt) {
      if (const auto* store = ir::As<ir::StoreNode>(stmt)) {
        large_.erase(store->buffer.get());
      }
      return true;
    });
  }
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ir::ForNode& s, const Stmt& self) override {
    // What a thread does next is not known.
    const bool serial = s.for_kind == ir::ForKind::kSerial;
    std::vector<const ir::ForNode*> outer = around_;
    if (serial) {
      around_.push_back(&s);
    } else {
      around_.clear();
    }
    const size_t mark = ranges_.Mark();
    BindLoop(ranges_, s);
    variables_.insert(s.var.get());
    Stmt result = Mutator::MutateFor(s, self);
    around_ = std::move(outer);
    std::vector<Stmt> body;
    if (serial && !HasLoop(s.body)) {
      for (const Row& row : RowsOf(s)) AddFetches(s, row, body);
    }
    variables_.erase(s.var.get());
    ranges_.Restore(mark);
    if (body.empty()) return result;
    body.push_back(s.body);
    return ir::MakeFor(s.var, s.extent, ir::MakeSeq(std::move(body)),
                       s.for_kind, s.annotations);
  }

 private:
  // Whether the index can be computed at the head of the loop, for a part of
  // the buffer also where conditions leave out the load.
  bool IsOfLoops(const Expr& index) {
    bool of_loops = ranges_.Bounds(index).lo >= 0;
    ir::PostOrderExprs(index, [&](const Expr& e) {
      const auto* var = ir::As<ir::VarNode>(e);
      of_loops &= e->kind != ir::ExprKind::kLoad &&
                  (var == nullptr || variables_.contains(var));
    });
    return of_loops;
  }

  // Of the large parameters, those whose elements lie side by side.
  std::vector<Row> RowsOf(const ir::ForNode& loop) {
    std::map<const ir::BufferNode*, Row> rows;
    ir::PostOrderExprs(loop.body, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      if (load == nullptr || load->indices.size() != 1) return;
      if (!large_.contains(load->buffer.get())) return;
      Row& row = rows[load->buffer.get()];
      const auto* ramp = ir::As<ir::RampNode>(load->indices[0]);
      const int lanes = load->indices[0]->dtype.lanes;
      ++row.uses;
      const Expr first = ramp != nullptr ? ramp->base : load->indices[0];
      if (row.first == nullptr) {
        row.buffer = load->buffer;
        row.first = first;
      }
      const std::optional<int64_t> at = math_.Difference(first, row.first);
      if (!at || first->dtype.is_vector() || load->predicate != nullptr ||
          (ramp != nullptr && !ir::IsConstInt(ramp->stride, 1))) {
        row.is_known = false;
        return;
      }
      row.low = std::min(row.low, *at);
      row.high = std::max(row.high, *at + lanes);
    });
    std::vector<Row> out;
    for (auto& [buffer, row] : rows) {
      if (row.is_known && IsOfLoops(row.first) &&
          StepOf(math_, row.first, loop.var) == row.high - row.low) {
        out.push_back(std::move(row));
      }
    }
    return out;
  }

  void AddFetches(const ir::ForNode& loop, const Row& row,
                  std::vector<Stmt>& out) {
    const std::optional<int64_t> extent = ir::AsInt(loop.extent);
    const int64_t width = row.high - row.low;
    const int64_t bytes = row.buffer->dtype.bytes();
    if (!extent || !IsCount(*extent) || !IsCount(width) ||
        !IsCount(*extent * width) || !ir::IsConstInt(loop.min, 0)) {
      return;
    }
    // From the inside: loops that walk the block, that repeat it, and that move
    // to the next. A larger block is repeated more often.
    int64_t elements = *extent * width, adjacent = elements;
    Plan plan;
    bool found = false;
    for (auto l = around_.rbegin(); l != around_.rend() && !found; ++l) {
      const std::optional<int64_t> times = ir::AsInt((*l)->extent);
      const std::optional<int64_t> step = StepOf(math_, row.first, (*l)->var);
      if (!times || !IsCount(*times) || !step) break;
      if (*step == 0) {
        plan.repetition =
            (*l)->var * ir::IntConst(plan.repetitions) + plan.repetition;
        plan.repetitions *= *times;
        if (!IsCount(plan.repetitions)) break;
        continue;
      }
      if (!IsCount(*step)) break;
      // Both blocks fit and have nothing in common, and fetches are few.
      if (2 * elements * bytes > cache_bytes_) break;
      plan.next = *step;
      found = plan.repetitions > 1 && *step >= adjacent &&
              plan.FetchesOf(width, bytes) * kUsesOfAFetch <= row.uses;
      elements *= *times;
      if (*step <= adjacent) adjacent += (*times - 1) * *step;
      if (!IsCount(elements) || !IsCount(adjacent)) break;
    }
    if (!found) return;
    // Of each row a share, or of each group of rows one element.
    const int64_t share = plan.ShareOf(width);
    const int64_t group = std::max<int64_t>(plan.repetitions / width, 1);
    if (*extent < group) return;
    const Expr begin = ir::Substitute(row.first, {{loop.var.get(), loop.min}}) +
                       ir::IntConst(plan.next + row.low);
    const Expr place =
        plan.repetition * ir::IntConst(*extent / group * share) +
        ir::FloorDiv(loop.var, ir::IntConst(group)) * ir::IntConst(share);
    for (int64_t at = 0; at < share; at += kLineBytes / bytes) {
      // Past the last block there is nothing to fetch.
      const Expr index = ir::Min(begin + place + ir::IntConst(at),
                                 ir::IntConst(row.buffer->num_elements() - 1));
      out.push_back(std::make_shared<const ir::EvaluateNode>(ir::MakeMachineOp(
          ir::MachineOp::kPrefetch, {ir::Load(row.buffer, {index})})));
    }
  }

  const int64_t cache_bytes_;
  IndexMath math_;
  IndexMath ranges_;  // of the variables of the loops around
  std::set<const ir::VarNode*> variables_;
  std::set<const ir::BufferNode*> large_;   // parameters that are only read
  std::vector<const ir::ForNode*> around_;  // serial loops, outermost first
};

}  // namespace

Stmt PrefetchBlocks(const ir::PrimFunc& function,
                    const target::Target& target) {
  // WebAssembly has no prefetches.
  if (target.is_webassembly()) return function.body;
  return BlockPrefetcher(function, target).Mutate(function.body);
}

}  // namespace tilefarm::lower
