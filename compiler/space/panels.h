// How a packed operand lies in memory: in panels as wide as the tile of its
// reader, so that the reduction runs along a panel with unit steps.
//
//   i1 in panels of 16, i0 along them:    (i1 // 16, i0, i1 % 16)
//   as a dot product of 16 lanes of 4 reads it, two registers a panel:
//       (i1 // 32, i0 // 4, i1 % 32 // 16, i1 % 16, i0 % 4)
#ifndef TILEFARM_COMPILER_SPACE_PANELS_H_
#define TILEFARM_COMPILER_SPACE_PANELS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/space/loop_rules.h"

namespace tilefarm::space {

// A dimension as it lies in memory: of the program's dimension i
struct PanelDim {
  enum Part {
    kWhole,     // i
    kPanel,     // i // width
    kWithin,    // i % width
    kRegister,  // i % width // lanes
    kLane,      // i % lanes
    kGroup,     // i // group
    kOfGroup,   // i % group
  };
  int dim = 0;
  Part part = kWhole;
};

struct Panels {
  std::vector<PanelDim> dims;  // none: as the program says
  int64_t width = 0;
  int64_t lanes = 0, group = 0;  // as a dot product reads it
  bool is_cut = false;           // more than one panel

  bool empty() const { return dims.empty(); }
  // Of a dimension, where the program's has `extent`.
  int64_t ExtentOf(PanelDim::Part part, int64_t extent) const;
  // For transform_layout: "lambda i0, i1: (i1 // 16, i0, i1 % 16)".
  std::string IndexMap(int ndim) const;
};

// Dimension `dim` in panels of `width`, the others along them; none where
// panels do not divide it or the buffer lies so already.
Panels PanelsOf(std::span<const int64_t> shape, int dim, int64_t width);

// As an instruction reads it: `vectors` registers of `lanes` lanes a panel, of
// a group each.
Panels InstructionPanels(std::span<const int64_t> shape, int lane_dim,
                         int group_dim, int64_t vectors, int64_t lanes,
                         int64_t group);

// What decides how a buffer lies that is packed ahead of time: a dimension as
// the reader indexes it.
struct ReadIndex {
  bool reduces = false;  // by a variable that is reduced over
  int last_iter = -1;    // the last of the reader's variables in it; -1: none
  int only_iter = -1;    // the variable that is the whole index; -1: none is
};
// The order in which the reader's loops read: the dimensions that it does not
// reduce over; panels as wide as the register tile, which are cut from the
// dimension that the innermost loop in it walks; the dimensions reduced over,
// as its variables come; the place within a panel.
Panels PanelsAheadOfTime(std::span<const int64_t> shape,
                         std::span<const ReadIndex> indices,
                         std::span<const LoopView> loops);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_PANELS_H_
