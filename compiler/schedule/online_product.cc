// online_product: a product whose operand is a softmax, in one pass over the
// terms (Milakov and Gimelshein, 2018; Dao et al., "FlashAttention", 2022):
//
//   b1, .. = sch.online_product(product, tile=t, apart=a, chunk=c)
//
//   for i, j: S[i, j] = ..                                         (any block)
//   for i, j: M[i] = max(M[i], x[i, j])                      (x made from S)
//   for i, j: D[i] += exp(x[i, j] - M[i])
//   for i, j: P[i, j] = exp(x[i, j] - M[i]) / D[i]
//   for i, d, j: O[i, d] += P[i, j] * V[j, d]
//
//   ->            i = i_0 * t * a + i_1 * a + i_2, j = j_0 * c + j_1
//   for i_0, i_2:
//     for j_0:
//       for i_1, j_1:    S[i, j] = ..
//       for i_1, j_1:    M_part[i, j_0] = max(M_part[i, j_0], x[i, j])
//       for i_1:         F[i] = exp(M[i] - max(M[i], M_part[i, j_0]))
//                        M[i] = max(M[i], M_part[i, j_0])
//       for i_1, j_1:    E[i, j] = exp(x[i, j] - M[i])
//       for i_1, j_1:    D_part[i, j_0] += E[i, j]
//       for i_1:         D[i] = D[i] * F[i] + D_part[i, j_0]
//       for i_1, j_1:    P[i, j] = E[i, j]
//       for i_1, d, j_1: O_part[j_0, i, d] += P[i, j] * V[j, d]
//       for i_1, d:      O_sum[i, d] = O_sum[i, d] * F[i] + O_part[j_0, i, d]
//     for i_1, d:        O[i, d] = O_sum[i, d] / D[i]
//
// Sums are relative to the maximum of the terms so far, by which F scales the
// sums of earlier chunks; a chunk's rows of S need not be kept. All blocks of a
// tile of t rows, `a` rows apart, are below the loops over chunks; variables
// that P and V have in common are loops around all.
//
// Steps: match the blocks (softmax_product.h), build those that replace them.
//
// The result differs by rounding: P is not divided by D before it is rounded to
// its type, and a term is multiplied by up to N / c factors exp(m - m'), m <=
// m', of which all but those where the maximum grows are 1. An exponent x - m
// is thereby the sum of as many differences, whose rounding errors are within u
// (the unit roundoff) times |x - m| together. Powers are of 2, exp2((x - m) *
// (scale * log2(e))), for which matrix processors have an instruction: the
// product with a constant, itself rounded, is off by 2 u |x - m| more.
#include <numbers>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/regions.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/block_info.h"
#include "compiler/schedule/block_primitives.h"
#include "compiler/schedule/ir_copy.h"
#include "compiler/schedule/own_loops.h"
#include "compiler/schedule/region_analysis.h"
#include "compiler/schedule/scope_edit.h"
#include "compiler/schedule/softmax_match.h"
#include "compiler/schedule/softmax_product.h"

