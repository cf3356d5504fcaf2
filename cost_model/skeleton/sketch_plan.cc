// Makes plans: runs a sketch on the program and, instruction by instruction, on
// numbers.
//
// Steps for each instruction:
//   1. Read which blocks, loops and values it is about, and what a block that
//      moves needs of its neighbours, off the program before it.
//   2. Replay it.
//   3. Where a step expresses it, run the step; else take the blocks that it
//      made as the program has them.
//   4. Hold blocks and loops against the program after it.
#include "cost_model/skeleton/sketch_plan.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/instruction_reader.h"
#include "compiler/space/sketch_rules.h"
#include "cost_model/skeleton/former_variables.h"
#include "cost_model/skeleton/nest.h"

namespace tilefarm::skeleton {
namespace {

using ir::As;
using schedule::Instruction;
using schedule::InstructionReader;

absl::Status NotExpressed(std::string_view what) {
  return absl::UnimplementedError(
      absl::StrCat("no skeleton: ", std::string(what)));
}

// With these numbers; others may be.
absl::Status NotWithThese(std::string_view what) {
  return absl::OutOfRangeError(
      absl::StrCat("no skeleton: ", std::string(what)));
}

// A block of the program and the loops around it, outermost first.
struct ProgramBlock {
  ir::BlockPtr node;
  std::vector<ir::ForPtr> loops;
};

class Planner {
 public:
  Planner(const ir::PrimFunc& program, const schedule::PartialReplay& start,
          const schedule::Trace& sketch, std::span<const ir::Attr> decisions)
      : program_(program),
        sketch_(sketch),
        decisions_(decisions.begin(), decisions.end()),
        replay_(start),
        buffers_(program) {}

  absl::StatusOr<PlannedSketch> Run() {
    TF_RETURN_IF_ERROR(sketch_.SetDecisions(decisions_));
    if (!values_.Assign(decisions_)) {
      return NotExpressed("decisions that are no integers");
    }
    const std::vector<Instruction>& all = sketch_.instructions;
    size_t next = 0;
    for (const Instruction& instruction : all) {
      if (!instruction.is_sample()) continue;
      plan_.values += static_cast<int>(instruction.outputs.size());
    }
    nest_.Start(plan_.values);
    while (next < all.size() && !all[next].is_sample()) ++next;
    TF_RETURN_IF_ERROR(replay_.Advance(sketch_, next));
    for (size_t i = 0; i < next; ++i) {
      if (all[i].primitive != "annotate") continue;
      TF_RETURN_IF_ERROR(Annotate(InstructionReader(all[i], replay_.ids())));
    }
    TF_RETURN_IF_ERROR(Look());
    TF_RETURN_IF_ERROR(PlaceNew());
    for (; next < all.size(); ++next) {
      TF_RETURN_IF_ERROR(Instruct(all[next], next));
    }
    TF_RETURN_IF_ERROR(ReadInfos());
    return PlannedSketch{std::move(plan_), std::move(replay_).Take()};
  }

 private:
  // --- The program as it is ------------------------------------------------
  absl::Status Look() {
    blocks_.clear();
    std::vector<ir::ForPtr> path;
    const ir::PrimFuncPtr function =
        replay_.schedule().module().Find(program_.name);
    return Collect(function->root()->body, path);
  }

  absl::Status Collect(const ir::Stmt& stmt, std::vector<ir::ForPtr>& path) {
    if (const auto* seq = As<ir::SeqNode>(stmt)) {
      for (const ir::Stmt& s : seq->stmts) {
        TF_RETURN_IF_ERROR(Collect(s, path));
      }
      return absl::OkStatus();
    }
    if (As<ir::ForNode>(stmt) != nullptr) {
      path.push_back(std::static_pointer_cast<const ir::ForNode>(stmt));
      TF_RETURN_IF_ERROR(Collect(path.back()->body, path));
      path.pop_back();
      return absl::OkStatus();
    }
    if (As<ir::BlockNode>(stmt) == nullptr) {
      return NotExpressed("a statement between loops");
    }
    blocks_.push_back(
        {std::static_pointer_cast<const ir::BlockNode>(stmt), path});
    return absl::OkStatus();
  }

