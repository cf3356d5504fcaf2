#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/annotations.h"
#include "compiler/ir/machine_op.h"
#include "compiler/ir/memory_scope.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/gpu_passes.h"
#include "compiler/lower/index_prefixer.h"
#include "compiler/lower/kernel_launch.h"
#include "compiler/lower/own_part.h"

namespace tilefarm::lower {
namespace {

using ir::Buffer;
using ir::Expr;
using ir::ForKind;
using ir::ForNode;
using ir::Stmt;
using ir::ThreadAxis;

constexpr auto kClusterAxis = static_cast<size_t>(ThreadAxis::kCluster);

// Replaces the loops of one kernel by the variables of its axes.
class ThreadMapper : public ir::Mutator {
 public:
  ThreadMapper(const Launch& launch, const target::GpuLimits& limits)
      : launch_(launch), limits_(limits) {}
  using Mutator::Mutate;
  Expr Mutate(const Expr& expr) override { return Mutator::Mutate(expr); }
  absl::Status status;

 protected:
  Stmt MutateFor(const ForNode& s, const Stmt& self) override {
    const auto axis = AxisOf(s);
    if (!axis) {
      loops_.push_back(&s);
      Stmt out = Mutator::MutateFor(s, self);
      loops_.pop_back();
      return out;
    }
    const size_t i = static_cast<size_t>(*axis);
    for (const auto& [tag, var] : outer_) {
      // Its iteration is that of the axis already.
      const ir::VarNode* iteration = launch_.vars[i].get();
      bool uses = false;
      if (tag == *axis) {
        ir::PostOrderExprs(
            s.body, [&](const Expr& e) { uses |= e.get() == iteration; });
      }
      if (uses) {
        Fail(absl::StrCat("loops ", var->name, " and ", s.var->name,
                          " are bound to ", s.thread_tag,
                          " one inside the other, and the inner one uses the "
                          "outer one's iteration"));
        return self;
      }
    }
    if (!ir::IsThreadIdx(*axis) && !loops_.empty()) {
      // Each block would run the loop, in any order.
      for (const ForNode* loop : loops_) {
        if (loop->for_kind == ForKind::kSerial && IsHostLoop(*loop)) {
          Fail(absl::StrCat("loop ", s.var->name, " is bound to ", s.thread_tag,
                            " below loop ", loop->var->name,
                            ", which no GPU block can run for all"));
          return self;
        }
      }
    }
    outer_.emplace_back(*axis, s.var.get());
    const bool outer = bound_[i];
    bound_[i] = true;
    const Expr var = launch_.vars[i];
    Stmt body = Mutate(ir::Substitute(s.body, {{s.var.get(), var}}));
    bound_[i] = outer;
    outer_.pop_back();
    if (*ir::AsInt(s.extent) < launch_.extents[i]) {
      body = ir::MakeIf(ir::LT(var, s.extent), std::move(body));
    }
    return body;
  }

  Stmt MutateAlloc(const ir::AllocNode& s, const Stmt& self) override {
    ir::MemoryScope scope = ir::ScopeOf(*s.buffer);
    if (scope == ir::MemoryScope::kWarp) {
      Fail(absl::StrCat("buffer ", s.buffer->name,
                        ": the scope \"warp\" is not supported; use "
                        "\"shared\" or \"local\""));
      return self;
    }
    if (CrossesBlocks(s)) {
      Fail(absl::StrCat("buffer ", s.buffer->name,
                        " is in the memory of one block of threads, but its "
                        "elements are written by several blocks; give it a "
                        "nest of its own, or the scope \"shared.cluster\""));
      return self;
    }
    if (scope == ir::MemoryScope::kCluster &&
        s.buffer->shape[0] !=
            std::max<int64_t>(1, launch_.extents[kClusterAxis])) {
      Fail(absl::StrCat("buffer ", s.buffer->name, " of the scope ",
                        s.buffer->scope, " has parts of ", s.buffer->shape[0],
                        " blocks; a cluster has ",
                        std::max<int64_t>(1, launch_.extents[kClusterAxis])));
      return self;
    }
    // Threads also divide loops inside of a loop over the same axis.
    const bool crosses = CrossesThreads(s) || SomeThreadsStore(s);
    if (scope == ir::MemoryScope::kGlobal) {
      if (AllBound(/*blocks=*/false) && !crosses) {
        scope = ir::MemoryScope::kLocal;
      } else {
        const std::vector<size_t> owners = Owners(s);
        if (!owners.empty()) return Mutate(OneForEach(owners, s));
        scope = ir::MemoryScope::kShared;
      }
    }
    if (scope == ir::MemoryScope::kLocal && crosses) {
      if (const auto part = FindOwnPart(s, launch_.vars, launch_.extents)) {
        const auto& own = *ir::As<ir::AllocNode>(part->alloc);
        if (!CrossesThreads(own) && !SomeThreadsStore(own, part->axes)) {
          return PlaceAlloc(own, part->alloc, scope);
        }
      }
      Fail(absl::StrCat("buffer ", s.buffer->name,
                        " is local to a thread, but its elements are written "
                        "by several; use the scope \"shared\""));
      return self;
    }
    return PlaceAlloc(s, self, scope);
  }