namespace tilefarm::schedule {
namespace {

using ir::Expr;
using ir::IterVar;
using ir::VarNode;

// The same casts around another value.
Expr InCastsOf(const Expr& e, const Expr& value) {
  const auto* cast = ir::As<ir::CastNode>(e);
  return cast == nullptr
             ? value
             : ir::MakeCast(cast->dtype, InCastsOf(cast->value, value));
}

struct ProductTile {
  int64_t rows, apart, chunk;
};

class ProductWriter {
 public:
  ProductWriter(const ScheduleState& state, const SoftmaxProduct& chain,
                const ProductRoles& roles, ProductTile tile)
      : function_(*state.FunctionOf(chain.shares.get())),
        chain_(chain),
        softmax_(chain.softmax),
        roles_(roles),
        tile_(tile),
        chunks_(DomainSize(*roles.terms) / tile.chunk) {
    const auto add = [&](const IterVar& iter, int64_t extent,
                         const char* suffix) {
      loops_.push_back(
          {ir::MakeVar(absl::StrCat(LoopName(iter), suffix)), extent});
      return loops_.back().var;
    };
    for (const IterVar* iter : roles.common) {
      place_[iter] = add(*iter, DomainSize(*iter), "");
    }
    outer_row_ = add(*roles.rows,
                     DomainSize(*roles.rows) / (tile.rows * tile.apart), "_0");
    inner_row_ = add(*roles.rows, tile.apart, "_2");
    chunk_ = ir::MakeVar(absl::StrCat(LoopName(*roles.terms), "_0"));

    const auto fresh = [&](const ir::Buffer& like, const char* suffix,
                           std::vector<int64_t> shape) {
      made_.push_back(ir::MakeBuffer(
          FreshBufferName(function_, absl::StrCat(like->name, suffix)),
          softmax_.total.buffer()->dtype, std::move(shape), like->scope));
      return made_.back();
    };
    const ir::Buffer& largest = softmax_.largest.buffer();
    const ir::Buffer& total = softmax_.total.buffer();
    const ir::Buffer& product = chain_.product.buffer();
    std::vector<int64_t> row;
    for (const IterVar* iter : roles.common) row.push_back(DomainSize(*iter));
    row.push_back(DomainSize(*roles.rows));
    const auto with = [](std::vector<int64_t> shape, int64_t more) {
      shape.push_back(more);
      return shape;
    };
    largest_part_ = fresh(largest, "_part", with(row, chunks_));
    factor_ = fresh(largest, "_factor", row);
    exponentials_ = fresh(total, "_exp", with(row, DomainSize(*roles.terms)));
    total_part_ = fresh(total, "_part", with(row, chunks_));
    // Columns stay side by side.
    std::vector<int64_t> parts{chunks_};
    parts.insert(parts.end(), product->shape.begin(), product->shape.end());
    product_part_ = fresh(product, "_part", std::move(parts));
    product_sum_ = fresh(product, "_sum", product->shape);
  }

  const std::vector<ir::Buffer>& made() const { return made_; }
  const std::vector<ir::BlockPtr>& blocks() const { return blocks_; }
  // The program's blocks live on in those that write their buffers.
  const BlockReuse& reuse() const { return reuse_; }

  // The nest; its blocks are then in blocks(), in their order.
  ir::Stmt Write() {
    std::vector<ir::Stmt> chunk;
    if (chain_.scores != nullptr) chunk.push_back(Scores());
    chunk.insert(chunk.end(),
                 {LargestPart(), Largest(), Exponentials(), TotalPart(),
                  Total(), Shares(), ProductPart(), ProductSum()});
    ir::Stmt nest = ir::MakeSeq(
        {ir::MakeFor(chunk_, ir::IntConst(chunks_), ir::MakeSeq(chunk)),
         Result()});
    for (size_t i = loops_.size(); i-- > 0;) {
      nest = ir::MakeFor(loops_[i].var, ir::IntConst(loops_[i].extent), nest);
    }
    return nest;
  }

 private:
  struct Loop {
    ir::Var var;
    int64_t extent;
  };

  // A new block, as it is put together: its variables stand for those of the
  // product.
  struct Draft {
    ir::BlockNode block;
    std::vector<Loop> loops;  // of its own
    // The product's variable -> the block's value of it.
    std::unordered_map<const IterVar*, Expr> values;
    std::vector<Expr> row;  // common variables and the row
    Expr chunk;             // null: it has none

    std::vector<Expr> RowAnd(const Expr& more) const {
      std::vector<Expr> at = row;
      at.push_back(more);
      return at;
    }
  };

