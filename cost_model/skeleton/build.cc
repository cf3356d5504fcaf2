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
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ir/visitor.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/sketch_rules.h"
#include "cost_model/skeleton/block_info.h"
#include "cost_model/skeleton/skeleton.h"

namespace tilefarm::skeleton {
namespace {

using ir::As;
using schedule::Arg;
using schedule::ArgList;
using schedule::Instruction;
using schedule::Rv;
using schedule::RvKind;

constexpr int kNoLoop = -1;     // a location that is the root
constexpr int kInlined = -2;    // a location that inlines the block
constexpr int kForgotten = -3;  // a loop that is no more

const Arg* FindArg(const Instruction& instruction, std::string_view name) {
  for (const auto& [key, arg] : instruction.args) {
    if (key == name) return &arg;
  }
  return nullptr;
}

const Rv* RvArg(const Instruction& instruction, std::string_view name) {
  const Arg* arg = FindArg(instruction, name);
  return arg == nullptr ? nullptr : std::get_if<Rv>(&arg->value);
}

const ir::Attr* ConstArg(const Instruction& instruction,
                         std::string_view name) {
  const Arg* arg = FindArg(instruction, name);
  return arg == nullptr ? nullptr : std::get_if<ir::Attr>(&arg->value);
}

int64_t IntArg(const Instruction& instruction, std::string_view name,
               int64_t otherwise) {
  const ir::Attr* attr = ConstArg(instruction, name);
  return attr == nullptr ? otherwise : attr->AsInt().value_or(otherwise);
}

// The items of a list argument, whether they stand one by one or as one
// constant.
std::vector<Arg> Items(const Instruction& instruction, std::string_view name) {
  const Arg* arg = FindArg(instruction, name);
  if (arg == nullptr) return {};
  if (const auto* list = std::get_if<ArgList>(&arg->value)) return *list;
  std::vector<Arg> items;
  if (const auto* attr = std::get_if<ir::Attr>(&arg->value)) {
    if (const ir::AttrList* list = attr->AsList()) {
      for (const ir::Attr& item : *list) items.push_back({item});
    }
  }
  return items;
}

class Builder {
 public:
  Builder(const ir::PrimFuncPtr& program, const schedule::Trace& sketch,
          std::span<const ir::Attr> decisions)
      : program_(program),
        sketch_(sketch),
        decisions_(decisions.begin(), decisions.end()) {
    module_.functions.push_back(program);
  }

  absl::StatusOr<Skeleton> Run() {
    TF_RETURN_IF_ERROR(ReplayWhole());
    TF_RETURN_IF_ERROR(ReplayPrefix());
    for (; next_ < sketch_.instructions.size(); ++next_) {
      TF_RETURN_IF_ERROR(Apply(sketch_.instructions[next_]));
    }
    TF_RETURN_IF_ERROR(Finish());
    return std::move(out_);
  }

 private:
  // --- 1: the sketch on the program ---
  absl::Status ReplayWhole() {
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
    return absl::OkStatus();
  }

