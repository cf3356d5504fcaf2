// The memory layout of a packed operand: panels as wide as its reader's tile,
// so that the reduction runs along a panel with unit stride.
//
//   i1 in panels of 16, i0 along them:    (i1 // 16, i0, i1 % 16)
// For a dot product with 16 lanes of 4 elements, two registers per panel:
//       (i1 // 32, i0 // 4, i1 % 32 // 16, i1 % 16, i0 % 4)
#ifndef TILEFARM_COMPILER_SPACE_PANELS_H_
#define TILEFARM_COMPILER_SPACE_PANELS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/space/loop_rules.h"

namespace tilefarm::space {

// A dimension of the layout, derived from dimension i of the program.
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
  std::vector<PanelDim> dims;  // empty: the program's layout
  int64_t width = 0;
  int64_t lanes = 0, group = 0;  // of a dot-product instruction
  bool is_cut = false;           // more than one panel

  bool empty() const { return dims.empty(); }
  // The part of an index i: i % modulus // divisor; without % where it is 0.
  struct Digit {
    int64_t modulus, divisor;
  };
  Digit DigitOf(PanelDim::Part part) const;
  // The extent of this part of a dimension whose extent is `extent`.
  int64_t ExtentOf(PanelDim::Part part, int64_t extent) const;
  // For transform_layout: "lambda i0, i1: (i1 // 16, i0, i1 % 16)".
  std::string IndexMap(int ndim) const;
};

// Cuts dimension `dim` into panels of `width`, with the other dimensions along
// them; empty if `width` does not divide it or the layout would not change.
Panels PanelsOf(std::span<const int64_t> shape, int dim, int64_t width);

// The layout for an instruction: panels of `vectors` registers with `lanes`
// lanes of one group each.
Panels InstructionPanels(std::span<const int64_t> shape, int lane_dim,
                         int group_dim, int64_t vectors, int64_t lanes,
                         int64_t group);

// How the reader indexes a dimension of a buffer that is packed ahead of time;
// this decides the layout.
struct ReadIndex {
  bool reduces = false;  // its index has a reduce variable
  int last_iter = -1;    // the reader's last variable in it; -1: none
  int only_iter = -1;    // variable that is the whole index; -1: none
};
// Follows the order in which the reader's loops read: first the dimensions
// without reduction; then panels as wide as the register tile, cut from the
// dimension that its innermost loop walks; then the reduced dimensions, in the
// order of their variables; last the position within a panel.
Panels PanelsAheadOfTime(std::span<const int64_t> shape,
                         std::span<const ReadIndex> indices,
                         std::span<const LoopView> loops);

}  // namespace tilefarm::space

#endif  // TILEFARM_COMPILER_SPACE_PANELS_H_