  ir::Var AddIter(Draft& draft, const std::string& name, int64_t extent,
                  ir::IterType type, Expr binding) const {
    draft.block.iters.push_back({ir::MakeVar(absl::StrCat("v", name)),
                                 {ir::IntConst(0), ir::IntConst(extent)},
                                 type,
                                 std::move(binding)});
    return draft.block.iters.back().var;
  }
  ir::Var AddLoop(Draft& draft, const std::string& name, int64_t extent) const {
    draft.loops.push_back({ir::MakeVar(name), extent});
    return draft.loops.back().var;
  }

  // The row of an iteration of the draft's own loop over a tile's rows.
  Expr Row(Draft& draft) const {
    const ir::Var tile =
        AddLoop(draft, absl::StrCat(LoopName(*roles_.rows), "_1"), tile_.rows);
    return Expr(outer_row_) * (tile_.rows * tile_.apart) +
           Expr(tile) * tile_.apart + inner_row_;
  }
  // The term of an iteration of the draft's own loop over a chunk.
  Expr Term(Draft& draft) const {
    return Expr(chunk_) * tile_.chunk +
           AddLoop(draft, absl::StrCat(LoopName(*roles_.terms), "_1"),
                   tile_.chunk);
  }

  // With the variables of rows and those in common. The name is `like`'s if it
  // takes over its place, else a new one.
  Draft Begin(const ir::BlockPtr& like, const char* suffix = nullptr) const {
    Draft draft;
    draft.block.predicate = ir::BoolConst(true);
    draft.block.name =
        suffix == nullptr
            ? like->name
            : FreshBlockName(function_.body, absl::StrCat(like->name, suffix));
    for (const IterVar* iter : roles_.common) {
      draft.values[iter] = AddIter(draft, LoopName(*iter), DomainSize(*iter),
                                   ir::IterType::kSpatial, place_.at(iter));
      draft.row.push_back(draft.values[iter]);
    }
    draft.values[roles_.rows] =
        AddIter(draft, LoopName(*roles_.rows), DomainSize(*roles_.rows),
                ir::IterType::kSpatial, Row(draft));
    draft.row.push_back(draft.values[roles_.rows]);
    return draft;
  }
  void AddColumns(Draft& draft) const {
    for (const IterVar* iter : roles_.columns) {
      const std::string name = LoopName(*iter);
      draft.values[iter] =
          AddIter(draft, name, DomainSize(*iter), ir::IterType::kSpatial,
                  AddLoop(draft, name, DomainSize(*iter)));
    }
  }
  void AddChunk(Draft& draft, ir::IterType type) const {
    draft.chunk = AddIter(draft, absl::StrCat(LoopName(*roles_.terms), "_0"),
                          chunks_, type, chunk_);
  }
  void AddTerm(Draft& draft) const {
    draft.values[roles_.terms] =
        AddIter(draft, LoopName(*roles_.terms), DomainSize(*roles_.terms),
                ir::IterType::kSpatial, Term(draft));
  }
  // The chunk as a spatial variable, and the terms in it as a reduced one.
  void AddChunkOfTerms(Draft& draft) const {
    AddChunk(draft, ir::IterType::kSpatial);
    const std::string name = absl::StrCat(LoopName(*roles_.terms), "_1");
    const ir::Var term =
        AddIter(draft, name, tile_.chunk, ir::IterType::kReduce,
                AddLoop(draft, name, tile_.chunk));
    draft.values[roles_.terms] = draft.chunk * tile_.chunk + Expr(term);
  }

  // An expression of one of the program's blocks, in the draft's variables.
  Expr In(const Draft& draft, const Expr& e) const {
    ir::VarMap vars;
    for (const auto& [var, iter] : roles_.of) {
      const auto found = draft.values.find(iter);
      if (found != draft.values.end()) vars[var] = found->second;
    }
    // Those of one iteration may have no part.
    for (const ir::BlockPtr& block :
         {softmax_.largest.block, softmax_.total.block}) {
      for (const IterVar& iter : block->iters) {
        if (IsUnit(iter)) vars.try_emplace(iter.var.get(), ir::IntConst(0));
      }
    }
    return ir::Substitute(e, vars);
  }
  std::vector<Expr> In(const Draft& draft,
                       const std::vector<Expr>& indices) const {
    std::vector<Expr> out;
    for (const Expr& index : indices) out.push_back(In(draft, index));
    return out;
  }