  // The name of the block that a variable stands for after the whole sketch;
  // empty where it is gone.
  std::string NameOf(const schedule::Schedule& schedule, size_t instruction,
                     size_t output) const {
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
  absl::Status ReplayPrefix() {
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
          loop_rvs_[rv.id] =
              found == loop_of_.end() ? kForgotten : found->second;
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

  absl::Status Import(const ir::Stmt& stmt) {
    if (const auto* seq = As<ir::SeqNode>(stmt)) {
      for (const ir::Stmt& s : seq->stmts) TF_RETURN_IF_ERROR(Import(s));
      return absl::OkStatus();
    }
    if (const auto* loop = As<ir::ForNode>(stmt)) {
      const auto extent = ir::AsInt(loop->extent);
      if (!extent || !ir::IsConstInt(loop->min, 0) ||
          loop->for_kind != ir::ForKind::kSerial ||
          !loop->annotations.empty()) {
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
    if (!ir::IsConstInt(block->predicate, 1)) {
      return Unknown("a block that is guarded from the start");
    }
    SketchBlock& made = out_.blocks.emplace_back();
    made.loops = path_;
    names_.push_back(block->name);
    for (const ir::IterVar& iter : block->iters) {
      const IndexExpr binding = ReadIndex(iter.binding, loop_of_);
      if (!binding.linear) return Unknown("a binding that is not linear");
      std::vector<Term>& terms = made.bindings.emplace_back();
      for (const auto& [loop, factor] : binding.terms) {
        terms.push_back(
            {loop, out_.formula.Const(static_cast<int64_t>(factor))});
      }
      made.constants.push_back(static_cast<int64_t>(binding.constant));
    }
    return absl::OkStatus();
  }

  // --- 3: the instructions ---
  absl::Status Apply(const Instruction& in) {
    const std::string& name = in.primitive;
    if (in.is_sample()) return Sample(in);
    if (name == "get_block" || name == "get_consumers" ||
        name == "get_producers" || name == "get_child_blocks") {
      return NameBlocks(in);
    }
    if (name == "get_loops") return GetLoops(in);
    if (name == "split") return Split(in);
    if (name == "reorder") return Reorder(in);
    if (name == "annotate") return Annotate(in);
    if (name == "cache_read" || name == "cache_write") return Cache(in);
    if (name == "compute_at") return Move(in, /*reverse=*/false);
    if (name == "reverse_compute_at") return Move(in, /*reverse=*/true);
    return Unknown(name);
  }

  absl::Status Sample(const Instruction& in) {
    const int site = next_site_++;
    const ir::Attr& decision = decisions_[static_cast<size_t>(site)];
    const bool perfect = in.primitive == "sample_perfect_tile";
    if (perfect || in.primitive == "sample_tile") {
      TF_ASSIGN_OR_RETURN(const int loop, Loop(in, "loop"));
      Value product = out_.formula.Const(1);
      const Value one = product;
      for (size_t i = 0; i < in.outputs.size(); ++i) {
        const Value factor = out_.formula.Factor(site, static_cast<int>(i));
        expr_rvs_[in.outputs[i].id] = factor;
        product = out_.formula.Mul(product, factor);
        Require(one, factor);
      }
      const int64_t innermost = IntArg(in, "max_innermost_factor", 16);
      if (innermost > 0) {
        Require(expr_rvs_[in.outputs.back().id], out_.formula.Const(innermost));
      }
      Require(out_.extents[loop], product, /*equal=*/perfect);
      return absl::OkStatus();
    }
    if (in.primitive == "sample_categorical") {
      std::vector<int64_t> choices;
      for (const Arg& item : Items(in, "candidates")) {
        const auto* attr = std::get_if<ir::Attr>(&item.value);
        const auto value = attr == nullptr ? std::nullopt : attr->AsInt();
        if (!value) return Unknown("candidates that are not integers");
        choices.push_back(*value);
      }
      expr_rvs_[in.outputs[0].id] =
          out_.formula.Choice(site, std::move(choices));
      return absl::OkStatus();
    }
    if (in.primitive == "sample_compute_location") {
      TF_ASSIGN_OR_RETURN(const int block, Block(in));
      const int64_t location = decision.AsInt().value_or(-1);
      int loop = kNoLoop;
      if (location == -2) {
        loop = kInlined;
      } else if (location >= 0) {
        const std::vector<int> common = CommonLoops(block);
        if (location >= static_cast<int64_t>(common.size())) {
          return Unknown("a location that is no loop");
        }
        loop = common[static_cast<size_t>(location)];
      }
      loop_rvs_[in.outputs[0].id] = loop;
      return absl::OkStatus();
    }
    return Unknown(in.primitive);
  }

  absl::Status NameBlocks(const Instruction& in) {
    for (size_t j = 0; j < in.outputs.size(); ++j) {
      std::string name;
      const ir::Attr* given = ConstArg(in, "name");
      if (in.primitive == "get_block" && given != nullptr &&
          given->AsString() != nullptr) {
        name = *given->AsString();
      } else {
        name = NameOf(*whole_, next_, j);
      }
      block_rvs_[in.outputs[j].id] = name;
    }
    return absl::OkStatus();
  }

  absl::Status GetLoops(const Instruction& in) {
    TF_ASSIGN_OR_RETURN(const int block, Block(in));
    const std::vector<int>& loops = out_.blocks[block].loops;
    if (loops.size() != in.outputs.size()) {
      return Unknown("another number of loops");
    }
    for (size_t j = 0; j < loops.size(); ++j) {
      loop_rvs_[in.outputs[j].id] = loops[j];
    }
    return absl::OkStatus();
  }

  absl::Status Split(const Instruction& in) {
    TF_ASSIGN_OR_RETURN(const int loop, Loop(in, "loop"));
    if (IntArg(in, "preserve_unit_iters", 1) == 0) {
      return Unknown("a split that drops unit loops");
    }
    Formula& f = out_.formula;
    std::vector<std::optional<Value>> factors;
    Value product = f.Const(1);
    for (const Arg& item : Items(in, "factors")) {
      std::optional<Value> factor;
      if (const auto* rv = std::get_if<Rv>(&item.value)) {
        const auto found = expr_rvs_.find(rv->id);
        if (found == expr_rvs_.end()) return Unknown("an unknown factor");
        factor = found->second;
      } else if (const auto* attr = std::get_if<ir::Attr>(&item.value)) {
        if (const auto value = attr->AsInt()) factor = f.Const(*value);
      }
      if (factor) product = f.Mul(product, *factor);
      factors.push_back(factor);
    }
    std::vector<int> parts;
    Value covered = f.Const(1);
    for (const std::optional<Value>& factor : factors) {
      const Value extent =
          factor ? *factor : f.CeilDiv(out_.extents[loop], product);
      parts.push_back(NewLoop(extent));
      covered = f.Mul(covered, extent);
    }
    if (parts.size() != in.outputs.size()) return Unknown("an odd split");
    Require(out_.extents[loop], covered);
    if (IntArg(in, "disable_predication", 0) != 0) {
      Require(covered, out_.extents[loop]);
    }
    for (SketchBlock& block : out_.blocks) {
      const auto at = std::find(block.loops.begin(), block.loops.end(), loop);
      if (at == block.loops.end()) continue;
      block.loops.insert(block.loops.erase(at), parts.begin(), parts.end());
      // A tail is guarded.
      block.guards.push_back(
          {covered, out_.extents[loop], Reduces(block, loop)});
      for (std::vector<Term>& terms : block.bindings) {
        SplitTerms(terms, loop, parts);
      }
    }
    for (size_t j = 0; j < parts.size(); ++j) {
      loop_rvs_[in.outputs[j].id] = parts[j];
    }
    return absl::OkStatus();
  }

  // Whether a reduce variable of the block moves with the loop.
  bool Reduces(const SketchBlock& block, int loop) const {
    const int info = InfoOf(static_cast<int>(&block - out_.blocks.data()));
    for (size_t i = 0; info >= 0 && i < block.bindings.size(); ++i) {
      if (out_.infos[static_cast<size_t>(info)].iters[i].type ==
          ir::IterType::kSpatial) {
        continue;
      }
      for (const Term& term : block.bindings[i]) {
        if (term.loop == loop) return true;
      }
    }
    return false;
  }

  void SplitTerms(std::vector<Term>& terms, int loop,
                  const std::vector<int>& parts) {
    for (size_t t = 0; t < terms.size(); ++t) {
      if (terms[t].loop != loop) continue;
      const Term old = terms[t];
      std::vector<Term> made;
      Value step = old.coefficient;
      for (size_t i = parts.size(); i-- > 0;) {
        made.insert(made.begin(), {parts[i], step, old.vanishes});
        step = out_.formula.Mul(step, out_.extents[parts[i]]);
      }
      terms.erase(terms.begin() + static_cast<ptrdiff_t>(t));
      terms.insert(terms.begin() + static_cast<ptrdiff_t>(t), made.begin(),
                   made.end());
      return;
    }
  }

  absl::Status Reorder(const Instruction& in) {
    std::vector<int> wanted;
    for (const Arg& item : Items(in, "loops")) {
      const auto* rv = std::get_if<Rv>(&item.value);
      if (rv == nullptr) return Unknown("an odd reorder");
      const auto found = loop_rvs_.find(rv->id);
      if (found == loop_rvs_.end() || found->second < 0) {
        return Unknown("a loop that is gone");
      }
      wanted.push_back(found->second);
    }
    for (SketchBlock& block : out_.blocks) {
      std::vector<size_t> places;
      for (size_t i = 0; i < block.loops.size(); ++i) {
        if (std::find(wanted.begin(), wanted.end(), block.loops[i]) !=
            wanted.end()) {
          places.push_back(i);
        }
      }
      if (places.empty()) continue;
      // Legal only where every block below the first is below all of them.
      if (places.size() != wanted.size()) return Unknown("a partial reorder");
      for (size_t i = 0; i < places.size(); ++i) {
        block.loops[places[i]] = wanted[i];
      }
    }
    return absl::OkStatus();
  }

  // Annotations of blocks are read off the replayed program.
  absl::Status Annotate(const Instruction& in) {
    const Rv* where = RvArg(in, "block_or_loop");
    const ir::Attr* key = ConstArg(in, "ann_key");
    if (where == nullptr || key == nullptr || key->AsString() == nullptr) {
      return Unknown("an odd annotation");
    }
    if (where->kind != RvKind::kBlock) return Unknown("an annotated loop");
    if (block_rvs_[where->id] != "root") return absl::OkStatus();
    std::optional<Value> value;
    if (const Rv* rv = RvArg(in, "ann_val")) {
      const auto found = expr_rvs_.find(rv->id);
      if (found != expr_rvs_.end()) value = found->second;
    } else {
      const ir::Attr* attr = ConstArg(in, "ann_val");
      const auto number = attr == nullptr ? std::nullopt : attr->AsInt();
      if (number) value = out_.formula.Const(*number);
    }
    if (!value) return Unknown("an annotation that is no integer");
    const std::string& name = *key->AsString();
    if (name == space::kParallel) {
      out_.parallel_jobs = value;
    } else if (name == space::kVectorize) {
      out_.vectorize = value;
    } else if (name == space::kUnrollExplicit) {
      out_.unroll_steps = value;
    } else {
      return Unknown(name);
    }
    return absl::OkStatus();
  }

  // A copy of a whole buffer: of a parameter before everything, of an output
  // after everything.
  absl::Status Cache(const Instruction& in) {
    const bool read = in.primitive == "cache_read";
    const std::string name = NameOf(*whole_, next_, 0);
    const auto found = info_of_.find(name);
    if (found == info_of_.end()) return Unknown("a copy that is gone");
    const BlockInfo& info = out_.infos[static_cast<size_t>(found->second)];
    SketchBlock block;
    const int source = read ? info.reads[0].buffer : info.writes[0].buffer;
    if (out_.buffers[static_cast<size_t>(source)].intermediate) {
      return Unknown("a copy of an intermediate buffer");
    }
    for (const BlockIter& iter : info.iters) {
      block.loops.push_back(NewLoop(out_.formula.Const(iter.extent)));
      block.bindings.push_back(
          {{block.loops.back(), out_.formula.Const(1), false}});
      block.constants.push_back(0);
    }
    const auto at = read ? out_.blocks.begin() : out_.blocks.end();
    const auto name_at = read ? names_.begin() : names_.end();
    out_.blocks.insert(at, std::move(block));
    names_.insert(name_at, name);
    block_rvs_[in.outputs[0].id] = name;
    return absl::OkStatus();
  }

  absl::Status Move(const Instruction& in, bool reverse) {
    const Rv* rv = RvArg(in, "loop");
    if (rv == nullptr || !loop_rvs_.contains(rv->id)) {
      return Unknown("an odd move");
    }
    const int loop = loop_rvs_[rv->id];
    if (loop == kNoLoop) return absl::OkStatus();
    TF_ASSIGN_OR_RETURN(const int block, Block(in));
    if (loop == kInlined) {
      if (reverse) return Unknown("an inlined consumer");
      out_.blocks.erase(out_.blocks.begin() + block);
      names_.erase(names_.begin() + block);
      return absl::OkStatus();
    }
    if (loop < 0) return Unknown("a loop that is gone");
    if (IntArg(in, "preserve_unit_loops", 0) == 0 ||
        IntArg(in, "index", -1) != -1) {
      return Unknown("a move that drops unit loops or names a position");
    }
    return MoveTo(block, loop, reverse);
  }

  // The blocks that read what the block writes, or write what it reads.
  std::vector<int> Neighbours(const BlockInfo& info, bool producers) const {
    std::vector<int> out;
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto found = info_of_.find(names_[i]);
      if (found == info_of_.end()) continue;
      const BlockInfo& other = out_.infos[static_cast<size_t>(found->second)];
      if (&other == &info) continue;
      bool is = false;
      for (const BlockRegion& a : producers ? info.reads : info.writes) {
        for (const BlockRegion& b : producers ? other.writes : other.reads) {
          is |= a.buffer == b.buffer;
        }
      }
      if (is) out.push_back(static_cast<int>(i));
    }
    return out;
  }

  std::vector<int> CommonLoops(int block) const {
    const auto found = info_of_.find(names_[static_cast<size_t>(block)]);
    std::vector<int> common;
    if (found == info_of_.end()) return common;
    const std::vector<int> consumers = Neighbours(
        out_.infos[static_cast<size_t>(found->second)], /*producers=*/false);
    for (size_t c = 0; c < consumers.size(); ++c) {
      const std::vector<int>& own = out_.blocks[consumers[c]].loops;
      if (c == 0) {
        common = own;
        continue;
      }
      size_t same = 0;
      while (same < common.size() && same < own.size() &&
             common[same] == own[same]) {
        ++same;
      }
      common.resize(same);
    }
    return common;
  }

  // compute_at and reverse_compute_at: the block gets a loop for each of its
  // variables, over what one iteration of `loop` needs (gives).
  absl::Status MoveTo(int number, int loop, bool reverse) {
    Formula& f = out_.formula;
    const int info_number = InfoOf(number);
    if (info_number < 0) return Unknown("a moved block that is gone");
    const BlockInfo& info = out_.infos[static_cast<size_t>(info_number)];
    if (reverse && info.init.has_value()) {
      return Unknown("a reduction that moves to its producer");
    }
    const std::vector<int> others = Neighbours(info, /*producers=*/reverse);

    // What is needed, by variable.
    SketchBlock moved;
    moved.bindings.resize(info.iters.size());
    moved.constants.assign(info.iters.size(), 0);
    std::vector<std::optional<Value>> widths(info.iters.size());
    bool found_one = false;
    for (const int other : others) {
      const int other_number = InfoOf(other);
      const BlockInfo& theirs = out_.infos[static_cast<size_t>(other_number)];
      for (const BlockRegion& need : reverse ? theirs.writes : theirs.reads) {
        for (const BlockRegion& access : reverse ? info.reads : info.writes) {
          if (access.buffer != need.buffer) continue;
          if (found_one) return Unknown("regions that would have to be joined");
          found_one = true;
          TF_RETURN_IF_ERROR(Constrain(out_.blocks[other], need, info, access,
                                       loop, moved, widths));
        }
      }
    }
    if (!found_one) return Unknown("a move without a neighbour");

    // The place: before the first consumer below the loop, else at its end.
    std::vector<int> prefix;
    const auto place = Place(number, loop, info, prefix);
    if (!place) return Unknown("a place that is not found");
    moved.loops = prefix;
    for (size_t i = 0; i < info.iters.size(); ++i) {
      const Value width =
          widths[i] ? *widths[i] : f.Const(info.iters[i].extent);
      const int made = NewLoop(width);
      moved.loops.push_back(made);
      moved.bindings[i].push_back({made, f.Const(1), false});
    }
    const std::string name = names_[static_cast<size_t>(number)];
    moved.info = -1;
    out_.blocks[number].loops.clear();
    out_.blocks.insert(out_.blocks.begin() + *place, std::move(moved));
    names_.insert(names_.begin() + *place, name);
    const int old = *place <= number ? number + 1 : number;
    out_.blocks.erase(out_.blocks.begin() + old);
    names_.erase(names_.begin() + old);
    return absl::OkStatus();
  }

  // The position among the blocks before which the moved block goes; `prefix`
  // becomes the loops down to `loop`.
  std::optional<int> Place(int number, int loop, const BlockInfo& info,
                           std::vector<int>& prefix) const {
    const auto child = [&](int block) {
      const std::vector<int>& loops = out_.blocks[block].loops;
      const auto at = std::find(loops.begin(), loops.end(), loop);
      // Below the loop: the next loop, or the block itself.
      return at + 1 == loops.end() ? -2 - block : *(at + 1);
    };
    int first = -1, last = -1;
    for (int i = 0; i < static_cast<int>(out_.blocks.size()); ++i) {
      const std::vector<int>& loops = out_.blocks[i].loops;
      const auto at = std::find(loops.begin(), loops.end(), loop);
      if (i == number || at == loops.end()) continue;
      if (first < 0) {
        first = i;
        prefix.assign(loops.begin(), at + 1);
      }
      last = i;
    }
    if (first < 0) return std::nullopt;
    const std::vector<int> consumers = Neighbours(info, /*producers=*/false);
    for (int i = first; i <= last; ++i) {
      if (std::find(consumers.begin(), consumers.end(), i) == consumers.end()) {
        continue;
      }
      int at = i;
      while (at > first && child(at - 1) == child(i)) --at;
      return at;
    }
    return last + 1;
  }

  // Variables of `info` that index `access`, from the region `need` of block
  // `other` while its loops below `loop` run.
  absl::Status Constrain(const SketchBlock& other, const BlockRegion& need,
                         const BlockInfo& info, const BlockRegion& access,
                         int loop, SketchBlock& moved,
                         std::vector<std::optional<Value>>& widths) {
    Formula& f = out_.formula;
    const auto cut = std::find(other.loops.begin(), other.loops.end(), loop);
    if (cut == other.loops.end()) return Unknown("a neighbour elsewhere");
    for (size_t d = 0; d < access.mins.size(); ++d) {
      const IndexExpr& index = access.mins[d];
      if (!index.linear) return Unknown("an index that is not linear");
      if (index.terms.empty()) continue;
      if (index.terms.size() != 1 || index.terms[0].second != 1 ||
          index.constant != 0 || access.extents[d] != 1) {
        return Unknown("an index that is not a variable");
      }
      const auto iter = static_cast<size_t>(index.terms[0].first);
      if (widths[iter]) return Unknown("a variable that comes twice");
      if (!need.mins[d].linear) return Unknown("a region that is not linear");
      // Hull over the loops below: constants, outer terms, a width.
      int64_t constant = static_cast<int64_t>(need.mins[d].constant);
      Value width = f.Const(need.extents[d]);
      Value top = f.Const(0);
      for (const auto& [variable, factor] : need.mins[d].terms) {
        const auto scale = static_cast<int64_t>(factor);
        if (scale <= 0) return Unknown("an index that falls");
        constant += scale * other.constants[variable];
        for (const Term& term : other.bindings[variable]) {
          const Value step = f.Mul(f.Const(scale), term.coefficient);
          const Value reach =
              f.Mul(step, f.Add(out_.extents[term.loop], f.Const(-1)));
          if (std::find(cut + 1, other.loops.end(), term.loop) !=
              other.loops.end()) {
            width = f.Add(width, reach);
          } else {
            top = f.Add(top, reach);
            moved.bindings[iter].push_back({term.loop, step, true});
          }
        }
      }
      if (constant < 0) return Unknown("a region that starts below 0");
      const int64_t size =
          std::min(info.iters[iter].extent,
                   out_.buffers[static_cast<size_t>(access.buffer)].shape[d]);
      // Beyond the domain it is clipped where it is the whole loop's doing,
      // else guarded.
      if (constant == 0) width = f.Clip(width, f.Const(size), top);
      moved.guards.push_back(
          {f.Add(f.Add(top, width), f.Const(constant)), f.Const(size), false});
      moved.constants[iter] = constant;
      widths[iter] = width;
    }
    return absl::OkStatus();
  }

  // --- 4: the outcome ---
  absl::Status Finish() {
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
  absl::Status LoopExtents(const ir::BlockPtr& block,
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

  // --- Small things ---
  absl::Status Unknown(std::string_view what) const {
    return absl::UnimplementedError(
        absl::StrCat("no skeleton: ", std::string(what)));
  }
  void Require(Value a, Value b, bool equal = false) {
    const auto x = out_.formula.AsConst(a), y = out_.formula.AsConst(b);
    if (x && y && (equal ? *x == *y : *x <= *y)) return;
    out_.requirements.push_back({a, b, equal});
  }
  int NewLoop(Value extent) {
    out_.extents.push_back(extent);
    return static_cast<int>(out_.extents.size()) - 1;
  }
  int InfoOf(int block) const {
    const auto found = info_of_.find(names_[static_cast<size_t>(block)]);
    return found == info_of_.end() ? -1 : found->second;
  }
  absl::StatusOr<int> Loop(const Instruction& in, std::string_view arg) const {
    const Rv* rv = RvArg(in, arg);
    const auto found = rv == nullptr ? loop_rvs_.end() : loop_rvs_.find(rv->id);
    if (found == loop_rvs_.end() || found->second < 0) {
      return Unknown("a loop that is gone");
    }
    return found->second;
  }
  absl::StatusOr<int> Block(const Instruction& in) const {
    const Rv* rv = RvArg(in, "block");
    const auto found =
        rv == nullptr ? block_rvs_.end() : block_rvs_.find(rv->id);
    if (found != block_rvs_.end()) {
      const auto at = std::find(names_.begin(), names_.end(), found->second);
      if (at != names_.end()) return static_cast<int>(at - names_.begin());
    }
    return Unknown("a block that is gone");
  }

  const ir::PrimFuncPtr& program_;
  const schedule::Trace& sketch_;
  const std::vector<ir::Attr> decisions_;
  ir::IRModule module_;
  std::optional<schedule::Schedule> whole_;
  std::unordered_map<std::string, int> info_of_;  // by block name

  Skeleton out_;
  std::vector<std::string> names_;  // of out_.blocks
  VarNumbers loop_of_;
  std::vector<int> path_;
  size_t next_ = 0;
  int next_site_ = 0;
  std::unordered_map<int, std::string> block_rvs_;
  std::unordered_map<int, int> loop_rvs_;
  std::unordered_map<int, Value> expr_rvs_;
};

}  // namespace

absl::StatusOr<Skeleton> BuildSkeleton(const ir::PrimFuncPtr& program,
                                       const schedule::Trace& sketch,
                                       std::span<const ir::Attr> decisions) {
  return Builder(program, sketch, decisions).Run();
}

}  // namespace tilefarm::skeleton