  // The allocation in the memory of this scope.
  Stmt PlaceAlloc(const ir::AllocNode& s, const Stmt& self,
                  ir::MemoryScope scope) {
    int64_t bytes = s.buffer->memory_elements() * s.buffer->dtype.bytes();
    const bool of_cluster = scope == ir::MemoryScope::kCluster;
    if (of_cluster) bytes /= s.buffer->shape[0];
    const bool shared = of_cluster || scope == ir::MemoryScope::kShared;
    if (shared && bytes > limits_.block_shared) {
      Fail(absl::StrCat("buffer ", s.buffer->name, " has ", bytes,
                        " bytes, shared by the threads of a block, which have ",
                        limits_.block_shared));
      return self;
    }
    const char* name = of_cluster ? "shared.cluster"
                       : shared   ? "shared"
                                  : "local";
    (shared ? shared_ : local_).insert(s.buffer.get());
    Stmt body = Mutate(s.body);
    if (s.buffer->scope == name) {
      return body == s.body ? self : ir::MakeAlloc(s.buffer, std::move(body));
    }
    ir::BufferNode placed(*s.buffer);
    placed.scope = name;
    Buffer buffer = std::make_shared<const ir::BufferNode>(std::move(placed));
    body = ir::ReplaceBuffers(body, {{s.buffer.get(), buffer}});
    return ir::MakeAlloc(std::move(buffer), std::move(body));
  }

  Stmt MutateIf(const ir::IfNode& s, const Stmt& self) override {
    conditions_.push_back(Mutate(s.condition));
    Stmt out = Mutator::MutateIf(s, self);
    conditions_.pop_back();
    return out;
  }

  Stmt MutateStore(const ir::StoreNode& s, const Stmt& self) override {
    Stmt store = Mutator::MutateStore(s, self);
    if (local_.contains(s.buffer.get())) {
      for (size_t i = 0; i < bound_.size(); ++i) {
        if (Differs(*ir::As<ir::StoreNode>(store), i)) {
          differs_.insert({s.buffer.get(), i});
        }
      }
      return store;
    }
    const bool shared = shared_.contains(s.buffer.get());
    if (shared) CheckOneValue(*ir::As<ir::StoreNode>(store));
    if (ir::ScopeOf(*s.buffer) == ir::MemoryScope::kCluster &&
        launch_.extents[kClusterAxis] > 1 &&
        ir::As<ir::StoreNode>(store)->indices[0] !=
            Expr(launch_.vars[kClusterAxis])) {
      Fail(absl::StrCat(
          "a block of a cluster writes its own part of ", s.buffer->name,
          " alone: the first index must be the loop that is bound to ",
          std::string(ir::ThreadTag(ThreadAxis::kCluster))));
    }
    // One of the threads that would all do the same.
    Expr first = ir::BoolConst(true);
    for (size_t i = 0; i < bound_.size(); ++i) {
      const bool is_block = !ir::IsThreadIdx(static_cast<ThreadAxis>(i));
      // Each block has shared memory of its own.
      if (launch_.extents[i] > 1 && !(shared && is_block) &&
          (!bound_[i] ||
           (shared && !Differs(*ir::As<ir::StoreNode>(store), i)))) {
        first = ir::And(first, ir::EQ(launch_.vars[i], ir::IntConst(0)));
      }
    }
    return ir::IsConstInt(first, 1) ? store
                                    : ir::MakeIf(first, std::move(store));
  }

 private:
  void Fail(const std::string& what) {
    if (status.ok()) status = absl::InvalidArgumentError(what);
  }

