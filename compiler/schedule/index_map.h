// A map of indices as text: "lambda i, j: (i // 16, j, i % 16)", also as TVM
// prints it: "T.index_map(lambda i, j: (i // 16, j, i % 16))".
//
//   IndexMap::Parse("lambda i, j: (i // 16, j, i % 16)")
//   map.Apply({x, y})          // {x // 16, y, x % 16}
//   map.OutputShape({32, 8})   // {2, 8, 16}
//
// The language: integers, the parameters, + - * // %, parentheses.
#ifndef TILEFARM_COMPILER_SCHEDULE_INDEX_MAP_H_
#define TILEFARM_COMPILER_SCHEDULE_INDEX_MAP_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ir/expr.h"

namespace tilefarm::schedule {

class IndexMap {
 public:
  // InvalidArgument with the column of the error.
  static absl::StatusOr<IndexMap> Parse(std::string_view text);

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }

  // `indices`: one per input. Not simplified.
  std::vector<ir::Expr> Apply(const std::vector<ir::Expr>& indices) const;

  // The shape of a buffer of `shape` after the map. If a dimension is divided
  // by a number that does not divide its extent, the last piece has unused
  // elements. FailedPrecondition if two elements would get the same index or if
  // there would be other gaps.
  absl::StatusOr<std::vector<int64_t>> OutputShape(
      const std::vector<int64_t>& shape) const;

 private:
  absl::StatusOr<std::vector<int64_t>> BijectiveShape(
      const std::vector<int64_t>& shape) const;

  std::vector<ir::Var> inputs_;
  std::vector<ir::Expr> outputs_;
};

}  // namespace tilefarm::schedule

#endif  // TILEFARM_COMPILER_SCHEDULE_INDEX_MAP_H_
