// Sums that become dot products or tiles of a matrix unit
// (compiler/space/rewrite_tensorize.cc on numbers): how their packed operand
// lies in memory, their register tile, and what the cost model sees of the
// instruction.
#include <algorithm>
#include <array>

#include "compiler/space/postprocs.h"
#include "cost_model/skeleton/nest.h"

namespace tilefarm::skeleton {

using ir::ForKind;

namespace {

int LaneLoop(const NestedBlock& dot) { return dot.loops[dot.loops.size() - 2]; }
int GroupLoop(const NestedBlock& dot) { return dot.loops.back(); }

}  // namespace

int Nest::DimIndexedBy(const NestedBlock& block, const NestedBlock& copy,
                       int iter) {
  return space::DimIndexedBy(*block.info->block,
                             copy.info->block->writes[0].buffer.get(),
                             block.info->iters[static_cast<size_t>(iter)].var);
}

bool Nest::Reads(const NestedBlock& block, int buffer) {
  return std::ranges::any_of(block.info->reads, [&](const BlockRegion& read) {
    return read.buffer == buffer;
  });
}

int Nest::IterOf(const NestedBlock& block, int loop) const {
  for (size_t i = 0; i < block.bindings.size(); ++i) {
    if (Uses(block, i, loop)) return static_cast<int>(i);
  }
  return -1;
}

// --- rewrite_tensorize (layout) ----------------------------------------------

void Nest::LayOutDotProducts() {
  for (size_t i = 0; i < order_.size(); ++i) {
    if (!At(i).info->dot) continue;
    current_ = static_cast<uint32_t>(i) + 1;
    if (At(i).loops.size() < At(i).info->dot->loops()) {
      unsure_ = "an instruction without its loops";
      return;
    }
    PackForDot(At(i));
    UnrollDotTile(At(i));
  }
}

void Nest::PackForDot(const NestedBlock& dot) {
  if (dot.loops.size() <= dot.info->dot->loops()) return;
  const int lane = IterOf(dot, LaneLoop(dot));
  const int group = IterOf(dot, GroupLoop(dot));
  if (lane < 0 || group < 0) {
    unsure_ = "an instruction that does not use its loops";
    return;
  }
  const int64_t lanes = dot.info->dot->lanes;
  // A matrix unit's panels are one register wide.
  const int64_t vectors = dot.info->dot->is_tile()
                              ? 1
                              : loops_[dot.loops[dot.loops.size() - 3]].extent;
  for (size_t i = 0; i < order_.size(); ++i) {
    NestedBlock& copy = At(i);
    if (!copy.info->is_packed && !copy.info->is_prepacked) continue;
    const int buffer = copy.info->writes[0].buffer;
    if (!Reads(dot, buffer)) continue;
    const int lane_dim = DimIndexedBy(dot, copy, lane);
    const int group_dim = DimIndexedBy(dot, copy, group);
    if (lane_dim < 0 || group_dim < 0) continue;
    space::Panels& panels = panels_[static_cast<size_t>(buffer)];
    panels = space::InstructionPanels(shapes_[static_cast<size_t>(buffer)],
                                      lane_dim, group_dim, vectors, lanes,
                                      dot.info->dot->group);
    Note(kDotPanel, (panels.is_cut ? 1u : 0u) | (vectors > 1 ? 2u : 0u) |
                        (copy.info->is_packed ? 4u : 0u));
    if (copy.info->is_packed) OrderDotCopy(copy, panels, lane_dim, group_dim);
  }
}

// A register at a time, the panels one after the other.
void Nest::OrderDotCopy(NestedBlock& copy, const space::Panels& panels,
                        int lane_dim, int group_dim) {
  const size_t ndim = copy.info->iters.size();
  if (copy.loops.size() < ndim) {
    unsure_ = "a packed copy without loops of its own";
    return;
  }
  const std::vector<int> own(copy.loops.end() - static_cast<ptrdiff_t>(ndim),
                             copy.loops.end());
  for (const int loop : own) {
    if (BlocksBelow(loop) != 1) unsure_ = "a packed copy that shares loops";
  }
  const int lane = own[static_cast<size_t>(lane_dim)];
  const int group = own[static_cast<size_t>(group_dim)];
  if (loops_[lane].extent % panels.width != 0 ||
      loops_[group].extent % panels.group != 0) {
    unsure_ = "a panel with a tail";
  }
  if (unsure_) return;
  const int lanes =
      Split(lane, std::array{loops_[lane].extent / panels.width,
                             panels.width / panels.lanes, panels.lanes});
  const int groups = Split(
      group, std::array{loops_[group].extent / panels.group, panels.group});
  copy.loops.resize(copy.loops.size() - (ndim + 3));
  copy.loops.push_back(lanes);
  for (const int loop : own) {
    if (loop != lane && loop != group) copy.loops.push_back(loop);
  }
  for (const int loop : {groups, lanes + 1, groups + 1, lanes + 2}) {
    copy.loops.push_back(loop);
  }
  loops_[lanes + 1].kind = ForKind::kUnrolled;
  loops_[groups + 1].kind = ForKind::kUnrolled;
  loops_[lanes + 2].kind = ForKind::kVectorized;
}

void Nest::UnrollDotTile(NestedBlock& dot) {
  const size_t own = dot.loops.size() - dot.info->dot->loops();
  const size_t first = space::FindInstructionTile(ViewLoops(dot).first(own));
  for (size_t i = first; i < own; ++i) {
    NestedLoop& loop = loops_[dot.loops[i]];
    if (loop.extent > 1) loop.kind = ForKind::kUnrolled;
  }
  if (BlocksBelow(dot.loops[own]) != 1) unsure_ = "a block in an instruction";
  loops_[LaneLoop(dot)].kind = ForKind::kVectorized;
  Note(kDotTile, first > 0);
}

// --- rewrite_tensorize -------------------------------------------------------

void Nest::Tensorize(NestedBlock& block) {
  if (!block.decomposed) {
    unsure_ = "an instruction that would also initialise";
    return;
  }
  const schedule::ProductShape& dot = *block.info->dot;
  const int group = GroupLoop(block);
  block.tensorized = true;
  if (dot.is_tile()) {
    // The implementation counts the groups, then within one.
    Split(group, std::array{loops_[group].extent / dot.group, dot.group});
    Note(kTensorized, 1);
    return;
  }
  block.group_iter = IterOf(block, group);
  block.loops.pop_back();
  for (std::vector<LoopPart>& parts : block.bindings) {
    std::erase_if(parts,
                  [&](const LoopPart& part) { return part.loop == group; });
  }
  Note(kTensorized);
}

// --- What the cost model sees ------------------------------------------------

// The block counts registers and groups: its variables are those of the loops
// but the lanes', which stand beside them.
void Nest::FormOfDotPart(const space::Panels& panels,
                         space::PanelDim::Part part,
                         cost_model::IndexForm& form) const {
  const auto keep = [&](bool lane) {
    const auto other = [&](const cost_model::LoopTerm& term) {
      return (term.loop == static_cast<int>(depth_) - 1) != lane;
    };
    form.terms.erase(
        std::remove_if(form.terms.begin(), form.terms.end(), other),
        form.terms.end());
  };
  const auto lanes = static_cast<double>(panels.lanes);
  const auto vectors = static_cast<double>(panels.width / panels.lanes);
  switch (part) {
    case space::PanelDim::kWhole:
    case space::PanelDim::kWithin:
      return;
    case space::PanelDim::kLane:
      keep(/*lane=*/true);
      form.constant = 0;
      return;
    case space::PanelDim::kOfGroup:
      return form.Clear();
    case space::PanelDim::kGroup:
      return form.Scale(1 / static_cast<double>(panels.group));
    case space::PanelDim::kPanel:
      keep(/*lane=*/false);
      form.Scale(1 / lanes);
      return form.FloorDivide(vectors);
    case space::PanelDim::kRegister:
      keep(/*lane=*/false);
      form.Scale(1 / lanes);
      if (panels.is_cut) form.Modulo(vectors);
      return;
  }
}

double Nest::GroupSpan(const NestedBlock& block, const BlockAccess& access,
                       const space::Panels& panels, size_t d) const {
  if (block.group_iter < 0) return 0;
  const auto apart = static_cast<double>(block.info->dot->group - 1);
  if (!panels.empty()) {
    return panels.dims[d].part == space::PanelDim::kOfGroup ? apart : 0;
  }
  const BlockIter& iter =
      block.info->iters[static_cast<size_t>(block.group_iter)];
  return access.indices[d].expr.get() == iter.var ? apart : 0;
}

}  // namespace tilefarm::skeleton