  // `old`: the block that lives on in it; null: there is none.
  ir::Stmt End(Draft draft, const ir::BlockPtr& old = nullptr) {
    blocks_.push_back(ir::BlockWithAccesses(std::move(draft.block)));
    if (old != nullptr) reuse_.emplace_back(old.get(), blocks_.back().get());
    ir::Stmt nest = blocks_.back();
    for (size_t i = draft.loops.size(); i-- > 0;) {
      nest = ir::MakeFor(draft.loops[i].var,
                         ir::IntConst(draft.loops[i].extent), nest);
    }
    return nest;
  }

  // A block of the program whose variables have new bindings.
  ir::Stmt Moved(const ir::BlockPtr& block, const ir::Stmt& body,
                 const std::vector<ir::ForPtr>& loops) {
    Draft draft;
    draft.block = *block;
    draft.block.body = body;
    for (IterVar& iter : draft.block.iters) {
      const IterVar* part = roles_.Of(iter.var.get());
      if (part == roles_.rows) {
        iter.binding = Row(draft);
      } else if (part == roles_.terms) {
        iter.binding = Term(draft);
      } else if (part != nullptr && place_.contains(part)) {
        iter.binding = place_.at(part);
      } else {
        // Its own loop.
        for (const ir::ForPtr& loop : loops) {
          if (loop->var != iter.binding) continue;
          const ir::Var own = AddLoop(draft, loop->var->name, DomainSize(iter));
          iter.binding = own;
          break;
        }
      }
    }
    return End(std::move(draft), block);
  }

  ir::Stmt Scores() {
    return Moved(chain_.scores, chain_.scores->body, chain_.scores_loops);
  }

  ir::Stmt LargestPart() {
    Draft draft = Begin(softmax_.largest.block, "_part");
    AddChunkOfTerms(draft);
    const std::vector<Expr> at = draft.RowAnd(draft.chunk);
    draft.block.init = ir::MakeStore(largest_part_, at, softmax_.lowest);
    draft.block.body = ir::MakeStore(
        largest_part_, at,
        softmax_.largest.reducer.Combine(ir::Load(largest_part_, at),
                                         In(draft, softmax_.exponent)));
    return End(std::move(draft));
  }

  ir::Stmt Largest() {
    const RowReduction& whole = softmax_.largest;
    Draft draft = Begin(whole.block);
    AddChunk(draft, ir::IterType::kReduce);
    const std::vector<Expr> at = In(draft, whole.store().indices);
    const Expr before = ir::Load(whole.buffer(), at);
    const Expr after = whole.reducer.Combine(
        before, ir::Load(largest_part_, draft.RowAnd(draft.chunk)));
    draft.block.init = ir::MakeSeq(
        {ir::MakeStore(factor_, draft.row, ir::FloatConst(0, factor_->dtype)),
         ir::MakeStore(whole.buffer(), at, softmax_.lowest)});
    draft.block.body =
        ir::MakeSeq({ir::MakeStore(factor_, draft.row, Power(before, after)),
                     ir::MakeStore(whole.buffer(), at, after)});
    return End(std::move(draft), whole.block);
  }

  // exp((x - m) * scale).
  ir::Expr Power(const ir::Expr& x, const ir::Expr& m) const {
    const double scale =
        softmax_.scale == nullptr
            ? 1
            : ir::As<ir::FloatConstNode>(softmax_.scale)->value;
    return ir::MakeCall(
        ir::Intrinsic::kExp2,
        {(x - m) * ir::FloatConst(scale * std::numbers::log2e, x->dtype)});
  }

