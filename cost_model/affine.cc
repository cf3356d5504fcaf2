#include "cost_model/affine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>

namespace tilefarm::cost_model {
namespace {

using ir::As;
using ir::BinaryOp;

void AddTerm(IndexForm& form, const LoopTerm& term) {
  for (LoopTerm& t : form.terms) {
    if (t.loop != term.loop) continue;
    t.stride += term.stride;
    t.step = CommonStep(t.step, term.step);
    // The same loop on both sides of a sum: signs tell whether the parts add.
    t.span = t.span * term.span == 0
                 ? t.span + term.span
                 : std::max({t.span, term.span, std::abs(t.stride)});
    return;
  }
  form.terms.push_back(term);
}

IndexForm Add(IndexForm a, const IndexForm& b, double sign) {
  for (LoopTerm term : b.terms) {
    term.stride *= sign;
    AddTerm(a, term);
  }
  a.constant += sign * b.constant;
  a.irregular |= b.irregular;
  return a;
}

IndexForm Scale(IndexForm form, double factor) {
  for (LoopTerm& term : form.terms) {
    term.stride *= factor;
    term.span *= std::abs(factor);
    term.step *= std::abs(factor);
  }
  form.constant *= factor;
  return form;
}

// i % c: whole multiples of c vanish, the rest stays within c.
IndexForm Modulo(IndexForm form, double modulus) {
  std::erase_if(form.terms, [&](const LoopTerm& term) {
    return std::fmod(term.step, modulus) == 0;
  });
  for (LoopTerm& term : form.terms) {
    term.stride = std::fmod(term.stride, modulus);
    term.span = std::min(term.span, modulus - 1);
    term.step = CommonStep(term.step, modulus);
  }
  form.constant = std::fmod(form.constant, modulus);
  return form;
}

// i // c: whole multiples of c divide; the rest vanishes where it stays within
// one multiple, as the inner part of a split loop does.
IndexForm FloorDivide(IndexForm form, double divisor) {
  double rest = std::fmod(form.constant, divisor);
  bool negative = rest < 0;
  const auto is_multiple = [&](const LoopTerm& term) {
    return std::fmod(term.step, divisor) == 0;
  };
  for (const LoopTerm& term : form.terms) {
    if (is_multiple(term)) continue;
    rest += term.span;
    negative |= term.stride < 0 && term.span > 0;
  }
  if (!negative && rest < divisor) {
    std::erase_if(form.terms, std::not_fn(is_multiple));
    form.constant -= std::fmod(form.constant, divisor);
  }
  for (LoopTerm& term : form.terms) {
    term.stride *= 1 / divisor;
    term.span *= std::abs(1 / divisor);
    term.step = QuotientStep(term.step, divisor);
  }
  form.constant *= 1 / divisor;
  return form;
}

// Either of two: moves at most as the one that moves more.
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
  const IndexForm b = FormOf(node.b, forms);
  switch (node.op) {
    case BinaryOp::kAdd:
      return Add(std::move(a), b, 1);
    case BinaryOp::kSub:
      return Add(std::move(a), b, -1);
    case BinaryOp::kMul:
      if (IsConstant(b)) return Scale(std::move(a), b.constant);
      if (IsConstant(a)) return Scale(b, a.constant);
      return Irregular(Either(std::move(a), b));
    case BinaryOp::kFloorDiv:
    case BinaryOp::kDiv:
      if (IsConstant(b) && b.constant != 0) {
        return FloorDivide(std::move(a), b.constant);
      }
      return Irregular(std::move(a));
    case BinaryOp::kFloorMod:
    case BinaryOp::kMod:
      if (IsConstant(b) && b.constant >= 1) {
        return Modulo(std::move(a), b.constant);
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

double CommonStep(double a, double b) {
  if (a == 1 || b == 1) return 1;
  // Products and quotients of constants may be no whole numbers.
  const auto is_whole = [](double x) {
    return x == std::floor(x) && x < 0x1p53;
  };
  if (!is_whole(a) || !is_whole(b)) return 1;
  return static_cast<double>(
      std::gcd(static_cast<int64_t>(a), static_cast<int64_t>(b)));
}

double QuotientStep(double step, double divisor) {
  return std::fmod(step, divisor) == 0 ? step / std::abs(divisor) : 1;
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
      return Irregular(std::move(form));
  }
  return form;
}

}  // namespace tilefarm::cost_model
