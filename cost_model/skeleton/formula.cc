#include "cost_model/skeleton/formula.h"

#include <algorithm>
#include <utility>

namespace tilefarm::skeleton {

bool DecisionValues::Assign(std::span<const ir::Attr> decisions) {
  values_.clear();
  begins_.assign(1, 0);
  for (const ir::Attr& decision : decisions) {
    if (const ir::AttrList* list = decision.AsList()) {
      for (const ir::Attr& item : *list) {
        const std::optional<int64_t> value = item.AsInt();
        if (!value) return false;
        values_.push_back(*value);
      }
    } else {
      const std::optional<int64_t> value = decision.AsInt();
      if (!value) return false;
      values_.push_back(*value);
    }
    begins_.push_back(values_.size());
  }
  return true;
}

Value Formula::Intern(Op op) {
  const auto [it, added] = known_.try_emplace(
      std::tuple(op.kind, op.a, op.b, op.c), static_cast<Value>(ops_.size()));
  if (added) ops_.push_back(op);
  return it->second;
}

Value Formula::Const(int64_t value) { return Intern({Kind::kConst, value, 0}); }

Value Formula::Factor(int site, int index) {
  return Intern({Kind::kFactor, site, index});
}

Value Formula::Choice(int site, std::vector<int64_t> choices) {
  choices_.push_back(std::move(choices));
  return Intern(
      {Kind::kChoice, site, static_cast<int64_t>(choices_.size()) - 1});
}

std::optional<int64_t> Formula::AsConst(Value value) const {
  const Op& op = ops_[static_cast<size_t>(value)];
  return op.kind == Kind::kConst ? std::optional(op.a) : std::nullopt;
}

Value Formula::Add(Value a, Value b) {
  const auto x = AsConst(a), y = AsConst(b);
  if (x && y) return Const(*x + *y);
  if (x == 0) return b;
  if (y == 0) return a;
  return Intern({Kind::kAdd, a, b});
}

Value Formula::Mul(Value a, Value b) {
  const auto x = AsConst(a), y = AsConst(b);
  if (x && y) return Const(*x * *y);
  if (x == 1) return b;
  if (y == 1) return a;
  return Intern({Kind::kMul, a, b});
}

Value Formula::CeilDiv(Value a, Value b) {
  const auto x = AsConst(a), y = AsConst(b);
  if (x && y && *y > 0) return Const((*x + *y - 1) / *y);
  return Intern({Kind::kCeilDiv, a, b});
}

std::optional<Value> Formula::Divided(Value value, int64_t by) {
  const Op op = ops_[static_cast<size_t>(value)];
  if (op.kind == Kind::kConst) {
    return op.a % by == 0 ? std::optional(Const(op.a / by)) : std::nullopt;
  }
  if (op.kind != Kind::kMul) return std::nullopt;
  const auto a = static_cast<Value>(op.a), b = static_cast<Value>(op.b);
  if (const auto quotient = Divided(a, by)) return Mul(*quotient, b);
  if (const auto quotient = Divided(b, by)) return Mul(a, *quotient);
  return std::nullopt;
}

Value Formula::Clip(Value width, Value limit, Value offset) {
  return Intern({Kind::kClip, width, limit, offset});
}

bool Formula::Evaluate(const DecisionValues& decisions,
                       std::vector<int64_t>& numbers) const {
  numbers.resize(ops_.size());
  for (size_t i = 0; i < ops_.size(); ++i) {
    const Op& op = ops_[i];
    int64_t& out = numbers[i];
    switch (op.kind) {
      case Kind::kConst:
        out = op.a;
        break;
      case Kind::kFactor: {
        if (op.a >= decisions.sites()) return false;
        const auto decision = decisions[static_cast<int>(op.a)];
        if (static_cast<size_t>(op.b) >= decision.size()) return false;
        out = decision[static_cast<size_t>(op.b)];
        break;
      }
      case Kind::kChoice: {
        if (op.a >= decisions.sites()) return false;
        const auto decision = decisions[static_cast<int>(op.a)];
        const std::vector<int64_t>& choices =
            choices_[static_cast<size_t>(op.b)];
        if (decision.size() != 1 || decision[0] < 0 ||
            static_cast<size_t>(decision[0]) >= choices.size()) {
          return false;
        }
        out = choices[static_cast<size_t>(decision[0])];
        break;
      }
      case Kind::kAdd:
        if (__builtin_add_overflow(numbers[op.a], numbers[op.b], &out)) {
          return false;
        }
        break;
      case Kind::kMul:
        if (__builtin_mul_overflow(numbers[op.a], numbers[op.b], &out)) {
          return false;
        }
        break;
      case Kind::kCeilDiv:
        if (numbers[op.b] <= 0) return false;
        out = (numbers[op.a] + numbers[op.b] - 1) / numbers[op.b];
        break;
      case Kind::kClip:
        out = numbers[op.c] == 0 ? std::min(numbers[op.a], numbers[op.b])
                                 : numbers[op.a];
        break;
    }
  }
  return true;
}

}  // namespace tilefarm::skeleton