  const ProgramBlock* Find(std::string_view name) const {
    for (const ProgramBlock& block : blocks_) {
      if (block.node->name == name) return &block;
    }
    return nullptr;
  }

  int NumberOf(std::string_view name) const {
    const auto at = std::ranges::find(names_, name);
    return at == names_.end() ? -1 : static_cast<int>(at - names_.begin());
  }

  // --- Steps 1 to 4 --------------------------------------------------------
  absl::Status Instruct(const Instruction& in, size_t number) {
    InstructionReader reader(in, replay_.ids());
    std::optional<Step> step;
    TF_RETURN_IF_ERROR(Read(in, reader, step));
    TF_RETURN_IF_ERROR(reader.status());
    TF_RETURN_IF_ERROR(replay_.Advance(sketch_, number + 1));
    if (in.is_sample()) NoteOutputs(in);
    TF_RETURN_IF_ERROR(Look());
    if (!step) return PlaceNew();
    TF_RETURN_IF_ERROR(Complete(*step));
    const size_t known = nest_.loops().size();
    nest_.AddBuffers(buffers_.buffers());
    if (const char* why = nest_.Do(*step, values_)) return NotWithThese(why);
    varies_.resize(nest_.loops().size(), true);
    if (const auto* split = std::get_if<SplitLoop>(&*step)) {
      bool varies = varies_[split->loop];
      for (const std::optional<Operand>& factor : split->factors) {
        varies = varies || (factor && factor->value >= 0);
      }
      std::fill(varies_.begin() + static_cast<ptrdiff_t>(known), varies_.end(),
                varies);
    }
    plan_.steps.push_back(*std::move(step));
    return Match();
  }

  absl::Status Read(const Instruction& in, InstructionReader& r,
                    std::optional<Step>& step) {
    const std::string& name = in.primitive;
    if (in.is_sample()) return ReadSample(in, r, step);
    if (name == "split") {
      SplitLoop split;
      TF_ASSIGN_OR_RETURN(split.loop, LoopOf(r.Loop(0)));
      for (const schedule::Factor& factor : r.Factors(1)) {
        if (!factor) {
          split.factors.push_back(std::nullopt);
        } else if (const auto* value = std::get_if<int64_t>(&*factor)) {
          split.factors.push_back(Operand{-1, *value});
        } else {
          TF_ASSIGN_OR_RETURN(const Operand sampled,
                              ValueOf(std::get<schedule::ExprRv>(*factor)));
          split.factors.push_back(sampled);
        }
      }
      if (!r.Bool(2)) return NotExpressed("a split that drops unit loops");
      split.must_divide = r.Bool(3);
      step = std::move(split);
    } else if (name == "fuse" || name == "reorder") {
      std::vector<int> loops;
      for (const schedule::LoopRv rv : r.Loops(0)) {
        TF_ASSIGN_OR_RETURN(const int loop, LoopOf(rv));
        loops.push_back(loop);
      }
      if (loops.empty()) return absl::OkStatus();
      if (name == "reorder") {
        step = ReorderLoops{std::move(loops)};
      } else if (!r.Bool(1)) {
        return NotExpressed("a fusion that drops unit loops");
      } else {
        step = FuseLoops{std::move(loops)};
      }
    } else if (name == "unroll" || name == "vectorize") {
      MarkLoop mark;
      TF_ASSIGN_OR_RETURN(mark.loop, LoopOf(r.Loop(0)));
      mark.kind =
          name == "unroll" ? ir::ForKind::kUnrolled : ir::ForKind::kVectorized;
      step = mark;
    } else if (name == "annotate") {
      return Annotate(r);
    } else if (name == "compute_at" || name == "reverse_compute_at") {
      return ReadMove(r, name == "reverse_compute_at", step);
    } else if (name == "rfactor") {
      FactorReduction factor;
      TF_ASSIGN_OR_RETURN(factor.loop, LoopOf(r.Loop(0)));
      factor.axis = r.Small(1);
      factor.block = -1;
      for (const int block : nest_.order()) {
        const std::vector<int>& loops = nest_.block(block).loops;
        if (absl::c_linear_search(loops, factor.loop)) factor.block = block;
      }
      step = factor;
    }
    return absl::OkStatus();
  }

