// online_softmax: a sum of exponentials, relative to the largest exponent, in
// one pass over the exponents (Milakov and Gimelshein, 2018), with vectors of
// partial results.
//
//   b1, b2 = sch.online_softmax(total, chunk=c, lanes=l)
//
//   for i, k: largest[i] = max(largest[i], x[i, k])
//   for i, k: total[i] += exp(x[i, k] - largest[i])
//
//   ->                                          k = k_0 * c + k_1 * l + k_2
//   for i, k_0, k_1, k_2:
//     largest_part[i, k_0, k_2] = max(largest_part[i, k_0, k_2], x[i, k])
//   for i, k_0, k_1, k_2:
//     total_part[i, k_0, k_2] += exp(x[i, k] - largest_part[i, k_0, k_2])
//   for i, k_0, k_2:
//     largest[i] = max(largest[i], largest_part[i, k_0, k_2])
//   for i, k_0, k_2:
//     total[i] += total_part[i, k_0, k_2] *
//                 exp(largest_part[i, k_0, k_2] - largest[i])
//
// With the first two below one loop k_0, a chunk is read from memory once.
// Terms beyond the end of the last chunk count as the lowest number and add 0.
//
// Steps: match both reductions (softmax_match.h), build the four blocks.
//
// The result differs by rounding. A term exp(x - m) is computed as exp(x - p) *
// exp(p - m), p <= m. Both differences are rounded with relative error u (the
// unit roundoff), so that their sum is within |x - m| * u of x - m, the same
// bound as for one difference. Two exponentials and a product replace one
// exponential: if an exponential has relative error e, that of a sum grows by
// at most e + 2u.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/reducer.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"
#include "compiler/schedule/softmax_match.h"

namespace tilefarm::schedule {
namespace {

class SoftmaxWriter {
 public:
  SoftmaxWriter(const ScheduleState& state, const Softmax& softmax,
                int64_t chunk, int64_t lanes)
      : softmax_(softmax),
        name_(LoopName(*softmax.total.reduce)),
        chunk_(chunk),
        lanes_(lanes),
        chunks_((softmax.extent + chunk - 1) / chunk) {
    std::vector<int64_t> shape;
    for (const ir::IterVar& iter : softmax.total.block->iters) {
      if (&iter == softmax.total.reduce) continue;
      shape.push_back(*ir::AsInt(iter.dom.extent));
    }
    shape.insert(shape.end(), {chunks_, lanes_});
    const auto part_of = [&](const RowReduction& reduction) {
      const ir::Buffer& whole = reduction.buffer();
      return ir::MakeBuffer(
          FreshBufferName(*state.FunctionOf(reduction.block.get()),
                          absl::StrCat(whole->name, "_part")),
          whole->dtype, shape, whole->scope);
    };
    largest_part_ = part_of(softmax.largest);
    total_part_ = part_of(softmax.total);
  }

  BlockNest LargestPart() const {
    return Part(
        softmax_.largest, largest_part_, softmax_.lowest,
        [](const ir::Expr& exponent, const ir::Expr&) { return exponent; });
  }
  BlockNest TotalPart() const {
    return Part(softmax_.total, total_part_,
                ir::FloatConst(0, total_part_->dtype),
                [&](const ir::Expr& exponent, const ir::Expr& largest) {
                  return softmax_.Exp(exponent, largest);
                });
  }
  BlockNest Largest() const {
    return Joined(softmax_.largest, [&](const std::vector<ir::Expr>& at) {
      return ir::Load(largest_part_, at);
    });
  }
  BlockNest Total() const {
    return Joined(softmax_.total, [&](const std::vector<ir::Expr>& at) {
      return ir::Load(total_part_, at) *
             softmax_.Exp(ir::Load(largest_part_, at), softmax_.relative);
    });
  }
  const ir::Buffer& largest_part() const { return largest_part_; }
  const ir::Buffer& total_part() const { return total_part_; }

 private:
  ir::IterVar ChunkIter(ir::IterType type) const {
    return NewIter(absl::StrCat(name_, "_0"), chunks_, type);
  }
  ir::IterVar LaneIter(ir::IterType type) const {
    return NewIter(absl::StrCat(name_, "_2"), lanes_, type);
  }

