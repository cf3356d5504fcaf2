// Software pipelining: the copies of later iterations run while an iteration
// computes. With two stages that are S apart:
//
//   for k in range(K):                 for t in unroll(S): copy(t); commit
//     buf = copy(k)          stage 0   for k in range(K):
//     use(buf)               stage S ->  wait(S - 1)
//                                        if k + S < K: copy(k + S)
//                                        commit
//                                        use(k)
//
// Iteration i has version i % (S + 1) of the buffers between the stages. Copies
// that cannot be asynchronous load into registers first, and store these after
// the use, so that it need not wait for them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/dim_align.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_math.h"
#include "compiler/lower/index_prefixer.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForNode;
using ir::Stmt;

// Of an asynchronous copy.
constexpr int64_t kLeastBytes = 4;

std::optional<std::vector<int64_t>> IntsOf(const ForNode& loop,
                                           const char* key) {
  const auto found = loop.annotations.find(key);
  if (found == loop.annotations.end()) return std::nullopt;
  std::vector<int64_t> values;
  const ir::AttrList* list = found->second.AsList();
  if (list == nullptr) return std::nullopt;
  for (const ir::Attr& attr : *list) {
    const std::optional<int64_t> value = attr.AsInt();
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::set<const ir::BufferNode*> BuffersOf(const Stmt& stmt, bool written) {
  std::set<const ir::BufferNode*> buffers;
  if (written) {
    ir::PreOrder(stmt, [&](const Stmt& s) {
      if (const auto* store = ir::As<ir::StoreNode>(s)) {
        buffers.insert(store->buffer.get());
      }
      return true;
    });
  } else {
    ir::PostOrderExprs(stmt, [&](const Expr& e) {
      if (const auto* load = ir::As<ir::LoadNode>(e)) {
        buffers.insert(load->buffer.get());
      }
    });
  }
  return buffers;
}

// Copies from global to shared memory that arrive by the next wait: of single
// elements, or of vectors that are contiguous on both sides; perhaps of zeros
// instead, where a condition does not hold.
class AsyncCopies : public ir::Mutator {
 public:
  // Buffers that are read before the next wait get their elements at once.
  explicit AsyncCopies(const std::set<const ir::BufferNode*>& read_at_once)
      : read_at_once_(read_at_once) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    const ir::Var outer = lane_;
    const int64_t outer_lanes = lanes_;
    if (s.for_kind == ir::ForKind::kVectorized) {
      lane_ = s.var;
      lanes_ = ir::AsInt(s.extent).value_or(1);
    }
    const size_t mark = math_.Mark();
    BindLoop(math_, s);
    Stmt out = Mutator::MutateFor(s, self);
    math_.Restore(mark);
    lane_ = outer;
    lanes_ = outer_lanes;
    return out;
  }
  // What the part allocates is read in it, or by nobody.
  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt& self) override {
    inside_.insert(s.buffer.get());
    return Mutator::MutateAlloc(s, self);
  }
  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    const Expr value = WithoutDetour(s.value);
    const std::optional<ir::CopiedLoad> copied = ir::AsCopiedLoad(value);
    if (!copied) return self;
    const ir::LoadNode* load = copied->load;
    if (copied->condition != nullptr && !IsGuard(*copied)) return self;
    if (load->buffer->dtype != s.buffer->dtype ||
        read_at_once_.contains(s.buffer.get()) ||
        inside_.contains(s.buffer.get()) ||
        ir::ScopeOf(*s.buffer) != ir::MemoryScope::kShared ||
        ir::ScopeOf(*load->buffer) != ir::MemoryScope::kGlobal ||
        !IsContiguous(s.buffer, s.indices) ||
        !IsContiguous(load->buffer, load->indices)) {
      return self;
    }
    return ir::MakeStore(s.buffer, s.indices,
                         ir::MakeMachineOp(ir::MachineOp::kAsync, {value}),
                         s.predicate);
  }

 private:
  // Whether the copy can leave out the load where the condition does not hold:
  // it is the same for all lanes, reads no memory, and is worth it.
  bool IsGuard(const ir::CopiedLoad& copied) const {
    bool reads = false;
    ir::PostOrderExprs(copied.condition, [&](const Expr& e) {
      reads |= e->kind == ir::ExprKind::kLoad;
    });
    return !reads && lanes_ * copied.load->dtype.bytes() >= kLeastBytes &&
           (lane_ == nullptr || !ir::UsesVar(copied.condition, lane_.get()));
  }
  // Whether the lanes access consecutive elements of memory.
  bool IsContiguous(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (lane_ == nullptr) return true;
    const auto strides = ir::PaddedStrides(*buffer);
    if (!strides) return false;
    Expr first = ir::IntConst(0) - lane_;
    for (size_t d = 0; d < indices.size(); ++d) {
      first = first + indices[d] * ir::IntConst((*strides)[d]);
    }
    return !ir::UsesVar(math_.Simplify(first), lane_.get());
  }

  const std::set<const ir::BufferNode*>& read_at_once_;
  std::set<const ir::BufferNode*> inside_;
  IndexMath math_;
  ir::Var lane_;
  int64_t lanes_ = 1;
};