  absl::Status ReadSample(const Instruction& in, InstructionReader& r,
                          std::optional<Step>& step) {
    const int site = site_++;
    const int first = next_value_;
    next_value_ += static_cast<int>(in.outputs.size());
    if (in.primitive == "sample_perfect_tile" ||
        in.primitive == "sample_tile") {
      SampleTile sample;
      sample.site = site;
      TF_ASSIGN_OR_RETURN(sample.loop, LoopOf(r.Loop(0)));
      sample.first_value = first;
      sample.count = static_cast<int>(in.outputs.size());
      sample.perfect = in.primitive == "sample_perfect_tile";
      sample.max_innermost = r.Int(2);
      step = sample;
    } else if (in.primitive == "sample_categorical") {
      step = SampleChoice{site, first, r.Ints(0)};
    } else if (in.primitive != "sample_compute_location") {
      return NotExpressed(in.primitive);
    }
    return absl::OkStatus();
  }

  // After the replay: which of its variables are which values.
  void NoteOutputs(const Instruction& in) {
    const int first = next_value_ - static_cast<int>(in.outputs.size());
    for (size_t i = 0; i < in.outputs.size(); ++i) {
      const int id = replay_.ids()[static_cast<size_t>(in.outputs[i].id)];
      if (in.outputs[i].kind == schedule::RvKind::kExpr) {
        value_of_[id] = first + static_cast<int>(i);
      } else {
        location_of_[id] = in.decision.AsInt().value_or(-1);
      }
    }
  }

  absl::Status ReadMove(InstructionReader& r, bool reverse,
                        std::optional<Step>& step) {
    const schedule::BlockRv rv = r.Block(0);
    const schedule::LoopRv loop = r.Loop(1);
    if (!r.status().ok()) return absl::OkStatus();
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, replay_.schedule().Get(rv));
    MoveBlock move;
    move.block = NumberOf(node->name);
    move.reverse = reverse;
    if (move.block < 0) return NotExpressed("a block below another");
    // -1: it stays below the root; -2: it is inlined.
    const auto location = location_of_.find(loop.id);
    if (location != location_of_.end() && location->second == -1) {
      return absl::OkStatus();
    }
    if (location != location_of_.end() && location->second == -2) {
      step = RemoveBlock{move.block};
      return absl::OkStatus();
    }
    TF_ASSIGN_OR_RETURN(move.loop, LoopOf(loop));
    if (!r.Bool(2) || r.Int(3) != -1) {
      return NotExpressed("a move that drops unit loops or names a position");
    }
    TF_ASSIGN_OR_RETURN(move.accesses, ReadAccesses(*node, reverse));
    step = std::move(move);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<MoveBlock::Access>> ReadAccesses(
      const ir::BlockNode& node, bool reverse) {
    TF_ASSIGN_OR_RETURN(BlockRegions own, ReadBlockRegions(node, buffers_));
    std::vector<MoveBlock::Access> accesses;
    for (BlockRegion& region : reverse ? own.reads : own.writes) {
      MoveBlock::Access access;
      for (const ProgramBlock& other : blocks_) {
        if (other.node->name == node.name) continue;
        TF_ASSIGN_OR_RETURN(BlockRegions theirs,
                            ReadBlockRegions(*other.node, buffers_));
        for (BlockRegion& need : reverse ? theirs.writes : theirs.reads) {
          if (need.buffer != region.buffer) continue;
          const int number = NumberOf(other.node->name);
          TF_RETURN_IF_ERROR(
              FindFormerVariables(nest_.block(number), *other.node, need.mins));
          for (const IndexExpr& min : need.mins) {
            if (!min.linear && min.divisor == 1 && min.modulus == 1) {
              return NotExpressed("a region that is not linear");
            }
          }
          access.needs.push_back({number, std::move(need)});
        }
      }
      if (access.needs.empty()) continue;
      for (size_t d = 0; d < region.mins.size(); ++d) {
        const IndexExpr& index = region.mins[d];
        const bool is_part = index.divisor > 1 || index.modulus > 1;
        if (index.linear && index.terms.empty()) continue;
        if ((!index.linear && !is_part) || index.terms.size() != 1 ||
            index.terms[0].second != 1 || index.constant != 0 ||
            region.extents[d] != 1) {
          return NotExpressed("an index that is not a variable");
        }
      }
      access.region = std::move(region);
      accesses.push_back(std::move(access));
    }
    if (accesses.empty()) return NotExpressed("a move without a neighbour");
    return accesses;
  }

