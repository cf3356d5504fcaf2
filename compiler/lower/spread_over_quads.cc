// A thread that computes whole rows becomes the four threads of a quad, which
// divide the columns as fragments of sums are divided (ir/matrix_units.h):
//
//   for x in threadIdx.x(8):        for l in threadIdx.x(32):  # q = l % 4
//     S: local [n]                    S: local [n / 4]
//     for j in n:                     for g in n / 8, p in 2:
//       S[j] = f(l // 4, j)    ->       S[2 * g + p] = f(l // 4, 8g + 2q + p)
//     for j in n:                     acc = lowest
//       M = max(M, S[j])              for g, p: acc = max(acc, S[2 * g + p])
//                                     acc = max(acc, shuffle_xor(acc, 2)) ...
//                                     M = max(M, acc)
//
// What has no columns is computed in all four alike; what threads share is
// fetched by the four together, or written by the first one. The terms of a
// product whose first operand is in registers become loops that read one lane's
// elements for all lanes (ir::kOfQuad); only LowerWarpMatrices understands
// them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/arith/conjuncts.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/matrix_units.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/element_update.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/iteration_analysis.h"
#include "compiler/lower/passes.h"
#include "compiler/lower/row_quad_columns.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::Stmt;

constexpr int64_t kQuadsOfWarp = ir::kWarpLanes / ir::kQuadLanes;

// Loops and conditions, outermost first, around a single store.
struct StoreChain {
  std::vector<Stmt> around;
  const ir::StoreNode* store = nullptr;  // null: something else is in there
};

StoreChain ChainOf(Stmt stmt) {
  StoreChain chain;
  while (true) {
    Stmt inside;
    if (const auto* loop = ir::As<ForNode>(stmt)) {
      inside = loop->body;
    } else if (const auto* branch = ir::As<ir::IfNode>(stmt);
               branch != nullptr && branch->else_case == nullptr) {
      inside = branch->then_case;
    } else {
      chain.store = ir::As<ir::StoreNode>(stmt);
      return chain;
    }
    chain.around.push_back(std::move(stmt));
    stmt = std::move(inside);
  }
}

Stmt LoopWith(const ForNode& loop, Expr extent, Stmt body) {
  return std::make_shared<const ForNode>(loop.var, loop.min, std::move(extent),
                                         loop.for_kind, std::move(body),
                                         loop.annotations, loop.thread_tag);
}

// The loops and conditions around another body.
Stmt AroundBody(const std::vector<Stmt>& around, Stmt body) {
  for (size_t i = around.size(); i-- > 0;) {
    if (const auto* loop = ir::As<ForNode>(around[i])) {
      body = LoopWith(*loop, loop->extent, std::move(body));
    } else {
      body =
          ir::MakeIf(ir::As<ir::IfNode>(around[i])->condition, std::move(body));
    }
  }
  return body;
}

// Rewrites the code of a thread. Variables of divided loops become sums of
// their parts; indices of columns those of the lane's own.
class QuadSpreader : public ir::Mutator {
 public:
  // `threads`: of the block. `by_engine`: it has a copy engine.
  QuadSpreader(const RowQuads& quads, const ir::Var& row, const ir::Var& lane,
               std::vector<const ir::VarNode*> threads, bool by_engine)
      : quads_(quads),
        row_(row),
        lane_(lane),
        threads_(std::move(threads)),
        by_engine_(by_engine) {
    vars_[row.get()] = ir::FloorDiv(lane, ir::IntConst(ir::kQuadLanes));
    math_.Bind(lane.get(), 0, ir::kWarpLanes - 1);
    math_.Bind(row.get(), 0, kQuadsOfWarp - 1);
  }
  using Mutator::Mutate;
  absl::Status status;

 protected:
  Expr MutateVar(const ir::VarNode& e, const Expr& self) override {
    const auto found = vars_.find(&e);
    return found == vars_.end() ? self : found->second;
  }

  Expr MutateLoad(const ir::LoadNode& e, const Expr&) override {
    return std::make_shared<const ir::LoadNode>(
        MutateBuffer(e.buffer), Indices(e.buffer, e.indices), e.dtype,
        e.predicate == nullptr ? nullptr : Mutate(e.predicate));
  }

