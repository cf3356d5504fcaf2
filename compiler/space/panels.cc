#include "compiler/space/panels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tilefarm::space {

Panels::Digit Panels::DigitOf(PanelDim::Part part) const {
  switch (part) {
    case PanelDim::kWhole:
      break;
    case PanelDim::kPanel:
      return {0, width};
    case PanelDim::kWithin:
      return {width, 1};
    case PanelDim::kRegister:
      return {is_cut ? width : 0, lanes};
    case PanelDim::kLane:
      return {lanes, 1};
    case PanelDim::kGroup:
      return {0, group};
    case PanelDim::kOfGroup:
      return {group, 1};
  }
  return {0, 1};
}

int64_t Panels::ExtentOf(PanelDim::Part part, int64_t extent) const {
  if (part == PanelDim::kRegister) return width / lanes;
  const auto [modulus, divisor] = DigitOf(part);
  return ((modulus > 0 ? modulus : extent) + divisor - 1) / divisor;
}

std::string Panels::IndexMap(int ndim) const {
  std::string text = "lambda ";
  for (int i = 0; i < ndim; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", "i", i);
  }
  absl::StrAppend(&text, ": (");
  const char* separator = "";
  for (const PanelDim& dim : dims) {
    absl::StrAppend(&text, separator, "i", dim.dim);
    separator = ", ";
    const auto [modulus, divisor] = DigitOf(dim.part);
    if (modulus > 0) absl::StrAppend(&text, " % ", modulus);
    if (divisor > 1) absl::StrAppend(&text, " // ", divisor);
  }
  return absl::StrCat(text, ")");
}

Panels PanelsOf(std::span<const int64_t> shape, int dim, int64_t width) {
  Panels panels;
  const int ndim = static_cast<int>(shape.size());
  if (dim < 0 || width < 2) return panels;
  const int64_t extent = shape[static_cast<size_t>(dim)];
  if (extent % width != 0 || (dim + 1 == ndim && width == extent)) {
    return panels;
  }
  panels.width = width;
  panels.is_cut = width < extent;
  if (panels.is_cut) panels.dims.push_back({dim, PanelDim::kPanel});
  for (int d = 0; d < ndim; ++d) {
    if (d != dim) panels.dims.push_back({d});
  }
  panels.dims.push_back(
      {dim, panels.is_cut ? PanelDim::kWithin : PanelDim::kWhole});
  return panels;
}

Panels InstructionPanels(std::span<const int64_t> shape, int lane_dim,
                         int group_dim, int64_t vectors, int64_t lanes,
                         int64_t group) {
  Panels panels;
  panels.lanes = lanes;
  panels.group = group;
  panels.width = vectors * lanes;
  panels.is_cut = panels.width < shape[static_cast<size_t>(lane_dim)];
  if (panels.is_cut) panels.dims.push_back({lane_dim, PanelDim::kPanel});
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    if (d != lane_dim && d != group_dim) panels.dims.push_back({d});
  }
  panels.dims.push_back({group_dim, PanelDim::kGroup});
  if (vectors > 1) panels.dims.push_back({lane_dim, PanelDim::kRegister});
  panels.dims.push_back({lane_dim, PanelDim::kLane});
  panels.dims.push_back({group_dim, PanelDim::kOfGroup});
  return panels;
}

Panels PanelsAheadOfTime(std::span<const int64_t> shape,
                         std::span<const ReadIndex> indices,
                         std::span<const LoopView> loops) {
  Panels panels;
  int panel = -1;
  for (size_t l = loops.size(); l-- > 0 && panel < 0;) {
    if (loops[l].extent < 2) continue;
    if (loops[l].reduces) break;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (indices[d].only_iter >= 0 && !indices[d].reduces &&
          loops[l].Moves(indices[d].only_iter)) {
        panel = static_cast<int>(d);
        panels.width = loops[l].extent;
      }
    }
  }
  std::vector<int> reduced;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (indices[d].reduces) {
      reduced.push_back(static_cast<int>(d));
    } else if (static_cast<int>(d) != panel) {
      panels.dims.push_back({static_cast<int>(d)});
    }
  }
  std::ranges::stable_sort(reduced, [&](int a, int b) {
    return indices[static_cast<size_t>(a)].last_iter <
           indices[static_cast<size_t>(b)].last_iter;
  });
  panels.is_cut =
      panel >= 0 && panels.width < shape[static_cast<size_t>(panel)];
  if (panels.is_cut) panels.dims.push_back({panel, PanelDim::kPanel});
  for (const int dim : reduced) panels.dims.push_back({dim});
  if (panel >= 0) {
    panels.dims.push_back(
        {panel, panels.is_cut ? PanelDim::kWithin : PanelDim::kWhole});
  }
  return panels;
}

}  // namespace tilefarm::space