  // What only the program after the instruction tells.
  absl::Status Complete(Step& step) {
    if (auto* move = std::get_if<MoveBlock>(&step)) {
      const std::string& name = names_[static_cast<size_t>(move->block)];
      while (move->position < blocks_.size() &&
             blocks_[move->position].node->name != name) {
        ++move->position;
      }
      if (move->position == blocks_.size()) return NotExpressed("a lost block");
    } else if (auto* factor = std::get_if<FactorReduction>(&step)) {
      if (factor->block < 0) return NotExpressed("a loop around nothing");
      const ProgramBlock* joining =
          Find(names_[static_cast<size_t>(factor->block)]);
      std::string made;
      for (const ProgramBlock& block : blocks_) {
        if (NumberOf(block.node->name) < 0) made = block.node->name;
      }
      if (joining == nullptr || joining->node->reads.empty() || made.empty()) {
        return NotExpressed("a reduction that is gone");
      }
      names_.push_back(made);
      const ir::Buffer& partial = Find(made)->node->writes[0].buffer;
      factor->buffer = buffers_.Of(partial);
      if (factor->axis < 0) factor->axis += partial->ndim();
    }
    return absl::OkStatus();
  }

  // Step 3 for what no step expresses: blocks that are new or that have other
  // loops or variables than before.
  absl::Status PlaceNew() {
    PlaceBlocks place;
    std::unordered_map<const ir::VarNode*, int> made;
    for (const ProgramBlock& block : blocks_) {
      int number = NumberOf(block.node->name);
      if (number < 0) {
        number = static_cast<int>(names_.size());
        names_.push_back(block.node->name);
      } else if (IsAsBefore(block, nest_.block(number))) {
        place.order.push_back(number);
        continue;
      } else {
        for (const int loop : nest_.block(number).loops) {
          if (varies_[loop]) return NotExpressed(LastPrimitive());
        }
      }
      NestedBlock placed;
      for (const ir::ForPtr& loop : block.loops) {
        const auto known = loop_of_.find(loop->var.get());
        if (known != loop_of_.end()) {
          if (varies_[known->second]) return NotExpressed(LastPrimitive());
          placed.loops.push_back(known->second);
          continue;
        }
        const auto [at, is_new] = made.try_emplace(
            loop->var.get(),
            static_cast<int>(nest_.loops().size() + place.loops.size()));
        if (is_new) {
          const auto extent = ir::AsInt(loop->extent);
          if (!extent || !ir::IsConstInt(loop->min, 0) ||
              loop->for_kind != ir::ForKind::kSerial ||
              !loop->annotations.empty()) {
            return NotExpressed("a loop that is not plain");
          }
          place.loops.push_back({*extent});
        }
        placed.loops.push_back(at->second);
      }
      placed.guarded = !ir::IsConstInt(block.node->predicate, 1);
      if (placed.guarded && block.node->init != nullptr) {
        return NotExpressed("a reduction that is guarded from the start");
      }
      VarNumbers numbers(loop_of_.begin(), loop_of_.end());
      numbers.insert(made.begin(), made.end());
      for (const ir::IterVar& iter : block.node->iters) {
        placed.bindings.emplace_back();
        placed.constants.push_back(0);
        if (!ReadParts(iter.binding, 1, numbers, placed.bindings.back(),
                       placed.constants.back())) {
          return NotExpressed("a binding that is no sum of loops");
        }
        placed.iters.push_back(
            {iter.type, ir::AsInt(iter.dom.extent).value_or(1)});
      }
      place.blocks.emplace_back(number, std::move(placed));
      place.order.push_back(number);
    }
    if (place.blocks.empty() && place.order == nest_.order()) {
      return Match();
    }
    nest_.AddBuffers(buffers_.buffers());
    if (const char* why = nest_.Do(place, values_)) return NotWithThese(why);
    varies_.resize(nest_.loops().size(), false);
    plan_.steps.emplace_back(std::move(place));
    return Match();
  }