  Stmt MutateStore(const ir::StoreNode& s, const Stmt&) override {
    if (RoleOf(&s) == QuadRole::kReduction) {
      // MutateFor replaces the loops around one that is alone in them.
      Fail(absl::StrCat("buffer ", s.buffer->name, ": ", ir::kRowQuads,
                        ": the loops over the columns that it combines have "
                        "to be around nothing else"));
    }
    Stmt store = ir::MakeStore(
        MutateBuffer(s.buffer), Indices(s.buffer, s.indices), Mutate(s.value),
        s.predicate == nullptr ? nullptr : Mutate(s.predicate));
    return RoleOf(&s) == QuadRole::kOnce && !divided_fetch_
               ? OnFirstLane(std::move(store))
               : store;
  }

  Buffer MutateBuffer(const Buffer& buffer) override {
    const auto dim = quads_.dims.find(buffer.get());
    if (dim == quads_.dims.end()) return buffer;
    Buffer& own = buffers_[buffer.get()];
    if (own == nullptr) {
      ir::BufferNode part(*buffer);
      part.shape[dim->second] /= ir::kQuadLanes;
      own = std::make_shared<const ir::BufferNode>(std::move(part));
    }
    return own;
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt& self) override {
    if (const std::optional<Stmt> out = MutateChain(self)) return *out;
    return Mutator::MutateIf(s, self);
  }

  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    if (const std::optional<Stmt> out = MutateChain(self)) return *out;
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    const auto divided = quads_.loops.find(s.var.get());
    Stmt out = divided == quads_.loops.end() ? Mutator::MutateFor(s, self)
                                             : Divide(s, divided->second);
    math_.Restore(mark);
    return out;
  }

  void Fail(const std::string& what) {
    if (status.ok()) status = absl::InvalidArgumentError(what);
  }

  // Of a store of the program.
  std::optional<QuadRole> RoleOf(const ir::StoreNode* store) const {
    const auto role = quads_.roles.find(store);
    if (role == quads_.roles.end()) return std::nullopt;
    return role->second;
  }

  std::vector<Expr> Indices(const Buffer& buffer,
                            const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    const auto dim = quads_.dims.find(buffer.get());
    for (size_t d = 0; d < indices.size(); ++d) {
      const bool column = dim != quads_.dims.end() && dim->second == d;
      out.push_back(column ? quads_.OwnIndex(math_, indices[d], parts_)
                           : Mutate(indices[d]));
    }
    return out;
  }

  Expr QuadLane() const {
    return ir::FloorMod(lane_, ir::IntConst(ir::kQuadLanes));
  }

  Stmt OnFirstLane(Stmt stmt) const {
    return ir::MakeIf(ir::EQ(QuadLane(), ir::IntConst(0)), std::move(stmt));
  }

  // What is done to a store with all that is around it; nullopt: nothing.
  std::optional<Stmt> MutateChain(const Stmt& stmt) {
    const StoreChain chain = ChainOf(stmt);
    const std::optional<QuadRole> role = RoleOf(chain.store);
    const size_t mark = math_.Mark();
    std::optional<Stmt> out;
    if (role == QuadRole::kReduction) {
      out = Reduction(chain);
    } else if (role == QuadRole::kOnce && !divided_fetch_) {
      out = Once(stmt, chain);
    }
    math_.Restore(mark);
    return out;
  }

  // The lanes' results of an element are combined as soon as it is known which
  // element it is.
  std::optional<Stmt> Reduction(const StoreChain& chain) {
    const ElementUpdate update = *AsElementUpdate(*chain.store);
    const Buffer& target = chain.store->buffer;
    const Buffer partial =
        ir::MakeBuffer(target->name + "_partial", target->dtype, {1}, "local");
    const auto& indices = chain.store->indices;
    bool columns = false;
    std::vector<Stmt> outside, inside;
    std::set<const ir::VarNode*> terms;  // of loops inside
    for (const Stmt& around : chain.around) {
      const auto* loop = ir::As<ForNode>(around);
      if (loop == nullptr) {
        // Without what all terms depend on there may be no element.
        for (const Expr& part :
             arith::Conjuncts(ir::As<ir::IfNode>(around)->condition)) {
          const bool of_term = std::ranges::any_of(
              terms,
              [&](const ir::VarNode* v) { return ir::UsesVar(part, v); });
          (of_term ? inside : outside).push_back(ir::MakeIf(part, ir::NoOp()));
        }
        continue;
      }
      columns |= quads_.loops.contains(loop->var.get());
      const bool selects = std::ranges::any_of(indices, [&](const Expr& index) {
        return ir::UsesVar(index, loop->var.get());
      });
      if (selects && !ir::AsInt(loop->extent)) {
        Fail(absl::StrCat("loop ", loop->var->name, ": ", ir::kRowQuads,
                          ": its extent is no constant"));
      }
      if (!selects) terms.insert(loop->var.get());
      (selects ? outside : inside).push_back(around);
    }
    // The loops over columns are further out.
    if (!columns) return std::nullopt;
    for (Stmt& around : outside) {
      if (const auto* loop = ir::As<ForNode>(around)) {
        BindLoop(math_, *loop);
      } else {
        around = ir::MakeIf(Mutate(ir::As<ir::IfNode>(around)->condition),
                            ir::NoOp());
      }
    }
    std::vector<Stmt> stmts = {StartPartial(update, partial)};
    stmts.push_back(Mutate(IntoPartial(
        update, partial,
        AroundBody(inside,
                   std::make_shared<const ir::StoreNode>(*chain.store)))));
    CombineInGroup(update, partial, ir::kQuadLanes, stmts);
    stmts.push_back(Mutate(FinishUpdate(update, partial)));
    return AroundBody(outside,
                      ir::MakeAlloc(partial, ir::MakeSeq(std::move(stmts))));
  }

  // The lanes divide the iterations of a loop that writes other elements in
  // each of them; without such a loop the first one does all.
  std::optional<Stmt> Once(const Stmt& stmt, const StoreChain& chain) {
    const ir::StoreNode& store = *chain.store;
    if (by_engine_ && IsWholeCopy(store)) return ByAll(stmt);
    if (ir::ScopeOf(*store.buffer) != ir::MemoryScope::kShared ||
        ir::Loads(store.value, store.buffer.get())) {
      return ByFirstLane(stmt);
    }
    for (const Stmt& around : chain.around) {
      if (const auto* loop = ir::As<ForNode>(around)) BindLoop(math_, *loop);
    }
    AccessDims dims;
    for (const Expr& index : store.indices) {
      dims.push_back(math_.Decompose(index));
    }
    for (size_t i = 0; i < chain.around.size(); ++i) {
      const auto* loop = ir::As<ForNode>(chain.around[i]);
      if (loop == nullptr || loop->for_kind == ForKind::kVectorized) continue;
      const auto extent = ir::AsInt(loop->extent);
      if (!extent || *extent % ir::kQuadLanes != 0 ||
          !ir::IsConstInt(loop->min, 0)) {
        continue;
      }
      if (!loop->annotations.contains(ir::kWritesApart) &&
          !Determines(math_, {dims}, loop->var.get(), *extent)) {
        continue;
      }
      // Neighbours fetch what lies side by side, unless it is of their rows.
      const bool apart = ReadsLocal(stmt);
      const Expr part =
          apart ? QuadLane() : ir::FloorDiv(lane_, ir::IntConst(kQuadsOfWarp));
      const Expr iteration = Expr(loop->var) * ir::kQuadLanes + part;
      Stmt body = ir::Substitute(loop->body, {{loop->var.get(), iteration}});
      body = LoopWith(*loop, ir::IntConst(*extent / ir::kQuadLanes),
                      std::move(body));
      const std::vector<Stmt> outside(
          chain.around.begin(), chain.around.begin() + static_cast<int>(i));
      const Expr of_row = vars_[row_.get()];
      if (!apart) {
        vars_[row_.get()] = ir::FloorMod(lane_, ir::IntConst(kQuadsOfWarp));
      }
      divided_fetch_ = true;
      Stmt out = Mutate(AroundBody(outside, std::move(body)));
      divided_fetch_ = false;
      vars_[row_.get()] = of_row;
      return out;
    }
    return ByFirstLane(stmt);
  }

  static bool ReadsLocal(const Stmt& stmt) {
    bool reads = false;
    ir::PostOrderExprs(stmt, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      reads |= load != nullptr &&
               ir::ScopeOf(*load->buffer) == ir::MemoryScope::kLocal;
    });
    return reads;
  }

  // Whether the copy to shared memory, by whichever thread, is the same.
  bool IsWholeCopy(const ir::StoreNode& store) const {
    const auto of_thread = [&](const Expr& e) {
      return std::ranges::any_of(threads_, [&](const ir::VarNode* thread) {
        return ir::UsesVar(e, thread);
      });
    };
    return ir::ScopeOf(*store.buffer) == ir::MemoryScope::kShared &&
           std::ranges::none_of(store.indices, of_thread) &&
           !of_thread(store.value);
  }

  Stmt ByAll(const Stmt& stmt) {
    divided_fetch_ = true;
    Stmt out = Mutate(stmt);
    divided_fetch_ = false;
    return out;
  }

  Stmt ByFirstLane(const Stmt& stmt) { return OnFirstLane(ByAll(stmt)); }

  // The loop over columns, or over the terms of a product, as loops over the
  // parts of their numbers.
  Stmt Divide(const ForNode& s, const ColumnLoop& loop) {
    const ir::Var group = ir::MakeVar(s.var->name + "_group");
    const ir::Var quad = ir::MakeVar(s.var->name + "_quad");
    const ir::Var pair = ir::MakeVar(s.var->name + "_pair");
    const Expr zero = ir::IntConst(0);
    const Expr g = loop.groups > 1 ? Expr(group) : zero;
    const Expr p = loop.pair > 1 ? Expr(pair) : zero;
    const bool terms = loop.terms && loop.lanes > 1;
    const Expr lane =
        terms
            ? Expr(quad)
            : ir::FloorMod(ir::FloorDiv(QuadLane(), ir::IntConst(loop.weight)),
                           ir::IntConst(loop.lanes));
    parts_[s.var.get()] = {g, p};
    vars_[s.var.get()] = (g * loop.lanes + lane) * loop.pair + p;
    Stmt body = Mutate(s.body);
    const bool vectorized = s.for_kind == ForKind::kVectorized ||
                            (s.for_kind == ForKind::kSerial && IsPairStore(s));
    const ForKind outer = vectorized ? ForKind::kSerial : s.for_kind;
    // The outermost one has the annotations; what holds for its iterations
    // does for those of the others.
    const auto annotations = [&](bool outermost) {
      ir::AttrMap kept = s.annotations;
      if (!outermost) {
        std::erase_if(kept, [](const auto& annotation) {
          return annotation.first != ir::kWritesApart;
        });
      }
      return kept;
    };
    const bool grouped = loop.groups > 1;
    if (loop.pair > 1) {
      body = ir::MakeFor(pair, ir::IntConst(loop.pair), std::move(body),
                         vectorized ? ForKind::kVectorized : s.for_kind,
                         annotations(!terms && !grouped));
    }
    if (terms) {
      ir::AttrMap of_quad = annotations(!grouped);
      of_quad[ir::kOfQuad] = 1;
      body = ir::MakeFor(quad, ir::IntConst(loop.lanes), std::move(body), outer,
                         std::move(of_quad));
    }
    if (grouped) {
      body = ir::MakeFor(group, ir::IntConst(loop.groups), std::move(body),
                         outer, annotations(true));
    }
    return body;
  }

  // Whether both elements of a pair are stored side by side, as 16-bit numbers
  // in one register, or in memory.
  bool IsPairStore(const ForNode& s) const {
    const auto* store = ir::As<ir::StoreNode>(s.body);
    return store != nullptr && RoleOf(store) == QuadRole::kColumns &&
           (store->buffer->dtype.bytes() == 2 ||
            ir::ScopeOf(*store->buffer) != ir::MemoryScope::kLocal);
  }

  const RowQuads& quads_;
  const ir::Var row_, lane_;
  const std::vector<const ir::VarNode*> threads_;
  const bool by_engine_;  // one thread lets the engine make copies
  IndexMath math_;
  ir::VarMap vars_;
  std::map<const ir::VarNode*, RowQuads::Parts> parts_;
  std::map<const ir::BufferNode*, Buffer> buffers_;
  bool divided_fetch_ = false;  // it is decided who makes the store
};

