// What primitives work on: the module under transformation, the way up from
// any statement, and what the variables of the trace stand for.
//
// A primitive is a free function of ScheduleState: it checks its
// preconditions, builds the new statement, and calls Replace. It records
// nothing; Schedule (schedule.cc) runs it inside a transaction, undoes
// everything where it fails, and appends the instruction where it succeeds.
//
//   absl::Status Unroll(ScheduleState& state, LoopRv loop_rv) {
//     TF_ASSIGN_OR_RETURN(ir::ForPtr loop, state.Get("unroll", loop_rv));
//     if (...) return state.Illegal("unroll", loop, "the loop is ...");
//     state.Replace(loop, new_loop);
//     return absl::OkStatus();
//   }
//
// Identity. A loop is its loop variable: a new loop with the same variable is
// the same loop, and variables of the trace follow it. A block is followed by
// Replace: by pointer, by `reuse`, by its iteration variables, at last by a
// name that only one old and one new block have. What is gone is an error
// that says so when it is used again. Loop variables, block variables, loop
// and block nodes occur once in a module: copies need fresh ones (ir_copy.h).
//
// Pointers from a lookup are valid until the next Replace, after which the
// statement may have been rebuilt: look it up again through Latest().
#ifndef TILEFARM_COMPILER_SCHEDULE_SCHEDULE_STATE_H_
#define TILEFARM_COMPILER_SCHEDULE_SCHEDULE_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/rng.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/block_facts.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {

// old block -> the block that carries its identity on.
using BlockReuse =
    std::vector<std::pair<const ir::BlockNode*, const ir::BlockNode*>>;

// What sample_compute_location answers besides loops.
enum class LoopMark : uint8_t { kNone, kRoot, kInline };

// A value type: copies share the immutable IR. Not thread-safe.
class ScheduleState {
 public:
  ScheduleState(ir::IRModule module, uint64_t seed);