  bool IsAsBefore(const ProgramBlock& now, const NestedBlock& before) const {
    if (now.loops.size() != before.loops.size() ||
        now.node->iters.size() != before.iters.size()) {
      return false;
    }
    for (size_t i = 0; i < now.loops.size(); ++i) {
      const auto known = loop_of_.find(now.loops[i]->var.get());
      if (known == loop_of_.end() || known->second != before.loops[i]) {
        return false;
      }
    }
    return SameIters(*now.node, before);
  }

  static bool SameIters(const ir::BlockNode& block, const NestedBlock& nested) {
    return std::ranges::equal(block.iters, nested.iters,
                              [](const ir::IterVar& a, const NestedIter& b) {
                                return a.type == b.type &&
                                       ir::AsInt(a.dom.extent) == b.extent;
                              });
  }

  // Step 4; notes which loops are which.
  absl::Status Match() {
    loop_of_.clear();
    if (blocks_.size() != nest_.order().size()) {
      return NotWithThese("another number of blocks");
    }
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const ProgramBlock& block = blocks_[i];
      const int number = nest_.order()[i];
      const NestedBlock& nested = nest_.block(number);
      if (names_[static_cast<size_t>(number)] != block.node->name) {
        return NotWithThese("another order of blocks");
      }
      bool same = block.loops.size() == nested.loops.size() &&
                  SameIters(*block.node, nested);
      for (size_t l = 0; same && l < nested.loops.size(); ++l) {
        const auto [at, is_new] =
            loop_of_.try_emplace(block.loops[l]->var.get(), nested.loops[l]);
        same = at->second == nested.loops[l] &&
               ir::AsInt(block.loops[l]->extent) ==
                   nest_.loops()[nested.loops[l]].extent;
      }
      if (!same) {
        return NotWithThese(absl::StrCat(
            "other loops than in the program after ", LastPrimitive()));
      }
      const bool guarded = nested.guarded || nested.reduce_guarded;
      if (guarded == ir::IsConstInt(block.node->predicate, 1)) {
        return NotWithThese("other guards than in the program");
      }
    }
    return absl::OkStatus();
  }

  // --- The outcome ---------------------------------------------------------
  absl::Status ReadInfos() {
    plan_.infos.resize(names_.size());
    for (const ProgramBlock& block : blocks_) {
      const int number = NumberOf(block.node->name);
      TF_ASSIGN_OR_RETURN(BlockInfo info, ReadBlock(block.node, buffers_));
      const NestedBlock& nested = nest_.block(number);
      for (BlockStore* store :
           {&info.body, info.init ? &*info.init : nullptr}) {
        for (size_t i = 0; store != nullptr && i < store->accesses.size();
             ++i) {
          BlockAccess& access = store->accesses[i];
          TF_RETURN_IF_ERROR(
              FindFormerVariables(nested, *block.node, access.indices));
          for (BlockAccess& alike : access.alike) {
            TF_RETURN_IF_ERROR(
                FindFormerVariables(nested, *block.node, alike.indices));
          }
        }
      }
      for (auto* regions : {&info.reads, &info.writes}) {
        for (BlockRegion& region : *regions) {
          TF_RETURN_IF_ERROR(
              FindFormerVariables(nested, *block.node, region.mins));
        }
      }
      plan_.infos[static_cast<size_t>(number)] = std::move(info);
    }
    plan_.buffers = buffers_.buffers();
    for (const BlockInfo& info : plan_.infos) {
      if (!info.is_prepacked) continue;
      plan_.buffers[static_cast<size_t>(info.writes[0].buffer)].intermediate =
          false;
    }
    return absl::OkStatus();
  }