// Divides a fetch that is not asynchronous: loads into registers, and stores of
// these into shared memory.
class FetchDivider {
 public:
  // Of a nest of loops of constant extent whose stores all go to shared memory.
  // False: the part is anything else, or takes too many registers.
  bool Divide(const Stmt& part) {
    if (!Number(part)) return false;
    if (elements_ == 0 || elements_ > kMostElements) return false;
    registers_ = ir::MakeBuffer("fetched", dtype_, {elements_}, "local");
    load_ = Halves(*this, /*load=*/true).Mutate(part);
    store_ = Halves(*this, /*load=*/false).Mutate(part);
    return true;
  }
  const Buffer& registers() const { return registers_; }
  const Stmt& load() const { return load_; }
  const Stmt& store() const { return store_; }

 private:
  // More would leave too few registers for what computes meanwhile.
  static constexpr int64_t kMostElements = 32;

  class Halves : public ir::Mutator {
   public:
    Halves(const FetchDivider& fetch, bool load) : fetch_(fetch), load_(load) {}
    using Mutator::Mutate;
    Expr Mutate(const Expr& expr) override { return expr; }

   protected:
    Stmt MutateStore(const ir::StoreNode& s, const Stmt&) override {
      const Expr& element = fetch_.numbers_.at(&s);
      if (load_) {
        return ir::MakeStore(fetch_.registers_, {element}, s.value);
      }
      return ir::MakeStore(s.buffer, s.indices,
                           ir::Load(fetch_.registers_, {element}));
    }

   private:
    const FetchDivider& fetch_;
    const bool load_;
  };

  // Gives the iterations of each store numbers, the innermost loop's side by
  // side.
  bool Number(const Stmt& stmt) {
    switch (stmt->kind) {
      case ir::StmtKind::kSeq:
        return std::ranges::all_of(ir::As<ir::SeqNode>(stmt)->stmts,
                                   [&](const Stmt& s) { return Number(s); });
      case ir::StmtKind::kIf: {
        const auto& branch = *ir::As<ir::IfNode>(stmt);
        return branch.else_case == nullptr && Number(branch.then_case);
      }
      case ir::StmtKind::kFor: {
        const auto& loop = *ir::As<ForNode>(stmt);
        if (!ir::AsInt(loop.extent) || !ir::IsConstInt(loop.min, 0)) {
          return false;
        }
        loops_.push_back(&loop);
        const bool numbered = Number(loop.body);
        loops_.pop_back();
        return numbered;
      }
      case ir::StmtKind::kStore:
        break;
      default:
        return false;
    }
    const auto& store = *ir::As<ir::StoreNode>(stmt);
    if (ir::ScopeOf(*store.buffer) != ir::MemoryScope::kShared ||
        store.predicate != nullptr ||
        (!numbers_.empty() && store.buffer->dtype != dtype_)) {
      return false;
    }
    dtype_ = store.buffer->dtype;
    Expr number = ir::IntConst(0);
    int64_t count = 1;
    for (const ForNode* loop : loops_) {
      number = number * *ir::AsInt(loop->extent) + Expr(loop->var);
      count *= *ir::AsInt(loop->extent);
    }
    numbers_[&store] = number + elements_;
    elements_ += count;
    return true;
  }