  const ir::IRModule& module() const { return module_; }
  Rng& rng() { return rng_; }
  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }

  // --- Variables of the trace ---
  // InvalidArgument "PRIMITIVE: ..." where the variable is unknown, of another
  // kind, or its block or loop no longer exists.
  absl::StatusOr<ir::BlockPtr> Get(std::string_view primitive,
                                   BlockRv block) const;
  // A mark (root, inline) is not a loop: InvalidArgument.
  absl::StatusOr<ir::ForPtr> Get(std::string_view primitive, LoopRv loop) const;
  absl::StatusOr<int64_t> Get(std::string_view primitive, ExprRv value) const;
  // kNone for loops and unknown variables.
  LoopMark MarkOf(LoopRv loop) const;
  // New variables; the block or loop must be in the module.
  BlockRv NewBlock(const ir::BlockPtr& block);
  LoopRv NewLoop(const ir::ForPtr& loop);
  LoopRv NewMark(LoopMark mark);
  ExprRv NewExpr(int64_t value);
  // Takes back the newest variables, which nothing may use.
  void ForgetLastVariables(size_t count) {
    variables_.resize(variables_.size() - count);
  }

  // --- Finding one's way ---
  // `stmt` is a block or a loop of the module, unless said otherwise.
  bool Contains(const ir::StmtNode* stmt) const;
  // The next block or loop around it; null for a root block.
  ir::Stmt Parent(const ir::StmtNode* stmt) const;
  // The next block around it (its scope); null for a root block.
  ir::BlockPtr Scope(const ir::StmtNode* stmt) const;
  // Loops between the scope and the statement, outermost first; itself not
  // included.
  std::vector<ir::ForPtr> LoopsAbove(const ir::StmtNode* stmt) const;
  // The blocks below it that are not inside other blocks below it, in program
  // order.
  std::vector<ir::BlockPtr> ChildBlocks(const ir::StmtNode* stmt) const;
  // Every block of the function, in pre-order.
  std::vector<ir::BlockPtr> BlocksOf(const ir::PrimFunc* function) const;
  // `inner` lies below `outer` or is it.
  bool IsBelow(const ir::StmtNode* inner, const ir::StmtNode* outer) const;
  ir::PrimFuncPtr FunctionOf(const ir::StmtNode* stmt) const;
  // The loop that now has this variable; null where there is none.
  ir::ForPtr LoopOf(const ir::VarNode* var) const;
  // The statement as it is now, after Replace rebuilt it; null where gone.
  // Follows loops for ever and blocks across the last Replace only.
  ir::ForPtr Latest(const ir::ForPtr& loop) const;
  ir::BlockPtr Latest(const ir::BlockPtr& block) const;
  // The shared pointer of a node of the module.
  ir::BlockPtr Ref(const ir::BlockNode* block) const;
  ir::ForPtr Ref(const ir::ForNode* loop) const;
  // The block whose allocs have the buffer; null for parameters.
  ir::BlockPtr AllocSite(const ir::BufferNode* buffer) const;
  // The number of times that `name` is a block's name in the function.
  int CountBlocks(const ir::PrimFunc* function, std::string_view name) const;

  // What checks have found out (block_info.cc); they hold for copies of the
  // state and after Restore, too.
  struct Facts {
    BlockFacts affine, covered;
  };
  Facts& facts() const { return facts_; }

  // Whether `step`, a callable of ScheduleState& that returns a status, would
  // succeed. It sees a copy without the trace.
  template <typename Step>
  bool Would(const Step& step) const {
    ScheduleState trial(*this, Trial{});
    const bool can = step(trial).ok();
    // The step itself will ask the same.
    facts_ = std::move(trial.facts_);
    return can;
  }

  // --- Rewriting ---
  // Puts `new_stmt` where the block or loop `old_stmt` is and rebuilds what is
  // around it. `old_stmt` may be a root block, its replacement a block. An
  // empty new statement (NoOp) removes the old one together with loops that
  // then have an empty body.
  void Replace(const ir::StmtNode* old_stmt, ir::Stmt new_stmt,
               const BlockReuse& reuse = {});
  // The same for a whole function body, or for several edits at once made by a
  // Mutator from the root.
  void ReplaceRoot(const ir::PrimFunc* function, ir::Stmt new_root,
                   const BlockReuse& reuse = {});

  // --- Errors ---
  // FailedPrecondition "PRIMITIVE: block C, loop i: reason"; `where` (block,
  // loop or null) is named with the block around or, for a loop, the first
  // block below it.
  absl::Status Illegal(std::string_view primitive, const ir::StmtNode* where,
                       std::string_view reason) const;
  // InvalidArgument in the same form: a wrong argument, not an illegal use.
  absl::Status Invalid(std::string_view primitive, const ir::StmtNode* where,
                       std::string_view reason) const;
  std::string Describe(const ir::StmtNode* where) const;

  // --- Transactions ---
  // What a failed primitive must restore. The trace and the names of variables
  // are only ever appended to.
  struct Snapshot {
    ir::IRModule module;
    std::vector<ir::BlockPtr> blocks;
    size_t num_variables;
    size_t num_instructions;
    Rng rng;
  };
  Snapshot Save() const;
  void Restore(Snapshot snapshot);

 private:
  struct Trial {};
  ScheduleState(const ScheduleState& other, Trial)
      : module_(other.module_),
        rng_(other.rng_),
        blocks_(other.blocks_),
        variables_(other.variables_),
        followed_(other.followed_),
        index_(other.index_),
        facts_(std::move(other.facts_)) {}

  struct Node {
    // Within the node around it, which the module keeps alive.
    const ir::Stmt* stmt = nullptr;
    const ir::StmtNode* parent = nullptr;
    int function = 0;
  };
  struct Variable {
    RvKind kind = RvKind::kExpr;
    LoopMark mark = LoopMark::kNone;
    int64_t value = 0;  // expressions: the value; blocks: index in blocks_
    ir::Var loop_var;
  };
  // The way up and the loops by variable, rebuilt after each Replace when it
  // is first asked for.
  struct Index {
    absl::flat_hash_map<const ir::StmtNode*, Node> nodes;
    absl::flat_hash_map<const ir::VarNode*, const ir::ForNode*> loops;
    bool valid = false;
  };
  const Index& index() const;
  const Node& NodeOf(const ir::StmtNode* stmt) const;
  void FollowBlocks(const ir::Stmt& old_root, const ir::Stmt& new_root,
                    const BlockReuse& reuse);

  ir::IRModule module_;
  Rng rng_;
  Trace trace_;
  // Blocks that variables stand for; null once gone.
  std::vector<ir::BlockPtr> blocks_;
  bool Is(RvKind kind, int id) const {
    return id >= 0 && id < static_cast<int>(variables_.size()) &&
           variables_[id].kind == kind;
  }

  std::vector<Variable> variables_;  // by id
  // Of the last Replace, for Latest().
  std::unordered_map<const ir::BlockNode*, const ir::BlockNode*> followed_;
  mutable Index index_;
  mutable Facts facts_;
};

// The ranges of the loops, in their order.
arith::VarRanges RangesOf(const std::vector<ir::ForPtr>& loops);
// The constant extent; nullopt where it is an expression.
std::optional<int64_t> ExtentOf(const ir::ForPtr& loop);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_SCHEDULE_STATE_H_
