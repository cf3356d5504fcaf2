// Numbers of a schedule as expressions of a candidate's decisions: extents,
// strides, widths of regions.
//
//   Formula f;
//   const Value inner = f.Factor(/*site=*/0, /*index=*/1);
//   const Value width = f.Add(f.Mul(inner, f.Const(4)), f.Const(2));
//   f.Evaluate(decisions, numbers);   // numbers[width]
#ifndef TILEFARM_COST_MODEL_SKELETON_FORMULA_H_
#define TILEFARM_COST_MODEL_SKELETON_FORMULA_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "compiler/ir/stmt.h"

namespace tilefarm::skeleton {

// The decisions of a candidate as plain integers, site by site.
class DecisionValues {
 public:
  // False where a decision is neither an integer nor a list of integers.
  bool Assign(std::span<const ir::Attr> decisions);
  int sites() const { return static_cast<int>(begins_.size()) - 1; }
  std::span<const int64_t> operator[](int site) const {
    return std::span<const int64_t>(values_).subspan(
        begins_[site], begins_[site + 1] - begins_[site]);
  }

 private:
  std::vector<int64_t> values_;
  std::vector<size_t> begins_{0};
};

// An expression: its number within the Formula.
using Value = int32_t;

// A directed graph of expressions, evaluated in one pass. Equal expressions
// are one.
class Formula {
 public:
  Value Const(int64_t value);
  // A number of the decision of a site.
  Value Factor(int site, int index);
  // choices[decision] of a site whose decision is an index.
  Value Choice(int site, std::vector<int64_t> choices);
  Value Add(Value a, Value b);
  Value Mul(Value a, Value b);
  Value CeilDiv(Value a, Value b);
  // value / by, where every decision leaves no remainder and that shows.
  std::optional<Value> Divided(Value value, int64_t by);
  // At most `limit` where `offset` is 0, else `width`.
  Value Clip(Value width, Value limit, Value offset);

  std::optional<int64_t> AsConst(Value value) const;

  // Every number, by Value. False where a decision lacks an index, is no
  // choice, or a division is by 0.
  bool Evaluate(const DecisionValues& decisions,
                std::vector<int64_t>& numbers) const;

 private:
  enum class Kind : uint8_t {
    kConst,
    kFactor,
    kChoice,
    kAdd,
    kMul,
    kCeilDiv,
    kClip,
  };
  struct Op {
    Kind kind;
    int64_t a = 0, b = 0, c = 0;
  };
  Value Intern(Op op);

  std::vector<Op> ops_;
  std::vector<std::vector<int64_t>> choices_;
  std::map<std::tuple<Kind, int64_t, int64_t, int64_t>, Value> known_;
};

}  // namespace tilefarm::skeleton

#endif  // TILEFARM_COST_MODEL_SKELETON_FORMULA_H_