  // part[i, k_0, k_2] reduces value(exponent, largest_part[i, k_0, k_2]). Terms
  // beyond the range are `identity`.
  template <typename Value>
  BlockNest Part(const RowReduction& whole, const ir::Buffer& part,
                 const ir::Expr& identity, const Value& value) const {
    ir::BlockNode block;
    block.name = absl::StrCat(whole.block->name, "_part");
    ir::VarMap vars;
    std::vector<ir::Expr> at;
    arith::Analyzer analyzer;
    const auto add = [&](ir::IterVar iter) -> ir::Var {
      analyzer.Bind(iter.var, 0, *ir::AsInt(iter.dom.extent));
      if (iter.type == ir::IterType::kSpatial) at.push_back(iter.var);
      block.iters.push_back(std::move(iter));
      return block.iters.back().var;
    };
    for (const ir::IterVar& iter : softmax_.total.block->iters) {
      if (&iter == softmax_.total.reduce) continue;
      vars[iter.var.get()] = add(NewIter(
          LoopName(iter), *ir::AsInt(iter.dom.extent), ir::IterType::kSpatial));
    }
    const ir::Var in_chunks = add(ChunkIter(ir::IterType::kSpatial));
    const ir::Var in_chunk = add(NewIter(
        absl::StrCat(name_, "_1"), chunk_ / lanes_, ir::IterType::kReduce));
    const ir::Var in_lanes = add(LaneIter(ir::IterType::kSpatial));
    const ir::Expr place =
        ir::Expr(in_chunks) * chunk_ + ir::Expr(in_chunk) * lanes_ + in_lanes;
    vars[softmax_.total.reduce->var.get()] = place;
    ir::Expr term = value(ir::Substitute(softmax_.exponent, vars),
                          ir::Load(largest_part_, at));
    if (softmax_.extent % chunk_ != 0) {
      term = ir::IfThenElseExpr(ir::LT(place, ir::IntConst(softmax_.extent)),
                                term, identity);
      block.annotations.emplace(ir::kSkipPadding, ir::Attr(1));
    }
    block.init = ir::MakeStore(part, at, identity);
    block.body = ir::MakeStore(
        part, at,
        whole.reducer.Combine(ir::Load(part, at), analyzer.Simplify(term)));
    return MakeNest(std::move(block));
  }

  // The block that reduces the partial results, with the name, loops and
  // spatial variables of `whole`.
  template <typename Value>
  BlockNest Joined(const RowReduction& whole, const Value& value) const {
    const ir::IterVar chunk = ChunkIter(ir::IterType::kReduce);
    const ir::IterVar lane = LaneIter(ir::IterType::kReduce);
    ir::BlockNode block = *whole.block;
    block.iters.clear();
    for (const ir::IterVar& iter : whole.block->iters) {
      if (&iter == whole.reduce) {
        block.iters.insert(block.iters.end(), {chunk, lane});
      } else {
        block.iters.push_back(iter);
      }
    }
    std::vector<ir::Expr> at;
    for (const ir::IterVar& iter : softmax_.total.block->iters) {
      if (&iter == softmax_.total.reduce) continue;
      if (&whole == &softmax_.total) {
        at.push_back(iter.var);
        continue;
      }
      const auto found = softmax_.to_largest.find(iter.var.get());
      at.push_back(found == softmax_.to_largest.end() ? ir::IntConst(0)
                                                      : found->second);
    }
    at.insert(at.end(), {chunk.var, lane.var});
    const ir::StoreNode& store = whole.store();
    block.body =
        ir::MakeStore(store.buffer, store.indices,
                      whole.reducer.Combine(
                          ir::Load(store.buffer, store.indices), value(at)));
    BlockNest made;
    made.block = ir::BlockWithAccesses(std::move(block));
    made.nest = made.block;
    for (size_t i = whole.loops.size(); i-- > 0;) {
      made.nest =
          whole.loops[i]->var.get() == whole.reduce->binding.get()
              ? LoopOver(chunk, LoopOver(lane, std::move(made.nest)))
              : ir::Stmt(WithBody(*whole.loops[i], std::move(made.nest)));
    }
    return made;
  }

  const Softmax& softmax_;
  const std::string name_;  // name of the reduced range's loop
  const int64_t chunk_, lanes_, chunks_;
  ir::Buffer largest_part_, total_part_;
};

}  // namespace

absl::StatusOr<std::vector<BlockRv>> OnlineSoftmax(ScheduleState& state,
                                                   BlockRv block_rv,
                                                   int64_t chunk,
                                                   int64_t lanes) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  if (lanes < 1 || chunk < lanes || chunk % lanes != 0) {
    return state.Invalid(block.get(), "a chunk of ", chunk, " in lanes of ",
                         lanes, ": whole lanes are needed, one or more");
  }
  TF_ASSIGN_OR_RETURN(const Softmax softmax, MatchSoftmax(state, block));
  TF_RETURN_IF_ERROR(
      state.CheckMayDiffer(block.get(), "it rounds differently"));
  if (chunk > softmax.extent) {
    return state.Invalid(block.get(), "a chunk of ", chunk, " of a sum of ",
                         softmax.extent);
  }
  const SoftmaxWriter writer(state, softmax, chunk, lanes);
  const BlockNest largest_part = writer.LargestPart();
  const BlockNest total_part = writer.TotalPart();
  const BlockNest largest = writer.Largest();
  const BlockNest total = writer.Total();
  const ir::BlockPtr scope = state.Scope(block.get());
  ScopeEditor edit;
  edit.Replace(softmax.largest.loops[0].get(),
               ir::MakeSeq({largest_part.nest, total_part.nest, largest.nest}));
  edit.Replace(softmax.total.loops[0].get(), total.nest);
  edit.AddAlloc(writer.largest_part());
  edit.AddAlloc(writer.total_part());
  state.Replace(scope.get(), edit.Apply(*scope),
                {{softmax.largest.block.get(), largest.block.get()},
                 {block.get(), total.block.get()}});
  return std::vector<BlockRv>{state.NewBlock(largest_part.block),
                              state.NewBlock(total_part.block)};
}

}  // namespace tilefarm::schedule