  ir::Stmt Exponentials() {
    Draft draft = Begin(softmax_.total.block, "_exp");
    AddTerm(draft);
    draft.block.body = ir::MakeStore(
        exponentials_, draft.RowAnd(draft.values.at(roles_.terms)),
        Power(In(draft, softmax_.exponent), In(draft, softmax_.relative)));
    return End(std::move(draft));
  }

  ir::Stmt TotalPart() {
    Draft draft = Begin(softmax_.total.block, "_part");
    AddChunkOfTerms(draft);
    const std::vector<Expr> at = draft.RowAnd(draft.chunk);
    draft.block.init =
        ir::MakeStore(total_part_, at, ir::FloatConst(0, total_part_->dtype));
    draft.block.body = ir::MakeStore(
        total_part_, at,
        ir::Load(total_part_, at) +
            ir::Load(exponentials_,
                     draft.RowAnd(draft.values.at(roles_.terms))));
    return End(std::move(draft));
  }

  // sum = sum * factor + part.
  void Accumulate(Draft& draft, const ir::Buffer& sum,
                  const std::vector<Expr>& at, const Expr& part) const {
    draft.block.init = ir::MakeStore(sum, at, ir::FloatConst(0, sum->dtype));
    draft.block.body = ir::MakeStore(
        sum, at, ir::Load(sum, at) * ir::Load(factor_, draft.row) + part);
  }

  ir::Stmt Total() {
    const RowReduction& whole = softmax_.total;
    Draft draft = Begin(whole.block);
    AddChunk(draft, ir::IterType::kReduce);
    Accumulate(draft, whole.buffer(), In(draft, whole.store().indices),
               ir::Load(total_part_, draft.RowAnd(draft.chunk)));
    return End(std::move(draft), whole.block);
  }

  // The exponentials in place of their shares of the sum.
  ir::Stmt Shares() {
    const auto& store = *ir::As<ir::StoreNode>(chain_.shares->body);
    std::vector<Expr> at;
    for (const IterVar* iter : roles_.common) at.push_back(Own(iter));
    at.push_back(Own(roles_.rows));
    at.push_back(Own(roles_.terms));
    return Moved(
        chain_.shares,
        ir::MakeStore(store.buffer, store.indices,
                      InCastsOf(store.value, ir::Load(exponentials_, at))),
        chain_.shares_loops);
  }
  // The variable of the block of shares that has this part.
  Expr Own(const IterVar* part) const {
    for (const IterVar& iter : chain_.shares->iters) {
      if (roles_.Of(iter.var.get()) == part) return iter.var;
    }
    return ir::IntConst(0);
  }

  ir::Stmt ProductPart() {
    Draft draft = Begin(chain_.product.block, "_part");
    AddColumns(draft);
    AddChunkOfTerms(draft);
    std::vector<Expr> at = In(draft, chain_.product.store().indices);
    at.insert(at.begin(), draft.chunk);
    draft.block.init = ir::MakeStore(product_part_, at,
                                     ir::FloatConst(0, product_part_->dtype));
    draft.block.body =
        ir::MakeStore(product_part_, at,
                      chain_.product.reducer.Combine(
                          ir::Load(product_part_, at),
                          In(draft, chain_.product.reducer.value)));
    return End(std::move(draft));
  }

  ir::Stmt ProductSum() {
    Draft draft = Begin(chain_.product.block, "_sum");
    AddColumns(draft);
    AddChunk(draft, ir::IterType::kReduce);
    std::vector<Expr> at = In(draft, chain_.product.store().indices);
    std::vector<Expr> part = at;
    part.insert(part.begin(), draft.chunk);
    Accumulate(draft, product_sum_, at, ir::Load(product_part_, part));
    return End(std::move(draft));
  }