  // --- Variables of the trace ----------------------------------------------
  absl::StatusOr<int> LoopOf(schedule::LoopRv rv) const {
    const auto node = replay_.schedule().Get(rv);
    if (node.ok()) {
      const auto found = loop_of_.find((*node)->var.get());
      if (found != loop_of_.end()) return found->second;
    }
    return NotExpressed("a loop that is gone");
  }
  absl::StatusOr<Operand> ValueOf(schedule::ExprRv rv) const {
    const auto found = value_of_.find(rv.id);
    if (found == value_of_.end()) return NotExpressed("an unknown value");
    return Operand{found->second, 0};
  }

  std::string LastPrimitive() const {
    const auto& made = replay_.schedule().trace().instructions;
    return made.empty() ? "" : made.back().primitive;
  }

  // Annotations of blocks are read off the program; the root's are for the
  // postprocs.
  absl::Status Annotate(InstructionReader reader) {
    const schedule::BlockOrLoop where = reader.Where(0);
    const std::string key = reader.Text(1);
    const schedule::AnnValue value = reader.Annotation(2);
    TF_RETURN_IF_ERROR(reader.status());
    const auto* block = std::get_if<schedule::BlockRv>(&where);
    if (block == nullptr) return NotExpressed("an annotated loop");
    TF_ASSIGN_OR_RETURN(const ir::BlockPtr node,
                        replay_.schedule().Get(*block));
    if (node->name != "root" || key == space::kStream) return absl::OkStatus();
    std::optional<Operand>& operand =
        key == space::kParallel    ? plan_.parallel_jobs
        : key == space::kVectorize ? plan_.vectorize
                                   : plan_.unroll_steps;
    if (&operand == &plan_.unroll_steps && key != space::kUnrollExplicit) {
      return NotExpressed(key);
    }
    if (const auto* sampled = std::get_if<schedule::ExprRv>(&value)) {
      TF_ASSIGN_OR_RETURN(operand, ValueOf(*sampled));
      return absl::OkStatus();
    }
    const auto number = std::get<ir::Attr>(value).AsInt();
    if (!number) return NotExpressed("an annotation that is no integer");
    operand = Operand{-1, *number};
    return absl::OkStatus();
  }

  const ir::PrimFunc& program_;
  schedule::Trace sketch_;
  std::vector<ir::Attr> decisions_;
  DecisionValues values_;
  schedule::PartialReplay replay_;
  BufferNumbers buffers_;
  SketchPlan plan_;
  Nest nest_;
  std::vector<ProgramBlock> blocks_;  // in program order
  std::vector<std::string> names_;    // of the nest's blocks, by number
  std::vector<bool> varies_;  // by loop: its extent may depend on decisions
  std::unordered_map<const ir::VarNode*, int> loop_of_;
  // Of the schedule's variables.
  std::unordered_map<int, int> value_of_;
  std::unordered_map<int, int64_t> location_of_;
  int site_ = 0, next_value_ = 0;
};

}  // namespace

absl::StatusOr<PlannedSketch> PlanSketch(const ir::PrimFunc& program,
                                         const schedule::PartialReplay& start,
                                         const schedule::Trace& sketch,
                                         std::span<const ir::Attr> decisions) {
  return Planner(program, start, sketch, decisions).Run();
}

}  // namespace tilefarm::skeleton
