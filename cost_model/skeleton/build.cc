// Runs a sketch over loops and blocks whose numbers are expressions.
//
// Steps:
//   1. Replay the sketch once on the program. The blocks of the result give
//      all that decisions do not change.
//   2. Take the loops and bindings before the first sample from the program.
//   3. Run the instructions from there on over them: each is a few lines of
//      arithmetic, and knows when it would have to look closer.
//   4. Hold the outcome against the replayed program.
#include <algorithm>

#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "cost_model/skeleton/builder.h"

namespace tilefarm::skeleton {

using ir::As;
using schedule::Instruction;
using schedule::Rv;
using schedule::RvKind;

absl::StatusOr<Skeleton> Builder::Run() {
  TF_RETURN_IF_ERROR(ReplayWhole());
  TF_RETURN_IF_ERROR(ReplayPrefix());
  for (; next_ < sketch_.instructions.size(); ++next_) {
    TF_RETURN_IF_ERROR(Apply(sketch_.instructions[next_]));
  }
  TF_RETURN_IF_ERROR(Finish());
  return std::move(out_);
}

// --- 1: the sketch on the program ---
absl::Status Builder::ReplayWhole() {
  schedule::Trace trace = sketch_;
  TF_RETURN_IF_ERROR(trace.SetDecisions(decisions_));
  TF_ASSIGN_OR_RETURN(whole_, schedule::Replay(trace, module_));
  const ir::PrimFuncPtr function = whole_->module().Find(program_->name);
  BufferNumbers buffers(*function);
  absl::Status status;
  ir::PreOrder(function->body, [&](const ir::Stmt& stmt) {
    if (stmt.get() == function->body.get()) return true;
    if (stmt->kind == ir::StmtKind::kIf ||
        stmt->kind == ir::StmtKind::kLetStmt) {
      status = Unknown("a condition or a let statement");
    }
    if (stmt->kind != ir::StmtKind::kBlock) return status.ok();
    auto block = std::static_pointer_cast<const ir::BlockNode>(stmt);
    auto info = ReadBlock(block, buffers);
    if (!info.ok()) {
      status = info.status();
      return false;
    }
    info_of_[block->name] = static_cast<int>(out_.infos.size());
    out_.infos.push_back(*std::move(info));
    return false;
  });
  TF_RETURN_IF_ERROR(status);
  out_.buffers = buffers.Take();
  for (const BlockInfo& info : out_.infos) {
    if (!info.is_prepacked) continue;
    out_.buffers[static_cast<size_t>(info.writes[0].buffer)].intermediate =
        false;
  }
  return absl::OkStatus();
}

// The name of the block that a variable stands for after the whole sketch;
// empty where it is gone.
std::string Builder::NameOf(const schedule::Schedule& schedule,
                            size_t instruction, size_t output) const {
  const auto& made = schedule.trace().instructions;
  if (instruction >= made.size() ||
      output >= made[instruction].outputs.size()) {
    return "";
  }
  auto block =
      schedule.Get(schedule::BlockRv{made[instruction].outputs[output].id});
  return block.ok() ? (*block)->name : "";
}

// --- 2: up to the first sample ---
absl::Status Builder::ReplayPrefix() {
  schedule::Trace prefix;
  for (const Instruction& instruction : sketch_.instructions) {
    if (instruction.is_sample()) break;
    prefix.instructions.push_back(instruction);
  }
  next_ = prefix.instructions.size();
  TF_ASSIGN_OR_RETURN(const schedule::Schedule before,
                      schedule::Replay(prefix, module_));
  const ir::PrimFuncPtr function = before.module().Find(program_->name);
  TF_RETURN_IF_ERROR(Import(function->root()->body));
  for (size_t i = 0; i < next_; ++i) {
    const Instruction& instruction = prefix.instructions[i];
    for (size_t j = 0; j < instruction.outputs.size(); ++j) {
      const Rv& rv = instruction.outputs[j];
      const int id = before.trace().instructions[i].outputs[j].id;
      if (rv.kind == RvKind::kBlock) {
        auto block = before.Get(schedule::BlockRv{id});
        block_rvs_[rv.id] = block.ok() ? (*block)->name : "";
      } else if (rv.kind == RvKind::kLoop) {
        auto loop = before.Get(schedule::LoopRv{id});
        const auto found =
            loop.ok() ? loop_of_.find((*loop)->var.get()) : loop_of_.end();
        loop_rvs_[rv.id] = found == loop_of_.end() ? kForgotten : found->second;
      } else {
        return Unknown("a value before the first sample");
      }
    }
    if (instruction.primitive == "annotate") {
      TF_RETURN_IF_ERROR(Annotate(instruction));
    }
  }
  return absl::OkStatus();
}

absl::Status Builder::Import(const ir::Stmt& stmt) {
  if (const auto* seq = As<ir::SeqNode>(stmt)) {
    for (const ir::Stmt& s : seq->stmts) TF_RETURN_IF_ERROR(Import(s));
    return absl::OkStatus();
  }
  if (const auto* loop = As<ir::ForNode>(stmt)) {
    const auto extent = ir::AsInt(loop->extent);
    if (!extent || !ir::IsConstInt(loop->min, 0) ||
        loop->for_kind != ir::ForKind::kSerial || !loop->annotations.empty()) {
      return Unknown("a loop that is not plain");
    }
    const int number = NewLoop(out_.formula.Const(*extent));
    loop_of_[loop->var.get()] = number;
    path_.push_back(number);
    TF_RETURN_IF_ERROR(Import(loop->body));
    path_.pop_back();
    return absl::OkStatus();
  }
  const auto* block = As<ir::BlockNode>(stmt);
  if (block == nullptr) return Unknown("a statement between loops");
  const bool guarded = !ir::IsConstInt(block->predicate, 1);
  if (guarded && block->init != nullptr) {
    return Unknown("a reduction that is guarded from the start");
  }
  SketchBlock& made = out_.blocks.emplace_back();
  made.loops = path_;
  // A tail, whatever is decided.
  if (guarded) {
    made.guards.push_back({out_.formula.Const(1), out_.formula.Const(0)});
  }
  names_.push_back(block->name);
  for (const ir::IterVar& iter : block->iters) {
    const IndexExpr binding = ReadIndex(iter.binding, loop_of_);
    if (!binding.linear) return Unknown("a binding that is not linear");
    std::vector<Term>& terms = made.bindings.emplace_back();
    for (const auto& [loop, factor] : binding.terms) {
      terms.push_back({loop, out_.formula.Const(static_cast<int64_t>(factor))});
    }
    made.constants.push_back(static_cast<int64_t>(binding.constant));
  }
  return absl::OkStatus();
}

// --- 4: the outcome ---
absl::Status Builder::Finish() {
  DecisionValues values;
  std::vector<int64_t> numbers;
  if (!values.Assign(decisions_) || !out_.formula.Evaluate(values, numbers)) {
    return Unknown("decisions that are no integers");
  }
  for (size_t i = 0; i < out_.blocks.size(); ++i) {
    out_.blocks[i].info = InfoOf(static_cast<int>(i));
    if (out_.blocks[i].info < 0) return Unknown("a block that is gone");
  }
  if (out_.blocks.size() != out_.infos.size()) {
    return Unknown("another number of blocks");
  }
  std::vector<int64_t> extents;
  for (size_t i = 0; i < out_.blocks.size(); ++i) {
    const SketchBlock& block = out_.blocks[i];
    if (block.info != static_cast<int>(i)) {
      return Unknown("another order of blocks");
    }
    extents.clear();
    TF_RETURN_IF_ERROR(LoopExtents(out_.infos[i].block, extents));
    bool same = extents.size() == block.loops.size();
    for (size_t l = 0; same && l < extents.size(); ++l) {
      same = extents[l] == numbers[out_.extents[block.loops[l]]];
    }
    if (!same) return Unknown("other loops than in the program");
    bool guarded = false;
    for (const Guard& guard : block.guards) {
      guarded |= numbers[guard.reached] > numbers[guard.limit];
    }
    if (guarded == ir::IsConstInt(out_.infos[i].block->predicate, 1)) {
      return Unknown("other guards than in the program");
    }
  }
  return absl::OkStatus();
}

// The extents of the loops around a block of the replayed program.
absl::Status Builder::LoopExtents(const ir::BlockPtr& block,
                                  std::vector<int64_t>& extents) {
  const ir::PrimFuncPtr function = whole_->module().Find(program_->name);
  std::vector<int64_t> path;
  const auto walk = [&](const auto& self, const ir::Stmt& stmt) -> bool {
    if (stmt == ir::Stmt(block)) {
      extents = path;
      return true;
    }
    if (const auto* seq = As<ir::SeqNode>(stmt)) {
      return std::any_of(seq->stmts.begin(), seq->stmts.end(),
                         [&](const ir::Stmt& s) { return self(self, s); });
    }
    if (const auto* loop = As<ir::ForNode>(stmt)) {
      path.push_back(ir::AsInt(loop->extent).value_or(-1));
      const bool found = self(self, loop->body);
      path.pop_back();
      return found;
    }
    return false;
  };
  if (!walk(walk, function->root()->body)) {
    return Unknown("a block below another");
  }
  return absl::OkStatus();
}

void Builder::Require(Value a, Value b, bool equal) {
  const auto x = out_.formula.AsConst(a), y = out_.formula.AsConst(b);
  if (x && y && (equal ? *x == *y : *x <= *y)) return;
  out_.requirements.push_back({a, b, equal});
}

int Builder::InfoOf(int block) const {
  const auto found = info_of_.find(names_[static_cast<size_t>(block)]);
  return found == info_of_.end() ? -1 : found->second;
}

absl::StatusOr<int> Builder::Loop(const Instruction& in,
                                  std::string_view arg) const {
  const Rv* rv = RvArg(in, arg);
  const auto found = rv == nullptr ? loop_rvs_.end() : loop_rvs_.find(rv->id);
  if (found == loop_rvs_.end() || found->second < 0) {
    return Unknown("a loop that is gone");
  }
  return found->second;
}

absl::StatusOr<int> Builder::Block(const Instruction& in) const {
  const Rv* rv = RvArg(in, "block");
  const auto found = rv == nullptr ? block_rvs_.end() : block_rvs_.find(rv->id);
  if (found != block_rvs_.end()) {
    const auto at = std::find(names_.begin(), names_.end(), found->second);
    if (at != names_.end()) return static_cast<int>(at - names_.begin());
  }
  return Unknown("a block that is gone");
}

absl::StatusOr<Skeleton> BuildSkeleton(const ir::PrimFuncPtr& program,
                                       const schedule::Trace& sketch,
                                       std::span<const ir::Attr> decisions) {
  return Builder(program, sketch, decisions).Run();
}

}  // namespace tilefarm::skeleton
