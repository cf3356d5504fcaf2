#include "compiler/space/loop_rules.h"

#include "absl/algorithm/container.h"

namespace tilefarm::space {

using ir::ForKind;

bool LoopView::Moves(int iter) const {
  return absl::c_linear_search(iters, iter);
}

std::optional<VectorLoop> ChooseVectorLoop(std::span<const LoopView> loops,
                                           int iter, int64_t panel_width,
                                           int64_t vector_lanes) {
  size_t at = loops.size();
  while (at > 0 && !(loops[at - 1].extent > 1 && loops[at - 1].Moves(iter))) {
    --at;
  }
  if (at == 0) return std::nullopt;
  const int64_t extent = loops[--at].extent;
  const bool leaves_panel = panel_width > 0 && panel_width % extent != 0;
  if (loops[at].reduces || leaves_panel) return std::nullopt;
  for (size_t i = at; i < loops.size(); ++i) {
    if (loops[i].kind != ForKind::kSerial) return std::nullopt;
  }
  VectorLoop result{at};
  if (extent > kMaxVectorExtent) {
    result.length =
        extent >= 4 * vector_lanes ? 4 * vector_lanes : vector_lanes;
  }
  return result;
}

size_t CountParallelLoops(std::span<const LoopView> loops, int64_t jobs) {
  size_t count = 0;
  int64_t product = 1;
  while (count < loops.size() && product < jobs && !loops[count].reduces &&
         loops[count].kind == ForKind::kSerial) {
    product *= loops[count++].extent;
  }
  return count;
}

std::optional<size_t> FindRegisterTile(std::span<const LoopView> loops,
                                       int64_t vector_lanes) {
  size_t first = 0;
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].reduces) first = i + 1;
  }
  int64_t statements = 1;
  for (size_t i = first; i < loops.size(); ++i) {
    statements *= loops[i].kind == ForKind::kVectorized
                      ? (loops[i].extent + vector_lanes - 1) / vector_lanes
                      : loops[i].extent;
  }
  if (statements > kMaxTileStatements) return std::nullopt;
  return first;
}

size_t FindInstructionTile(std::span<const LoopView> loops) {
  size_t first = loops.size();
  int64_t statements = 1;
  for (; first > 0 && !loops[first - 1].sums; --first) {
    statements *= loops[first - 1].extent;
    if (statements > kMaxTileStatements) break;
  }
  return first;
}

std::optional<size_t> FindFirstReduceLoop(std::span<const LoopView> loops,
                                          size_t own) {
  std::optional<size_t> unit;
  for (size_t i = 0; i + own < loops.size(); ++i) {
    if (!loops[i].sums) continue;
    if (loops[i].extent != 1) return i;
    if (own > 0) unit = i;
  }
  return unit;
}

}  // namespace tilefarm::space