bool HasRowQuads(const ForNode& loop) {
  const auto found = loop.annotations.find(ir::kRowQuads);
  return found != loop.annotations.end() &&
         found->second.AsInt().value_or(1) != 0;
}

bool UsesEngine(const Stmt& body) {
  bool uses = false;
  ir::PreOrder(body, [&](const Stmt& s) {
    const auto* loop = ir::As<ForNode>(s);
    uses |= loop != nullptr && loop->annotations.contains(ir::kWarpgroupStages);
    return !uses;
  });
  return uses;
}

absl::StatusOr<Stmt> SpreadKernel(const Stmt& kernel,
                                  const target::GpuLimits& limits) {
  std::vector<const ForNode*> axes;
  Stmt body = kernel;
  int64_t threads = 1;
  while (const auto* loop = ir::As<ForNode>(body)) {
    if (loop->for_kind != ForKind::kThreadBinding) break;
    axes.push_back(loop);
    if (IsThreadLoop(*loop)) threads *= *ir::AsInt(loop->extent);
    body = loop->body;
  }
  const auto x = std::ranges::find_if(axes, [](const ForNode* loop) {
    return loop->thread_tag == ir::ThreadTag(ir::ThreadAxis::kThreadX);
  });
  if (x == axes.end() || !HasRowQuads(**x)) return kernel;
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("loop ", (*x)->var->name, ": ", ir::kRowQuads, ": ", why));
  };
  if (!ir::IsConstInt((*x)->extent, kQuadsOfWarp)) {
    return refuse(absl::StrCat("threadIdx.x has ", *ir::AsInt((*x)->extent),
                               " iterations; ", kQuadsOfWarp,
                               " rows of quads are a warp"));
  }
  if (!limits.shuffles) {
    return refuse("the target cannot exchange values within a warp");
  }
  if (threads * ir::kQuadLanes > limits.block_threads) {
    return refuse(absl::StrCat("a block has ", threads * ir::kQuadLanes,
                               " threads; the target can have ",
                               limits.block_threads));
  }
  TF_ASSIGN_OR_RETURN(const RowQuads quads,
                      DivideColumns(body, (*x)->var.get()));
  const ir::Var lane = ir::MakeVar((*x)->var->name);
  std::vector<const ir::VarNode*> thread_vars;
  for (const ForNode* axis : axes) {
    if (IsThreadLoop(*axis)) thread_vars.push_back(axis->var.get());
  }
  QuadSpreader spreader(quads, (*x)->var, lane, std::move(thread_vars),
                        UsesEngine(body));
  Stmt out = spreader.Mutate(body);
  if (!spreader.status.ok()) return spreader.status;
  for (size_t i = axes.size(); i-- > 0;) {
    const bool is_x = axes[i] == *x;
    ir::AttrMap annotations = axes[i]->annotations;
    annotations.erase(ir::kRowQuads);
    out = std::make_shared<const ForNode>(
        is_x ? lane : axes[i]->var, axes[i]->min,
        is_x ? ir::IntConst(ir::kWarpLanes) : axes[i]->extent,
        axes[i]->for_kind, std::move(out), std::move(annotations),
        axes[i]->thread_tag);
  }
  return out;
}

}  // namespace

absl::StatusOr<Stmt> SpreadOverQuads(const Stmt& root,
                                     const target::GpuLimits& limits) {
  if (const auto* alloc = ir::As<ir::AllocNode>(root)) {
    TF_ASSIGN_OR_RETURN(Stmt body, SpreadOverQuads(alloc->body, limits));
    return ir::MakeAlloc(alloc->buffer, std::move(body));
  }
  if (const auto* seq = ir::As<ir::SeqNode>(root)) {
    std::vector<Stmt> kernels;
    for (const Stmt& stmt : seq->stmts) {
      TF_ASSIGN_OR_RETURN(kernels.emplace_back(),
                          SpreadOverQuads(stmt, limits));
    }
    return ir::MakeSeq(std::move(kernels));
  }
  const auto* outermost = ir::As<ForNode>(root);
  if (outermost == nullptr || !HasRowQuads(*outermost)) return root;
  // Indices in one form, and each variable of one loop.
  return SpreadKernel(RenewScopes(Simplify(root)), limits);
}

}  // namespace tilefarm::lower