  std::vector<const ForNode*> loops_;
  std::map<const ir::StoreNode*, Expr> numbers_;
  int64_t elements_ = 0;
  ir::DataType dtype_;
  Buffer registers_;
  Stmt load_, store_;
};

class LoopPipeliner : public ir::Mutator {
 public:
  explicit LoopPipeliner(bool async) : async_(async) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return expr; }
  absl::Status status;

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    Stmt inner = Mutator::MutateFor(s, self);
    const auto& loop = *ir::As<ForNode>(inner);
    const auto stages = IntsOf(loop, ir::kPipelineStage);
    const auto copies = loop.annotations.find(ir::kSharedStages);
    if (!stages && copies == loop.annotations.end()) return inner;
    absl::StatusOr<Stmt> out =
        stages
            ? Pipeline(loop, *stages, IsAsync(loop, *stages))
            : Pipeline(loop, StagesOf(loop, copies->second.AsInt().value_or(1)),
                       /*async=*/true);
    if (!out.ok()) {
      if (status.ok()) status = out.status();
      return inner;
    }
    return *std::move(out);
  }

 private:
  // Whether the annotation asks for asynchronous copies of the first stage.
  static bool IsAsync(const ForNode& loop, const std::vector<int64_t>& stages) {
    const auto listed = IntsOf(loop, ir::kPipelineAsyncStages);
    return listed && !stages.empty() &&
           std::ranges::count(*listed, std::ranges::min(stages)) > 0;
  }

  // For a number of copies of shared buffers: what fetches into them comes
  // first. All stages are equal if nothing does.
  static std::vector<int64_t> StagesOf(const ForNode& loop, int64_t copies) {
    std::set<const ir::BufferNode*> shared;
    Stmt body = loop.body;
    while (const auto* alloc = ir::As<ir::AllocNode>(body)) {
      if (ir::ScopeOf(*alloc->buffer) == ir::MemoryScope::kShared) {
        shared.insert(alloc->buffer.get());
      }
      body = alloc->body;
    }
    const auto* seq = ir::As<ir::SeqNode>(body);
    const std::vector<Stmt> parts =
        seq != nullptr ? seq->stmts : std::vector{body};
    const std::set<const ir::BufferNode*> written =
        BuffersOf(loop.body, /*written=*/true);
    const int64_t depth =
        std::min(copies - 1, ir::AsInt(loop.extent).value_or(1) - 1);
    std::vector<int64_t> stages;
    for (const Stmt& part : parts) {
      const auto reads = BuffersOf(part, /*written=*/false);
      const bool fetches =
          std::ranges::all_of(BuffersOf(part, /*written=*/true),
                              [&](const ir::BufferNode* buffer) {
                                return shared.contains(buffer);
                              }) &&
          std::ranges::none_of(reads, [&](const ir::BufferNode* buffer) {
            return written.contains(buffer);
          });
      stages.push_back(fetches ? 0 : std::max<int64_t>(depth, 0));
    }
    return stages;
  }

  static absl::Status Refuse(const ForNode& loop, const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("loop ", loop.var->name, ": software pipeline: ", why));
  }

  absl::StatusOr<Stmt> Pipeline(const ForNode& loop,
                                const std::vector<int64_t>& stages,
                                bool async) {
    ir::AttrMap annotations = loop.annotations;
    for (const char* key : {ir::kPipelineStage, ir::kPipelineOrder,
                            ir::kPipelineAsyncStages, ir::kSharedStages}) {
      annotations.erase(key);
    }
    const auto plain = [&](Stmt body) -> Stmt {
      return std::make_shared<const ForNode>(loop.var, loop.min, loop.extent,
                                             loop.for_kind, std::move(body),
                                             annotations, loop.thread_tag);
    };
    std::vector<Buffer> allocs;
    Stmt body = loop.body;
    while (const auto* alloc = ir::As<ir::AllocNode>(body)) {
      allocs.push_back(alloc->buffer);
      body = alloc->body;
    }
    const auto* seq = ir::As<ir::SeqNode>(body);
    const std::vector<Stmt> parts =
        seq != nullptr ? seq->stmts : std::vector{body};
    if (parts.size() != stages.size()) {
      return Refuse(loop,
                    absl::StrCat("it has ", parts.size(),
                                 " statements, but stages of ", stages.size()));
    }
    const auto order = IntsOf(loop, ir::kPipelineOrder);
    if (order && order->size() != parts.size()) {
      return Refuse(loop, "order and stages have different lengths");
    }
    const auto [first, last] = std::ranges::minmax(stages);
    const int64_t depth = last - first;
    const auto extent = ir::AsInt(loop.extent);
    if (depth > kMostStages) {
      return Refuse(loop, absl::StrCat("stages are ", depth, " apart; at most ",
                                       kMostStages));
    }
    // Copies of the annotated loop, such as those of an init, fetch nothing.
    if (depth == 0) return plain(loop.body);
    if (!extent || loop.for_kind != ir::ForKind::kSerial) {
      return Refuse(loop, "it is no serial loop of constant extent");
    }
    if (std::ranges::any_of(stages, [&](int64_t stage) {
          return stage != first && stage != last;
        })) {
      return Refuse(loop, "it has more than two different stages");
    }
    // Without other iterations there is nothing to overlap.
    if (*extent <= depth) return plain(loop.body);
    TF_ASSIGN_OR_RETURN(const std::vector<Buffer> versioned,
                        BuffersBetween(loop, parts, stages, first, allocs));

    async &= async_;
    // What is fetched before the loop and, in it, before and after `now`.
    std::vector<Stmt> ahead, before, now, after;
    std::vector<Buffer> registers;
    std::set<const ir::BufferNode*> read_ahead;
    std::map<const ir::BufferNode*, int> writers_ahead;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (stages[i] != first) continue;
      read_ahead.merge(BuffersOf(parts[i], /*written=*/false));
      for (const auto* buffer : BuffersOf(parts[i], /*written=*/true)) {
        ++writers_ahead[buffer];
      }
    }
    // Whether nothing else of what is ahead sees when the part stores.
    const auto may_store_later = [&](const Stmt& part) {
      return std::ranges::none_of(
          BuffersOf(part, /*written=*/true), [&](const auto* buffer) {
            return read_ahead.contains(buffer) || writers_ahead[buffer] > 1;
          });
    };
    for (size_t i = 0; i < parts.size(); ++i) {
      if (stages[i] != first) {
        now.push_back(parts[i]);
        continue;
      }
      const Stmt part =
          async ? AsyncCopies(read_ahead).Mutate(parts[i]) : parts[i];
      ahead.push_back(part);
      FetchDivider fetch;
      if (part == parts[i] && may_store_later(part) && fetch.Divide(part)) {
        before.push_back(fetch.load());
        after.push_back(fetch.store());
        registers.push_back(fetch.registers());
      } else {
        before.push_back(part);
      }
    }
    const int64_t versions = depth + 1;
    std::vector<Buffer> multiple;
    for (const Buffer& buffer : versioned) {
      ir::BufferNode wide(*buffer);
      wide.shape.insert(wide.shape.begin(), versions);
      for (std::vector<int64_t>& align : wide.dim_align) ++align.front();
      multiple.push_back(
          std::make_shared<const ir::BufferNode>(std::move(wide)));
    }
    // The statements for one iteration.
    const auto at = [&](const std::vector<Stmt>& stmts, const Expr& iteration) {
      Stmt out =
          ir::Substitute(ir::MakeSeq(stmts), {{loop.var.get(), iteration}});
      for (size_t i = 0; i < versioned.size(); ++i) {
        out = IndexPrefixer(versioned[i], multiple[i],
                            {ir::FloorMod(iteration, ir::IntConst(versions))})
                  .Mutate(out);
      }
      return out;
    };
    std::vector<Stmt> out;
    const auto commit = [&](std::vector<Stmt>& stmts) {
      if (async) stmts.push_back(Effect(ir::MachineOp::kCommit, {}));
    };
    for (int64_t t = 0; t < depth; ++t) {
      out.push_back(at(ahead, ir::IntConst(t)));
      commit(out);
    }
    std::vector<Stmt> steady;
    if (async) {
      steady.push_back(Effect(ir::MachineOp::kWait, {ir::IntConst(depth - 1)}));
    }
    const Expr later = Expr(loop.var) + depth;
    const auto if_there_is_one = [&](const std::vector<Stmt>& stmts) {
      return stmts.empty()
                 ? ir::NoOp()
                 : ir::MakeIf(ir::LT(later, loop.extent), at(stmts, later));
    };
    steady.push_back(if_there_is_one(before));
    commit(steady);
    steady.push_back(at(now, loop.var));
    steady.push_back(if_there_is_one(after));
    Stmt iteration = ir::MakeSeq(std::move(steady));
    for (const Buffer& buffer : registers) {
      iteration = ir::MakeAlloc(buffer, std::move(iteration));
    }
    out.push_back(plain(std::move(iteration)));
    Stmt result = ir::MakeSeq(std::move(out));
    for (size_t i = allocs.size(); i-- > 0;) {
      const auto found = std::ranges::find(versioned, allocs[i]);
      result = ir::MakeAlloc(
          found == versioned.end()
              ? allocs[i]
              : multiple[static_cast<size_t>(found - versioned.begin())],
          std::move(result));
    }
    return result;
  }

  // The buffers that the first stage writes for the last one.
  static absl::StatusOr<std::vector<Buffer>> BuffersBetween(
      const ForNode& loop, const std::vector<Stmt>& parts,
      const std::vector<int64_t>& stages, int64_t first,
      const std::vector<Buffer>& allocs) {
    std::set<const ir::BufferNode*> written, read, changed;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (stages[i] == first) {
        written.merge(BuffersOf(parts[i], true));
      } else {
        read.merge(BuffersOf(parts[i], false));
        changed.merge(BuffersOf(parts[i], true));
      }
    }
    std::vector<Buffer> between;
    for (const Buffer& buffer : allocs) {
      if (written.erase(buffer.get()) == 0) continue;
      if (changed.contains(buffer.get())) {
        return Refuse(loop, absl::StrCat("both stages write ", buffer->name));
      }
      // Also if none reads it: copies into it may overlap.
      between.push_back(buffer);
    }
    for (const ir::BufferNode* buffer : written) {
      if (read.contains(buffer) || changed.contains(buffer)) {
        return Refuse(loop, absl::StrCat("the buffer ", buffer->name,
                                         " is allocated outside of it"));
      }
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (stages[i] != first) continue;
      for (const ir::BufferNode* buffer : BuffersOf(parts[i], false)) {
        if (changed.contains(buffer)) {
          return Refuse(loop,
                        absl::StrCat("an early stage reads ", buffer->name,
                                     ", which a later one writes"));
        }
      }
    }
    return between;
  }

  const bool async_;
};

}  // namespace

absl::StatusOr<Stmt> PipelineLoops(const Stmt& stmt,
                                   const target::GpuLimits& limits) {
  LoopPipeliner pipeliner(limits.async_copies);
  Stmt out = pipeliner.Mutate(stmt);
  if (!pipeliner.status.ok()) return pipeliner.status;
  return out;
}

}  // namespace tilefarm::lower