  // Whether a loop of every axis that has several threads (blocks) is around.
  bool AllBound(bool blocks) const {
    for (int i = 0; i < ir::kThreadAxes; ++i) {
      const bool is_block = !ir::IsThreadIdx(static_cast<ThreadAxis>(i));
      const auto at = static_cast<size_t>(i);
      if (is_block == blocks && launch_.extents[at] > 1 && !bound_[at]) {
        return false;
      }
    }
    return true;
  }

  static bool Accesses(const Stmt& stmt, const Buffer& buffer) {
    bool accesses = false;
    ir::PreOrder(stmt, [&](const Stmt& s) {
      const auto* store = ir::As<ir::StoreNode>(s);
      accesses |= store != nullptr && store->buffer == buffer;
      return !accesses;
    });
    ir::PostOrderExprs(stmt, [&](const Expr& e) {
      const auto* load = ir::As<ir::LoadNode>(e);
      accesses |= load != nullptr && load->buffer == buffer;
    });
    return accesses;
  }

  // The axes of threads around an allocation, each of whose iterations has its
  // own: no loop inside of it that accesses the buffer divides the axis anew.
  std::vector<size_t> Owners(const ir::AllocNode& alloc) {
    std::vector<size_t> owners;
    for (size_t i = 0; i < bound_.size(); ++i) {
      if (!bound_[i] || launch_.extents[i] <= 1 ||
          !ir::IsThreadIdx(static_cast<ThreadAxis>(i))) {
        continue;
      }
      bool divided = false;
      ir::PreOrder(alloc.body, [&](const Stmt& s) {
        const auto* loop = ir::As<ForNode>(s);
        divided |= loop != nullptr &&
                   AxisOf(*loop) == static_cast<ThreadAxis>(i) &&
                   Accesses(loop->body, alloc.buffer);
        return !divided;
      });
      if (!MayDiffer(alloc, i)) continue;
      if (divided) {
        Fail(
            absl::StrCat("buffer ", alloc.buffer->name, ": each thread of ",
                         std::string(ir::ThreadTag(static_cast<ThreadAxis>(i))),
                         " has its own, which a loop that is bound to this "
                         "axis divides anew"));
      }
      owners.push_back(i);
    }
    return owners;
  }

  // Whether threads of the axis may store different values to the buffer. Not
  // if all copy the same from global memory.
  bool MayDiffer(const ir::AllocNode& alloc, size_t axis) const {
    bool differs = false;
    const auto look = [&](const Expr& e) {
      differs |= e.get() == launch_.vars[axis].get();
      const auto* var = ir::As<ir::VarNode>(e);
      differs |= var != nullptr && var->of_let;
      const auto* load = ir::As<ir::LoadNode>(e);
      differs |= load != nullptr && load->buffer != alloc.buffer &&
                 ir::ScopeOf(*load->buffer) != ir::MemoryScope::kGlobal;
    };
    ir::PreOrder(alloc.body, [&](const Stmt& s) {
      // It may become local, with other values in each thread.
      const auto* inner = ir::As<ir::AllocNode>(s);
      differs |= inner != nullptr &&
                 ir::ScopeOf(*inner->buffer) == ir::MemoryScope::kGlobal;
      if (const auto* branch = ir::As<ir::IfNode>(s)) {
        ir::PostOrderExprs(branch->condition, look);
      }
      const auto* store = ir::As<ir::StoreNode>(s);
      if (store != nullptr && store->buffer == alloc.buffer) {
        ir::PostOrderExprs(store->value, look);
        for (const Expr& index : store->indices) {
          ir::PostOrderExprs(index, look);
        }
      }
      return !differs;
    });
    return differs;
  }

  // The allocation in shared memory, with a dimension for each of the axes.
  Stmt OneForEach(const std::vector<size_t>& owners,
                  const ir::AllocNode& s) const {
    ir::BufferNode all(*s.buffer);
    all.scope = "shared";
    std::vector<int64_t> shape;
    std::vector<Expr> owner;
    for (const size_t i : owners) {
      shape.push_back(launch_.extents[i]);
      owner.emplace_back(launch_.vars[i]);
    }
    all.shape.insert(all.shape.begin(), shape.begin(), shape.end());
    for (std::vector<int64_t>& align : all.dim_align) {
      align.front() += static_cast<int64_t>(owners.size());
    }
    const Buffer buffer =
        std::make_shared<const ir::BufferNode>(std::move(all));
    return ir::MakeAlloc(buffer,
                         IndexPrefixer(s.buffer, buffer, owner).Mutate(s.body));
  }

