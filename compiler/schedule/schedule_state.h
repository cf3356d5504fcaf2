// The state that primitives work on: the module under transformation, the
// parents of its statements, and what the variables of the trace stand for.
//
// A primitive is a free function of ScheduleState: it checks its
// preconditions, builds the new statement, and calls Replace. It records
// nothing; Schedule (schedule.cc) runs it inside a transaction, undoes
// everything where it fails, and appends the instruction where it succeeds.
//
//   absl::Status Unroll(ScheduleState& state, LoopRv loop_rv) {
//     TF_ASSIGN_OR_RETURN(ir::ForPtr loop, state.Get(loop_rv));
//     if (...) return state.Illegal(loop, "the loop is ...");
//     state.Replace(loop, new_loop);
//     return absl::OkStatus();
//   }
//
// Identity. A loop is identified by its loop variable: a new loop with the same
// variable is the same loop, and variables of the trace follow it. Replace
// tracks blocks, in this order: by pointer, by `reuse`, by their iteration
// variables, by a name that only one old and one new block have. Using a
// variable whose block or loop is gone is an error that says so. Loop
// variables, block variables, loop nodes and block nodes must be unique in a
// module: copies need fresh ones (ir_copy.h).
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
#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "compiler/arith/analyzer.h"
#include "compiler/ir/float_rule.h"
#include "compiler/ir/stmt.h"
#include "compiler/schedule/access_facts.h"
#include "compiler/schedule/block_facts.h"
#include "compiler/schedule/trace.h"

namespace tilefarm::schedule {

// Maps an old block to the new block that takes over its identity.
using BlockReuse =
    std::vector<std::pair<const ir::BlockNode*, const ir::BlockNode*>>;

// Results of sample_compute_location that are not loops.
enum class LoopMark : uint8_t { kNone, kRoot, kInline };

// A value type: copies share the immutable IR. Not thread-safe.
class ScheduleState {
 public:
  ScheduleState(ir::IRModule module, uint64_t seed, ir::FloatRule floats)
      : module_(std::move(module)), rng_(seed), floats_(floats) {}

  const ir::IRModule& module() const { return module_; }
  Rng& rng() { return rng_; }
  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }

  // --- The primitive that runs ---
  // Errors name it; `name` must live on.
  void Begin(std::string_view name) { primitive_ = name; }
  std::string_view primitive() const { return primitive_; }
  // Whether primitives leave concurrent loops unchecked for now
  // (PartialReplay::AdvanceAtOnce).
  bool defers_concurrency() const { return defers_concurrency_; }
  void set_defers_concurrency(bool defers) { defers_concurrency_ = defers; }

  // --- Variables of the trace ---
  // InvalidArgument "PRIMITIVE: ..." if the variable is unknown or of another
  // kind, or if its block or loop no longer exists.
  absl::StatusOr<ir::BlockPtr> Get(BlockRv block) const;
  // A mark (root, inline) is not a loop: InvalidArgument.
  absl::StatusOr<ir::ForPtr> Get(LoopRv loop) const;
  absl::StatusOr<int64_t> Get(ExprRv value) const;
  absl::StatusOr<ir::Stmt> Get(BlockOrLoop where) const;
  // kNone for loops and unknown variables.
  LoopMark MarkOf(LoopRv loop) const;
  // New variables; the block or loop must be in the module.
  BlockRv NewBlock(const ir::BlockPtr& block);
  LoopRv NewLoop(const ir::ForPtr& loop);
  LoopRv NewMark(LoopMark mark);
  ExprRv NewExpr(int64_t value);
  // Removes the newest variables, which nothing may use yet.
  void ForgetLastVariables(size_t count) {
    variables_.resize(variables_.size() - count);
  }

  // --- Finding one's way ---
  // `stmt` is a block or a loop of the module unless stated otherwise.
  bool Contains(const ir::StmtNode* stmt) const;
  // The nearest block or loop around it; null for a root block.
  ir::Stmt Parent(const ir::StmtNode* stmt) const;
  // The nearest block around it (its scope); null for a root block.
  ir::BlockPtr Scope(const ir::StmtNode* stmt) const;
  // The loops between the scope and the statement, which is not included,
  // outermost first.
  std::vector<ir::ForPtr> LoopsAbove(const ir::StmtNode* stmt) const;
  // The nearest blocks below it, which are in no other block below it, in
  // program order.
  std::vector<ir::BlockPtr> ChildBlocks(const ir::StmtNode* stmt) const;
  // Every block of the function, in pre-order.
  std::vector<ir::BlockPtr> BlocksOf(const ir::PrimFunc* function) const;
  // Whether `inner` is `outer` or lies below it.
  bool IsBelow(const ir::StmtNode* inner, const ir::StmtNode* outer) const;
  ir::PrimFuncPtr FunctionOf(const ir::StmtNode* stmt) const;
  // The current loop with this variable; null if there is none.
  ir::ForPtr LoopOf(const ir::VarNode* var) const;
  // The current version of a statement that Replace rebuilt; null if it is
  // gone. Loops can be tracked across any number of calls, blocks across one.
  ir::ForPtr Latest(const ir::ForPtr& loop) const;
  ir::BlockPtr Latest(const ir::BlockPtr& block) const;
  // The shared pointer to a node of the module.
  ir::BlockPtr Ref(const ir::BlockNode* block) const;
  ir::ForPtr Ref(const ir::ForNode* loop) const;
  // The block that allocates the buffer; null for parameters.
  ir::BlockPtr AllocSite(const ir::BufferNode* buffer) const;
  // The number of blocks of this name in the function.
  int CountBlocks(const ir::PrimFunc* function, std::string_view name) const;