  ir::Stmt Result() {
    Draft draft = Begin(chain_.product.block);
    AddColumns(draft);
    const std::vector<Expr> at = In(draft, chain_.product.store().indices);
    const Expr total = ir::Load(softmax_.total.buffer(),
                                In(draft, softmax_.total.store().indices));
    draft.block.body = ir::MakeStore(
        chain_.product.buffer(), at,
        ir::MakeBinary(ir::BinaryOp::kDiv, ir::Load(product_sum_, at), total));
    return End(std::move(draft), chain_.product.block);
  }

  const ir::PrimFunc& function_;
  const SoftmaxProduct& chain_;
  const Softmax& softmax_;
  const ProductRoles& roles_;
  const ProductTile tile_;
  const int64_t chunks_;
  std::vector<Loop> loops_;                            // around everything
  std::unordered_map<const IterVar*, ir::Var> place_;  // of the common ones
  ir::Var outer_row_, inner_row_, chunk_;
  ir::Buffer largest_part_, factor_, exponentials_, total_part_, product_part_,
      product_sum_;
  std::vector<ir::Buffer> made_;
  std::vector<ir::BlockPtr> blocks_;
  BlockReuse reuse_;
};

}  // namespace

absl::StatusOr<std::vector<BlockRv>> OnlineProduct(ScheduleState& state,
                                                   BlockRv block_rv,
                                                   const Number& tile_number,
                                                   int64_t apart,
                                                   const Number& chunk_number) {
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr block, state.Get(block_rv));
  const auto value = [&](const Number& number) -> absl::StatusOr<int64_t> {
    if (const auto* known = std::get_if<int64_t>(&number)) return *known;
    return state.Get(std::get<ExprRv>(number));
  };
  TF_ASSIGN_OR_RETURN(const int64_t tile, value(tile_number));
  TF_ASSIGN_OR_RETURN(const int64_t chunk, value(chunk_number));
  if (tile < 1 || apart < 1 || chunk < 1) {
    return state.Invalid(block.get(), "a tile of ", tile, " rows, ", apart,
                         " apart, and chunks of ", chunk,
                         ": each has to be 1 or more");
  }
  TF_ASSIGN_OR_RETURN(const ir::BlockPtr scope, ScopeOf(state, block));
  TF_RETURN_IF_ERROR(CheckStagePipeline(state, scope.get()));
  TF_ASSIGN_OR_RETURN(const MatchedProduct found,
                      MatchSoftmaxProduct(state, block));
  TF_RETURN_IF_ERROR(
      state.CheckMayDiffer(block.get(), "it rounds differently"));
  const SoftmaxProduct& chain = found.chain;
  const ProductRoles& roles = found.roles;
  const int64_t rows = DomainSize(*roles.rows),
                terms = DomainSize(*roles.terms);
  if (tile > rows || apart > rows || rows % (tile * apart) != 0 ||
      terms % chunk != 0) {
    return state.Invalid(block.get(), rows, " rows in tiles of ", tile, ", ",
                         apart, " apart, and ", terms, " terms in chunks of ",
                         chunk, ": all have to be whole");
  }
  ProductWriter writer(state, chain, roles, {tile, apart, chunk});
  ScopeEditor edit;
  edit.Replace(chain.product.loops[0].get(), writer.Write());
  for (const ir::ForPtr& loop :
       {chain.softmax.largest.loops[0], chain.softmax.total.loops[0],
        chain.shares_loops[0]}) {
    edit.Replace(loop.get(), ir::NoOp());
  }
  if (chain.scores != nullptr) {
    edit.Replace(chain.scores_loops[0].get(), ir::NoOp());
  }
  for (const ir::Buffer& buffer : writer.made()) edit.AddAlloc(buffer);
  state.Replace(scope.get(), edit.Apply(*scope), writer.reuse());
  std::vector<BlockRv> results;
  for (const ir::BlockPtr& made : writer.blocks()) {
    results.push_back(state.NewBlock(state.Latest(made)));
  }
  return results;
}

}  // namespace tilefarm::schedule
