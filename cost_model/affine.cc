#include "cost_model/affine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

namespace tilefarm::cost_model {
namespace {

using ir::As;
using ir::BinaryOp;

// The step of the sum of two index parts.
double CommonStep(double a, double b) {
  if (a == 1 || b == 1) return 1;
  // Products and quotients of constants may not be whole numbers.
  const auto is_whole = [](double x) {
    return x == std::floor(x) && x < 0x1p53;
  };
  if (!is_whole(a) || !is_whole(b)) return 1;
  return static_cast<double>(
      std::gcd(static_cast<int64_t>(a), static_cast<int64_t>(b)));
}

bool IsMultiple(const LoopTerm& term, double divisor) {
  return std::fmod(term.step, divisor) == 0;
}

template <typename Condition>
void EraseIf(IndexForm& form, const Condition& condition) {
  form.terms.erase(
      std::remove_if(form.terms.begin(), form.terms.end(), condition),
      form.terms.end());
}

// Either of two forms: changes at most as much as the one that changes more.
IndexForm Either(IndexForm a, const IndexForm& b) {
  for (const LoopTerm& term : b.terms) {
    bool found = false;
    for (LoopTerm& t : a.terms) {
      if (t.loop != term.loop) continue;
      if (std::abs(term.stride) > std::abs(t.stride)) t.stride = term.stride;
      t.span = std::max(t.span, term.span);
      t.step = CommonStep(t.step, term.step);
      found = true;
    }
    if (!found) a.terms.push_back(term);
  }
  a.irregular |= b.irregular;
  return a;
}

IndexForm Irregular(IndexForm form) {
  form.irregular = true;
  return form;
}

bool IsConstant(const IndexForm& form) {
  return form.terms.empty() && !form.irregular;
}

IndexForm OfBinary(const ir::BinaryNode& node, const FormMap& forms) {
  IndexForm a = FormOf(node.a, forms);
  IndexForm b = FormOf(node.b, forms);
  switch (node.op) {
    case BinaryOp::kAdd:
      a.Add(b, 1);
      return a;
    case BinaryOp::kSub:
      a.Add(b, -1);
      return a;
    case BinaryOp::kMul:
      if (IsConstant(a)) std::swap(a, b);
      if (IsConstant(b)) {
        a.Scale(b.constant);
        return a;
      }
      return Irregular(Either(std::move(a), b));
    case BinaryOp::kFloorDiv:
    case BinaryOp::kDiv:
      if (IsConstant(b) && b.constant != 0) {
        a.FloorDivide(b.constant);
        return a;
      }
      return Irregular(std::move(a));
    case BinaryOp::kFloorMod:
    case BinaryOp::kMod:
      if (IsConstant(b) && b.constant >= 1) {
        a.Modulo(b.constant);
        return a;
      }
      return Irregular(std::move(a));
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return Either(std::move(a), b);
    default:
      return Irregular(Either(std::move(a), b));
  }
}

}  // namespace

void IndexForm::Clear() {
  terms.clear();
  constant = 0;
  irregular = false;
}

void IndexForm::Add(const LoopTerm& term) {
  for (LoopTerm& t : terms) {
    if (t.loop != term.loop) continue;
    t.stride += term.stride;
    t.step = CommonStep(t.step, term.step);
    // The same loop on both sides of a sum: signs tell whether the parts add.
    t.span = t.span * term.span == 0
                 ? t.span + term.span
                 : std::max({t.span, term.span, std::abs(t.stride)});
    return;
  }
  terms.push_back(term);
}

void IndexForm::Add(const IndexForm& other, double factor) {
  const double width = std::abs(factor);
  for (const LoopTerm& term : other.terms) {
    Add({term.loop, term.stride * factor, term.span * width,
         term.step * width});
  }
  constant += factor * other.constant;
  irregular |= other.irregular;
}

void IndexForm::Scale(double factor) {
  for (LoopTerm& term : terms) {
    term.stride *= factor;
    term.span *= std::abs(factor);
    term.step *= std::abs(factor);
  }
  constant *= factor;
}

void IndexForm::Modulo(double modulus) {
  EraseIf(*this,
          [&](const LoopTerm& term) { return IsMultiple(term, modulus); });
  for (LoopTerm& term : terms) {
    term.stride = std::fmod(term.stride, modulus);
    term.span = std::min(term.span, modulus - 1);
    term.step = CommonStep(term.step, modulus);
  }
  constant = std::fmod(constant, modulus);
}

void IndexForm::FloorDivide(double divisor) {
  double rest = std::fmod(constant, divisor);
  bool negative = rest < 0;
  for (const LoopTerm& term : terms) {
    if (IsMultiple(term, divisor)) continue;
    rest += term.span;
    negative |= term.stride < 0 && term.span > 0;
  }
  if (!negative && rest < divisor) {
    EraseIf(*this,
            [&](const LoopTerm& term) { return !IsMultiple(term, divisor); });
    constant -= std::fmod(constant, divisor);
  }
  for (LoopTerm& term : terms) {
    term.stride *= 1 / divisor;
    term.span *= std::abs(1 / divisor);
    // The quotient of parts that the divisor does not divide is whole, no more.
    term.step = IsMultiple(term, divisor) ? term.step / std::abs(divisor) : 1;
  }
  constant *= 1 / divisor;
}

IndexForm FormOf(const ir::Expr& index, const FormMap& forms) {
  IndexForm form;
  switch (index->kind) {
    case ir::ExprKind::kVar: {
      const auto it = forms.find(As<ir::VarNode>(index));
      return it == forms.end() ? form : it->second;
    }
    case ir::ExprKind::kIntConst:
      form.constant = static_cast<double>(As<ir::IntConstNode>(index)->value);
      return form;
    case ir::ExprKind::kCast:
      return FormOf(As<ir::CastNode>(index)->value, forms);
    case ir::ExprKind::kBinary:
      return OfBinary(*As<ir::BinaryNode>(index), forms);
    case ir::ExprKind::kSelect: {
      const auto* select = As<ir::SelectNode>(index);
      return Either(FormOf(select->true_value, forms),
                    FormOf(select->false_value, forms));
    }
    case ir::ExprKind::kCall: {
      const auto* call = As<ir::CallNode>(index);
      if (call->op == ir::Intrinsic::kIfThenElse) {
        return Either(FormOf(call->args[1], forms),
                      FormOf(call->args[2], forms));
      }
      for (const ir::Expr& arg : call->args) {
        form = Either(std::move(form), FormOf(arg, forms));
      }
      return Irregular(std::move(form));
    }
    case ir::ExprKind::kLoad:
      for (const ir::Expr& i : As<ir::LoadNode>(index)->indices) {
        form = Either(std::move(form), FormOf(i, forms));
      }
      return Irregular(std::move(form));
    case ir::ExprKind::kLet: {
      const auto* let = As<ir::LetNode>(index);
      FormMap inner = forms;
      inner[let->var.get()] = FormOf(let->value, forms);
      return FormOf(let->body, inner);
    }
    case ir::ExprKind::kRamp:
      return FormOf(As<ir::RampNode>(index)->base, forms);
    case ir::ExprKind::kBroadcast:
      return FormOf(As<ir::BroadcastNode>(index)->value, forms);
    case ir::ExprKind::kFloatConst:
    case ir::ExprKind::kNot:
    case ir::ExprKind::kMachineOp:
      return Irregular(std::move(form));
  }
  return form;
}

}  // namespace tilefarm::cost_model
