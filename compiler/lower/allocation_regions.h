// Which elements of a buffer the statements of a nest access: for
// place_allocations.cc.
#ifndef TILEFARM_COMPILER_LOWER_ALLOCATION_REGIONS_H_
#define TILEFARM_COMPILER_LOWER_ALLOCATION_REGIONS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/stmt.h"
#include "compiler/lower/index_math.h"

namespace tilefarm::lower {

// One access, with block variables replaced by their bindings.
struct Access {
  bool store = false;
  // In which iterations of the loops around it it runs if the element is inside
  // the buffer; none: in all.
  std::vector<ir::Expr> conditions;
  std::vector<ir::Expr> indices;
  std::vector<const ir::ForNode*> loops;  // around it, outermost first
  // For an init: one plus the position of the outermost reduction loop. Only
  // loops inside of that loop may rely on the written value. 0: no init.
  size_t initialised_from = 0;
  // One plus the position of the outermost loop that makes the access in its
  // first iteration only, whose variable `indices` lack; 0: there is none.
  size_t once_from = 0;

  // Whether each iteration of loops[0..depth] makes the access, where its
  // conditions hold.
  bool IsCertainIn(size_t depth) const {
    return (initialised_from == 0 || initialised_from - 1 > depth) &&
           (once_from == 0 || once_from - 1 > depth);
  }
};

// The accesses to one buffer in program order. Binds the loops' variables in
// `math`.
std::vector<Access> AccessesOf(const ir::BufferNode* buffer,
                               const ir::Stmt& body, IndexMath& math);

// first + [0, extent) in each dimension.
struct Box {
  std::vector<Linear> first;
  std::vector<int64_t> extent;
  // What varies in it, from `first`.
  std::vector<Linear> offset;
  // The terms of the offset, sorted; equal ones are of the same elements. A
  // loop that is one term, and no other, counts by its extent, whatever its
  // name.
  struct Term {
    int64_t scale = 0;
    int64_t extent = 0;     // of the loop, or
    std::string atom = {};  // which expression it is
    auto operator<=>(const Term&) const = default;
  };
  std::vector<std::vector<Term>> terms;
};

// The elements of an access in one iteration of loops[0..depth], in terms of
// those loops; nullopt if they are not a box.
struct RegionOptions {
  bool all_threads = false;  // in that iteration of all threads of a block
  // Without the end of which the access's conditions say that it does not
  // happen.
  bool within_conditions = false;
};
std::optional<Box> RegionBelow(IndexMath& math, const Access& access,
                               size_t depth, RegionOptions options);

// The box of which the loops inside of loops[0..depth] access every element,
// where the access's conditions hold; nullopt: unknown.
std::optional<Box> FilledBox(IndexMath& math, const Access& access,
                             size_t depth);

// to - from, if that is a constant.
std::optional<int64_t> Distance(const Linear& from, const Linear& to);

// Whether the part of `inner` inside the buffer is contained in `outer`.
bool Covers(IndexMath& math, const ir::BufferNode& buffer, const Box& outer,
            const Box& inner);

// Whether every element of `inner` is known to be one of `outer`, gaps
// included: what both vary by, and beside it a range without gaps.
bool Contains(const Box& outer, const Box& inner);

// Part of an offset: offset // scale % count.
struct Digit {
  int64_t scale;
  int64_t count;
};

// Numbers the offsets without gaps: those of 64 * i + j with i < 2 and j < 4
// are 4 * i + j. Empty if that saves nothing, or if terms are not such digits.
std::vector<Digit> DigitsWithoutGaps(IndexMath& math,
                                     const std::vector<Linear>& offsets,
                                     int64_t extent);

}  // namespace tilefarm::lower

#endif  // TILEFARM_COMPILER_LOWER_ALLOCATION_REGIONS_H_
