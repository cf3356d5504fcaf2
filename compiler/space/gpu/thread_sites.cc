#include "compiler/space/gpu/thread_sites.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/schedule/instruction_reader.h"
#include "compiler/schedule/schedule.h"
#include "compiler/space/gpu/cluster_sums.h"
#include "compiler/space/postprocs.h"
#include "compiler/space/sketch_rules.h"

namespace tilefarm::space {
namespace {

bool BeginsTiles(const schedule::Instruction& instruction) {
  if (instruction.primitive != "annotate") return false;
  const auto text = [&](size_t i) {
    const auto* attr = std::get_if<ir::Attr>(&instruction.args[i].second.value);
    return attr == nullptr ? nullptr : attr->AsString();
  };
  return text(1) != nullptr && *text(1) == kTilingStructure &&
         text(2) != nullptr && *text(2) == kThreadTiles;
}

// Whether operands are copied into registers before the next block's tiles.
bool CopiesFragments(const schedule::Trace& sketch, size_t begin) {
  for (size_t i = begin + 1; i < sketch.instructions.size(); ++i) {
    const schedule::Instruction& instruction = sketch.instructions[i];
    if (BeginsTiles(instruction)) break;
    if (instruction.primitive != "cache_read") continue;
    const auto* scope =
        std::get_if<ir::Attr>(&instruction.args[2].second.value);
    if (scope != nullptr && *scope == ir::Attr("local")) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<ThreadSites> ThreadSites::Find(const schedule::Trace& sketch,
                                              const ir::IRModule& program,
                                              const target::Target& target) {
  ThreadSites found;
  schedule::PartialReplay replay(program);
  size_t site = 0;
  bool in_tiles = false, before_stages = false;
  for (size_t i = 0; i < sketch.instructions.size(); ++i) {
    const schedule::Instruction& instruction = sketch.instructions[i];
    if (BeginsTiles(instruction)) {
      TF_RETURN_IF_ERROR(replay.Advance(sketch, i));
      schedule::InstructionReader reader(instruction, replay.ids());
      const schedule::BlockRv block = reader.Block(0);
      TF_RETURN_IF_ERROR(reader.status());
      schedule::Schedule schedule = replay.schedule();
      TF_ASSIGN_OR_RETURN(const BlockLoops loops, ViewLoops(schedule, block));
      TF_ASSIGN_OR_RETURN(ThreadTiles tiles,
                          ThreadTiles::Of(schedule, block, *target.gpu,
                                          CopiesFragments(sketch, i)));
      Group group{std::move(tiles), {}, {}, 0, 0, {}};
      TF_ASSIGN_OR_RETURN(const ir::BlockPtr node, schedule.Get(block));
      for (const LoopView& loop : loops.views) {
        const auto axis = static_cast<size_t>(loop.iters[0]);
        // The parts of a cluster are not tiled.
        if (axis > 0 || !SumsInCluster(*node)) group.axes.push_back(axis);
      }
      group.all_axes = node->iters.size();
      found.groups_.push_back(std::move(group));
      in_tiles = before_stages = true;
    }
    if (instruction.primitive == "reorder") in_tiles = false;
    if (!instruction.is_sample()) continue;
    if (in_tiles) {
      found.groups_.back().sites.push_back(site);
    } else if (before_stages) {
      Group& group = found.groups_.back();
      group.stages_site = site;
      group.stages =
          schedule::InstructionReader(instruction, replay.ids()).Ints(0);
      before_stages = false;
    }
    ++site;
  }
  return found;
}

int ThreadSites::Group::Stages(const std::vector<ir::Attr>& decisions) const {
  const auto at =
      static_cast<size_t>(decisions[stages_site].AsInt().value_or(0));
  return at < stages.size() ? static_cast<int>(stages[at]) : 1;
}

TileFactors ThreadSites::Group::Factors(
    const std::vector<ir::Attr>& decisions) const {
  // What is not tiled has one of each.
  TileFactors factors(all_axes,
                      std::vector<int64_t>(ThreadTiles::kSpatialFactors, 1));
  for (const size_t axis : axes) factors[axis].clear();
  for (size_t i = 0; i < sites.size(); ++i) {
    const ir::AttrList* list = decisions[sites[i]].AsList();
    if (list == nullptr) continue;
    for (const ir::Attr& factor : *list) {
      factors[axes[i]].push_back(factor.AsInt().value_or(1));
    }
  }
  return factors;
}

bool ThreadSites::Group::Draw(std::vector<ir::Attr>& decisions,
                              Rng& rng) const {
  const std::optional<TileFactors> factors = tiles.Draw(Stages(decisions), rng);
  if (!factors) return false;
  for (size_t i = 0; i < sites.size(); ++i) {
    const std::vector<int64_t>& own = (*factors)[axes[i]];
    decisions[sites[i]] = ir::Attr(ir::AttrList(own.begin(), own.end()));
  }
  return true;
}

absl::StatusOr<std::vector<ir::Attr>> ThreadSites::Draw(
    const std::vector<SampleSite>& sites, const target::Target& target,
    Rng& rng) const {
  std::vector<ir::Attr> decisions(sites.size());
  for (size_t i = 0; i < sites.size(); ++i) {
    if (sites[i].kind != SiteKind::kTile) {
      decisions[i] = DrawDecision(sites[i], target, rng);
    }
  }
  for (const Group& group : groups_) {
    if (group.Draw(decisions, rng)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("no tiles fit: even small ones need ",
                     group.tiles.WhyNot(group.tiles.Smallest(), 1)));
  }
  return decisions;
}

bool ThreadSites::Redraw(std::vector<ir::Attr>& decisions, Rng& rng) const {
  return !groups_.empty() &&
         groups_[rng.Below(groups_.size())].Draw(decisions, rng);
}

bool ThreadSites::Fits(const std::vector<ir::Attr>& decisions) const {
  for (const Group& group : groups_) {
    if (!group.tiles.WhyNot(group.Factors(decisions), group.Stages(decisions))
             .empty()) {
      return false;
    }
  }
  return true;
}

}  // namespace tilefarm::space