  // Whether the threads of an axis may store different values, or to different
  // elements. Not in a fetch that threads of another axis divide among them.
  bool Differs(const ir::StoreNode& s, size_t axis) const {
    bool differs = false;
    const auto look = [&](const Expr& e) {
      differs |= e.get() == launch_.vars[axis].get();
      const auto* var = ir::As<ir::VarNode>(e);
      differs |= var != nullptr && var->of_let;
      const auto* load = ir::As<ir::LoadNode>(e);
      differs |=
          load != nullptr && differs_.contains({load->buffer.get(), axis});
      const auto* op = ir::As<ir::MachineOpNode>(e);
      differs |= op != nullptr && op->op == ir::MachineOp::kShuffleXor;
    };
    ir::PostOrderExprs(s.value, look);
    for (const Expr& index : s.indices) ir::PostOrderExprs(index, look);
    for (const Expr& condition : conditions_) {
      ir::PostOrderExprs(condition, look);
    }
    return differs;
  }

  // Refuses a store of the threads' own values to one element that they share.
  // Conditions may choose one of them.
  void CheckOneValue(const ir::StoreNode& s) {
    for (size_t i = 0; i < bound_.size(); ++i) {
      if (!ir::IsThreadIdx(static_cast<ThreadAxis>(i)) || !bound_[i] ||
          launch_.extents[i] == 1) {
        continue;
      }
      const ir::VarNode* thread = launch_.vars[i].get();
      // What they have kept in places of their own may be the same.
      bool value_differs = false, is_kept = false;
      ir::PostOrderExprs(s.value, [&](const Expr& e) {
        const auto* load = ir::As<ir::LoadNode>(e);
        value_differs |= e.get() == thread;
        is_kept |= load != nullptr && (local_.contains(load->buffer.get()) ||
                                       shared_.contains(load->buffer.get()));
      });
      bool may_choose = false;
      const auto look = [&](const Expr& e) {
        const auto* var = ir::As<ir::VarNode>(e);
        may_choose |= var == thread || (var != nullptr && var->of_let) ||
                      e->kind == ir::ExprKind::kLoad;
      };
      for (const Expr& index : s.indices) ir::PostOrderExprs(index, look);
      for (const Expr& condition : conditions_) {
        ir::PostOrderExprs(condition, look);
      }
      if (!value_differs || is_kept || may_choose) continue;
      Fail(absl::StrCat(
          "threads store different values to the same elements of ",
          s.buffer->name, ", which they share; use the scope \"local\""));
    }
  }

  // A loop without blocks around it.
  bool IsHostLoop(const ForNode&) const {
    return std::none_of(outer_.begin(), outer_.end(), [](const auto& outer) {
      return !ir::IsThreadIdx(outer.first);
    });
  }

  // Whether a store to the buffer, which is allocated outside of a loop of
  // threads, depends on which of them makes it.
  static bool CrossesThreads(const ir::AllocNode& alloc) {
    std::set<const ir::VarNode*> threads;
    bool crosses = false;
    ir::PreOrder(alloc.body, [&](const Stmt& s) {
      if (const auto* loop = ir::As<ForNode>(s)) {
        const auto axis = AxisOf(*loop);
        if (axis && ir::IsThreadIdx(*axis)) threads.insert(loop->var.get());
      }
      const auto* store = ir::As<ir::StoreNode>(s);
      if (store != nullptr && store->buffer == alloc.buffer) {
        for (const Expr& index : store->indices) {
          for (const ir::VarNode* var : threads) {
            crosses |= ir::UsesVar(index, var);
          }
        }
      }
      return true;
    });
    return crosses;
  }

  // Whether a loop over blocks stores to the buffer, and code outside of that
  // loop reads it.
  bool CrossesBlocks(const ir::AllocNode& alloc) const {
    const auto accesses = [&](const Stmt& stmt, int& stores, int& loads) {
      stores = loads = 0;
      ir::PreOrder(stmt, [&](const Stmt& s) {
        const auto* store = ir::As<ir::StoreNode>(s);
        stores += store != nullptr && store->buffer == alloc.buffer;
        return true;
      });
      ir::PostOrderExprs(stmt, [&](const Expr& e) {
        const auto* load = ir::As<ir::LoadNode>(e);
        loads += load != nullptr && load->buffer == alloc.buffer;
      });
    };
    int all_stores, all_loads;
    accesses(alloc.body, all_stores, all_loads);
    bool crosses = false;
    ir::PreOrder(alloc.body, [&](const Stmt& s) {
      const auto* loop = ir::As<ForNode>(s);
      const auto axis = loop == nullptr ? std::nullopt : AxisOf(*loop);
      // One of a single block leaves out the others.
      if (!axis || ir::IsThreadIdx(*axis) ||
          launch_.extents[static_cast<size_t>(*axis)] == 1 ||
          (*axis == ThreadAxis::kCluster &&
           ir::ScopeOf(*alloc.buffer) == ir::MemoryScope::kCluster)) {
        return true;
      }
      int stores, loads;
      accesses(s, stores, loads);
      crosses |= stores > 0 && loads < all_loads;
      return !crosses;
    });
    return crosses;
  }