  // Cached results of checks (block_info.cc). They stay valid in copies of the
  // state and after Restore.
  struct Facts {
    BlockFacts affine, covered, init_apart, whole;
    AccessFacts apart;
  };
  Facts& facts() const { return facts_; }

  // Whether `step`, a callable of ScheduleState& that returns a status, would
  // succeed. It sees a copy without the trace.
  template <typename Step>
  bool Would(const Step& step) const {
    ScheduleState trial(*this, Trial{});
    const bool can = step(trial).ok();
    // Keep the new facts: the step itself will need them.
    facts_ = std::move(trial.facts_);
    return can;
  }

  // --- Rewriting ---
  // Replaces the block or loop `old_stmt` by `new_stmt` and rebuilds the
  // statements around it. `old_stmt` may be a root block if `new_stmt` is a
  // block. An empty statement (NoOp) removes the old one together with loops
  // whose body becomes empty.
  void Replace(const ir::StmtNode* old_stmt, ir::Stmt new_stmt,
               const BlockReuse& reuse = {});
  // The same for a whole function body, or for several edits that a Mutator
  // made at once from the root.
  void ReplaceRoot(const ir::PrimFunc* function, ir::Stmt new_root,
                   const BlockReuse& reuse = {});

  // --- Errors ---
  // FailedPrecondition "PRIMITIVE: block C, loop i: reason"; `where` (block,
  // loop or null) is named with the block around or, for a loop, the first
  // block below it.
  absl::Status Illegal(const ir::StmtNode* where,
                       std::string_view reason) const;
  absl::Status Illegal(const ir::StmtNode* where,
                       const absl::Status& why) const;
  // InvalidArgument in the same form: a wrong argument, not an illegal use.
  absl::Status Invalid(const ir::StmtNode* where,
                       std::string_view reason) const;
  // The same with reasons that are put together.
  template <typename A, typename B, typename... Parts>
  absl::Status Illegal(const ir::StmtNode* where, const A& a, const B& b,
                       const Parts&... parts) const {
    return Illegal(where,
                   static_cast<std::string_view>(absl::StrCat(a, b, parts...)));
  }
  template <typename A, typename B, typename... Parts>
  absl::Status Invalid(const ir::StmtNode* where, const A& a, const B& b,
                       const Parts&... parts) const {
    return Invalid(where,
                   static_cast<std::string_view>(absl::StrCat(a, b, parts...)));
  }
  // Illegal under rules stricter than `least`; `change` is a sentence.
  absl::Status CheckMayDiffer(
      const ir::StmtNode* where, std::string_view change,
      ir::FloatRule least = ir::FloatRule::kNoWinograd) const;
  static constexpr char kRoundsOtherwise[] = "it rounds operands otherwise";
  static constexpr char kLeavesOut[] =
      "it leaves out terms 0 * y where y may be infinite or not a number";
  std::string Describe(const ir::StmtNode* where) const;

  // --- Transactions ---
  // The data that a failed primitive must restore. The trace and the table of
  // variable names only grow.
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
        floats_(other.floats_),
        primitive_(other.primitive_),
        defers_concurrency_(other.defers_concurrency_),
        blocks_(other.blocks_),
        variables_(other.variables_),
        followed_(other.followed_),
        index_(other.index_),
        facts_(std::move(other.facts_)) {}

  struct Node {
    // Points into the parent node, which the module keeps alive.
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
  int Add(Variable variable);  // its id

  // Parents, and loops by variable; rebuilt on first use after a Replace.
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
  ir::FloatRule floats_;
  std::string_view primitive_ = "get";
  bool defers_concurrency_ = false;
  Trace trace_;
  // The blocks that variables stand for; null once gone.
  std::vector<ir::BlockPtr> blocks_;
  bool Is(RvKind kind, int id) const {
    return id >= 0 && id < static_cast<int>(variables_.size()) &&
           variables_[id].kind == kind;
  }

  std::vector<Variable> variables_;  // by id
  // Block replacements of the last Replace, for Latest().
  std::unordered_map<const ir::BlockNode*, const ir::BlockNode*> followed_;
  mutable Index index_;
  mutable Facts facts_;
};

// The ranges of the loops, in their order.
arith::VarRanges RangesOf(const std::vector<ir::ForPtr>& loops);
// The constant extent; nullopt if it is an expression.
std::optional<int64_t> ExtentOf(const ir::ForPtr& loop);

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_SCHEDULE_STATE_H_