  // Whether not all threads store to the buffer: others would lack values.
  // Those of the `owned` axes access none but their own.
  bool SomeThreadsStore(const ir::AllocNode& alloc,
                        const std::vector<size_t>& owned = {}) const {
    const auto stores = [&](const Stmt& stmt) {
      bool found = false;
      ir::PreOrder(stmt, [&](const Stmt& inner) {
        const auto* store = ir::As<ir::StoreNode>(inner);
        found |= store != nullptr && store->buffer == alloc.buffer;
        return !found;
      });
      return found;
    };
    bool some = false;
    ir::PreOrder(alloc.body, [&](const Stmt& s) {
      const auto* loop = ir::As<ForNode>(s);
      const auto axis = loop == nullptr ? std::nullopt : AxisOf(*loop);
      if (!axis || !ir::IsThreadIdx(*axis) ||
          std::ranges::find(owned, static_cast<size_t>(*axis)) != owned.end()) {
        return true;
      }
      if (*ir::AsInt(loop->extent) !=
          launch_.extents[static_cast<size_t>(*axis)]) {
        some |= stores(loop->body);
        return true;
      }
      // The first thread has a sum of all.
      ir::PreOrder(loop->body, [&](const Stmt& inner) {
        const auto* branch = ir::As<ir::IfNode>(inner);
        some |= branch != nullptr &&
                ir::UsesVar(branch->condition, loop->var.get()) &&
                stores(inner);
        return !some;
      });
      return true;
    });
    return some;
  }

  const Launch& launch_;
  const target::GpuLimits& limits_;
  std::array<bool, ir::kThreadAxes> bound_{};
  std::vector<std::pair<ThreadAxis, const ir::VarNode*>> outer_;
  std::vector<const ForNode*> loops_;
  std::vector<Expr> conditions_;  // around the statement
  std::set<const ir::BufferNode*> local_, shared_;
  // Local buffers with other values in each thread of an axis.
  std::set<std::pair<const ir::BufferNode*, size_t>> differs_;
};

absl::StatusOr<Stmt> MapKernel(const Stmt& kernel,
                               const target::GpuLimits& limits) {
  const Launch launch = LaunchOf(kernel);
  TF_RETURN_IF_ERROR(CheckLaunch(launch, limits));
  ThreadMapper mapper(launch, limits);
  Stmt body = mapper.Mutate(kernel);
  if (!mapper.status.ok()) return mapper.status;
  for (size_t i = ir::kThreadAxes; i-- > 0;) {
    if (launch.extents[i] == 0) continue;
    body = std::make_shared<const ForNode>(
        launch.vars[i], ir::IntConst(0), ir::IntConst(launch.extents[i]),
        ForKind::kThreadBinding, std::move(body), launch.annotations,
        std::string(ir::ThreadTag(static_cast<ThreadAxis>(i))));
  }
  return body;
}

}  // namespace

absl::StatusOr<Stmt> MapThreads(const Stmt& root,
                                const target::GpuLimits& limits) {
  // What is between kernels is global (LowerThreadReductions).
  if (const auto* alloc = ir::As<ir::AllocNode>(root);
      alloc != nullptr &&
      ir::ScopeOf(*alloc->buffer) == ir::MemoryScope::kGlobal) {
    TF_ASSIGN_OR_RETURN(Stmt body, MapThreads(alloc->body, limits));
    return ir::MakeAlloc(alloc->buffer, std::move(body));
  }
  if (const auto* seq = ir::As<ir::SeqNode>(root)) {
    std::vector<Stmt> kernels;
    for (const Stmt& stmt : seq->stmts) {
      TF_ASSIGN_OR_RETURN(kernels.emplace_back(), MapThreads(stmt, limits));
    }
    return ir::MakeSeq(std::move(kernels));
  }
  return ir::IsNoOp(root) ? root : MapKernel(root, limits);
}

}  // namespace tilefarm::lower
